//! The fields of a TBSCertificate, found by their places.
//!
//! Nothing is judged here but whether the whole looks like a certificate at all: a field that is
//! missing or of another tag is for its own reader to note.

use crate::der::{self, Element, Walk};
use crate::deviation::{Deviation, Deviations};

/// The pieces of a TBSCertificate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tbs<'a> {
    pub(crate) version: Option<Element<'a>>,
    pub(crate) serial: Option<Element<'a>>,
    pub(crate) issuer: Option<Element<'a>>,
    pub(crate) validity: Option<Element<'a>>,
    pub(crate) subject: Option<Element<'a>>,
    pub(crate) key: Option<Element<'a>>,
    /// The `[3]` around the list of extensions.
    pub(crate) extensions: Option<Element<'a>>,
    /// All of the content.
    pub(crate) whole: &'a [u8],
    /// From the start of the content to the issuer.
    pub(crate) before_issuer: &'a [u8],
    /// From the end of the issuer to the extensions, or to the end where there are none.
    pub(crate) after_issuer: &'a [u8],
    /// Behind the extensions, where nothing should be.
    pub(crate) tail: &'a [u8],
}

/// What bytes that are no certificate turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotCertificate {
    /// A list of revoked certificates.
    #[error("this is a certificate revocation list")]
    RevocationList,
    /// A PKCS #10 request.
    #[error("this is a certificate signing request")]
    Request,
    /// PKCS #7, PKCS #12 or another container that starts with its type.
    #[error("this is a container such as PKCS #7; take the certificates out of it first")]
    Container,
    /// A public or private key.
    #[error("this is a key")]
    Key,
    /// Nothing in the bytes resembles a certificate.
    #[error("no certificate is found in these bytes")]
    Nothing,
}

const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// The element that holds the TBSCertificate within a certificate.
pub(crate) fn of_certificate<'a>(der: &'a [u8], deviations: &mut Deviations) -> Option<Element<'a>> {
    let mut outer = Walk::new(der);
    let certificate = outer.next(deviations)?;
    deviations.insert_if(!outer.rest().is_empty(), Deviation::TrailingBytes);
    let mut parts = certificate.children();
    let tbs = parts.next(deviations)?;
    deviations.insert_if(
        !certificate.is_sequence() || !tbs.is_sequence(),
        Deviation::OddTag,
    );
    // Algorithm and signature are all that may follow.
    let algorithm = parts.next(deviations);
    let signature = parts.next(deviations);
    deviations.insert_if(
        algorithm.is_none() || signature.is_none(),
        Deviation::FieldsMissing,
    );
    deviations.insert_if(!parts.rest().is_empty(), Deviation::TrailingBytes);
    Some(tbs)
}

impl<'a> Tbs<'a> {
    /// Finds the fields in the content of a TBSCertificate.
    pub(crate) fn walk(content: &'a [u8], deviations: &mut Deviations) -> Self {
        let mut tbs = Self {
            whole: content,
            ..Self::default()
        };
        let mut fields = Walk::new(content);
        tbs.version = fields.next_if(VERSION, deviations);
        if tbs.version.is_none() && fields.rest().first() != Some(&der::INTEGER) {
            // A version under another tag is still the number before the serial number.
            let mut ahead = fields;
            let first = ahead.next(&mut Deviations::default());
            tbs.version = first.filter(|first| matches!(first.content, [der::INTEGER, 1, 0..=3]));
            if tbs.version.is_some() {
                deviations.insert(Deviation::OddVersion);
                fields = ahead;
            }
        }
        if fields.rest().first() != Some(&der::SEQUENCE) {
            tbs.serial = fields.next(deviations);
        }
        let _algorithm = fields.next(deviations);
        tbs.before_issuer = before(content, &fields);
        tbs.issuer = fields.next(deviations);
        let after_issuer = fields.rest();
        tbs.validity = fields.next(deviations);
        tbs.subject = fields.next(deviations);
        tbs.key = fields.next(deviations);
        deviations.insert_if(tbs.key.is_none(), Deviation::FieldsMissing);
        tbs.after_issuer = after_issuer;
        loop {
            let so_far = before(after_issuer, &fields);
            let Some(field) = fields.next(deviations) else {
                break;
            };
            // The unique identifiers of version 2 are read over.
            deviations.insert_if(
                !matches!(field.tag, 0x81 | 0x82 | 0xa1 | 0xa2 | EXTENSIONS),
                Deviation::UnexpectedField,
            );
            if field.tag == EXTENSIONS {
                tbs.extensions = Some(field);
                tbs.after_issuer = so_far;
                tbs.tail = fields.rest();
                deviations.insert_if(!tbs.tail.is_empty(), Deviation::TrailingBytes);
                break;
            }
        }
        tbs
    }

    /// Whether enough of it has the right shape: a validity that holds dates, or names with something
    /// between and behind them.
    pub(crate) fn is_plausible(&self) -> bool {
        let is_sequence = |field: Option<Element<'_>>| field.is_some_and(|field| field.tag == der::SEQUENCE);
        let holds_date = |field: Element<'_>| {
            matches!(
                field.content.first(),
                Some(&(der::UTC_TIME | der::GENERALIZED_TIME))
            )
        };
        let names = is_sequence(self.issuer) && is_sequence(self.validity) && is_sequence(self.subject);
        self.validity.is_some_and(holds_date) || (names && self.key.is_some())
    }
}

fn before<'a>(all: &'a [u8], walk: &Walk<'_>) -> &'a [u8] {
    all.get(..all.len() - walk.rest().len().min(all.len()))
        .unwrap_or_default()
}

/// Names the things that are met where a certificate is expected.
pub(crate) fn identify(der: &[u8]) -> NotCertificate {
    let mut deviations = Deviations::NONE;
    let mut outer = Walk::new(der);
    let Some(outer) = outer.next_if(der::SEQUENCE, &mut deviations) else {
        return NotCertificate::Nothing;
    };
    let tags_of = |element: Element<'_>| {
        let mut tags = [0u8; 5];
        let mut parts = element.children();
        for tag in &mut tags {
            *tag = parts.next(&mut Deviations::default()).map_or(0, |part| part.tag);
        }
        tags
    };
    let first = outer.children().next(&mut deviations);
    match (tags_of(outer), first.map(tags_of)) {
        ([der::OID, ..], _) => NotCertificate::Container,
        ([der::INTEGER, der::SEQUENCE, 0xa0, ..], _) => NotCertificate::Container,
        ([der::INTEGER, ..], _) | ([der::SEQUENCE, der::BIT_STRING, 0, ..], _) => NotCertificate::Key,
        (
            _,
            Some(
                [
                    der::SEQUENCE,
                    der::SEQUENCE,
                    der::UTC_TIME | der::GENERALIZED_TIME,
                    ..,
                ]
                | [
                    der::INTEGER,
                    der::SEQUENCE,
                    der::SEQUENCE,
                    der::UTC_TIME | der::GENERALIZED_TIME,
                    ..,
                ],
            ),
        ) => NotCertificate::RevocationList,
        (_, Some([der::INTEGER, der::SEQUENCE, der::SEQUENCE, 0 | 0xa0, _])) => NotCertificate::Request,
        _ => NotCertificate::Nothing,
    }
}
