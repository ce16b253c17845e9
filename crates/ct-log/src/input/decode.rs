//! From a framed entry to the structures that a certificate is read from; the part of the work that
//! can run on any core.

use std::borrow::Cow;

use base64_simd::{STANDARD, forgiving_decode_inplace};

use super::{der, json, pem};
use crate::certificate::{self, NotCertificate, ReadOptions, Reading};
use crate::der::Header;
use crate::deviation::Deviation;
use crate::error::{EntryError, Reason};
use crate::leaf::{CertificateList, Leaf, LeafBody, TileLeaf, split_precert_extra_data};
use crate::merkle::{self, Hash};

/// One entry as it stands in the input: framed, not decoded. Cheap to copy and to send elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct RawEntry<'a> {
    ordinal: u64,
    offset: usize,
    form: Form<'a>,
    log_index: Option<u64>,
    log_url: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    /// The texts of two JSON strings.
    GetEntries {
        leaf_input: &'a [u8],
        extra_data: &'a [u8],
    },
    /// The text between the brackets of a JSON array of strings.
    Chain(&'a [u8]),
    /// The text of a JSON string.
    Root(&'a [u8]),
    Tile(TileLeaf<'a>),
    /// The base64 of a block, and the text behind the block.
    Pem {
        body: &'a [u8],
        trusted: bool,
        following: &'a [u8],
    },
    Der {
        certificate: &'a [u8],
        following: &'a [u8],
    },
}

/// Buffers that decoding fills; one per worker.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    leaf: Vec<u8>,
    extra: Vec<u8>,
}

impl Scratch {
    /// Empty ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// One decoded entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its place in the input, counted from 0.
    pub ordinal: u64,
    /// Its first byte in the input.
    pub offset: u64,
    /// Where in its log it is, as far as the input says.
    pub log_index: Option<u64>,
    /// The leaf of the log; `None` for certificates from elsewhere.
    pub leaf: Option<Leaf<'a>>,
    /// The submitted certificate or precertificate; `None` where a log left the precertificate out.
    pub submitted: Option<&'a [u8]>,
    /// The certificate that follows a precertificate that comes from elsewhere than a log.
    issuer: Option<&'a [u8]>,
}

/// The chain of an entry, without its first certificate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Chain<'a> {
    /// The certificates themselves.
    Certificates(CertificateList<'a>),
    /// Their SHA-256 fingerprints, 32 bytes each; a length that 32 does not divide is damage.
    Fingerprints(&'a [u8]),
    /// The input does not say.
    Unknown,
}

impl<'a> RawEntry<'a> {
    pub(super) fn new(offset: usize, form: Form<'a>) -> Self {
        Self {
            ordinal: 0,
            offset,
            form,
            log_index: None,
            log_url: &[],
        }
    }

    pub(super) fn in_log(self, log_index: Option<u64>, log_url: &'a [u8]) -> Self {
        Self {
            log_index,
            log_url,
            ..self
        }
    }

    pub(super) fn numbered(self, ordinal: u64) -> Self {
        Self { ordinal, ..self }
    }

    pub(super) fn der_certificate(&self) -> Option<&'a [u8]> {
        match self.form {
            Form::Der { certificate, .. } => Some(certificate),
            _ => None,
        }
    }

    /// Its place in the input, counted from 0.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// The address of the log, where the input says it beside the entry.
    #[must_use]
    pub fn log_url(&self) -> Option<Cow<'a, str>> {
        if self.log_url.is_empty() {
            None
        } else {
            json::text(self.log_url)
        }
    }

    /// Decodes what reading its certificate needs: the leaf, and of a precertificate's `extra_data`
    /// only the part that holds the precertificate.
    ///
    /// # Errors
    /// The entry is damaged; see [`Reason`].
    pub fn decode<'s>(&'s self, scratch: &'s mut Scratch) -> Result<Entry<'s>, EntryError> {
        self.decode_as(scratch, None)
    }

    /// Decodes as [`RawEntry::decode`] does, and hashes the leaf for the tree of the log. There is a hash
    /// wherever the bytes of the leaf are known, also of an entry of a type that nobody knows yet.
    ///
    /// # Errors
    /// As [`RawEntry::decode`].
    pub fn decode_hashed<'s>(
        &'s self,
        scratch: &'s mut Scratch,
    ) -> (Option<Hash>, Result<Entry<'s>, EntryError>) {
        let mut hash = None;
        let entry = self.decode_as(scratch, Some(&mut hash));
        (hash, entry)
    }

    fn decode_as<'s>(
        &'s self,
        scratch: &'s mut Scratch,
        hash: Option<&mut Option<Hash>>,
    ) -> Result<Entry<'s>, EntryError> {
        let Scratch { leaf, extra } = scratch;
        let decoded = match self.form {
            Form::GetEntries {
                leaf_input,
                extra_data,
            } => get_entries(leaf_input, extra_data, leaf, extra, hash),
            Form::Tile(tile) => {
                if let Some(hash) = hash {
                    *hash = Some(Hash(tile.leaf.hash()));
                }
                Ok(Decoded::tile(tile))
            }
            Form::Chain(texts) => chain(texts, leaf, extra),
            Form::Root(text) => decode_json(text, leaf, "certificate").map(|()| Decoded::loose(leaf, None)),
            Form::Pem {
                body,
                trusted,
                following,
            } => pem_block(body, trusted, following, leaf, extra),
            Form::Der {
                certificate,
                following,
            } => {
                let issuer = || der::first(following);
                Ok(Decoded::loose(certificate, precert_then(certificate, issuer)))
            }
        };
        let decoded = decoded.map_err(|reason| reason.at(self.ordinal, self.offset))?;
        let in_leaf = decoded.leaf.and_then(|leaf| leaf.leaf_index().ok().flatten());
        Ok(Entry {
            ordinal: self.ordinal,
            offset: self.offset as u64,
            log_index: self.log_index.or(in_leaf),
            leaf: decoded.leaf,
            submitted: decoded.submitted,
            issuer: decoded.issuer,
        })
    }

    /// Decodes the chain alone.
    ///
    /// # Errors
    /// The chain is damaged; see [`Reason`].
    pub fn decode_chain<'s>(&'s self, scratch: &'s mut Scratch) -> Result<Chain<'s>, EntryError> {
        let Scratch { leaf, extra } = scratch;
        let decoded = match self.form {
            Form::GetEntries {
                leaf_input,
                extra_data,
            } => extra_data_chain(leaf_input, extra_data, leaf, extra),
            Form::Tile(tile) => Ok(Chain::Fingerprints(tile.chain_fingerprints)),
            Form::Chain(texts) => listed_chain(texts, leaf, extra),
            Form::Root(_) | Form::Pem { .. } | Form::Der { .. } => Ok(Chain::Unknown),
        };
        decoded.map_err(|reason| reason.at(self.ordinal, self.offset))
    }
}

impl Entry<'_> {
    /// Reads its certificate into `reading`.
    ///
    /// # Errors
    /// [`Reason::NotCertificate`]. A log's entry whose bytes resemble nothing is no error: it is read as
    /// [`Deviation::Unparsed`], with its fingerprint.
    pub fn read(&self, options: &ReadOptions, reading: &mut Reading) -> Result<(), EntryError> {
        let (bytes, outcome) = match self.leaf.map(|leaf| leaf.body) {
            Some(LeafBody::Precert { tbs, .. }) => (
                tbs,
                certificate::read_precert_entry(tbs, self.submitted, options, reading),
            ),
            Some(LeafBody::X509(der)) => (der, certificate::read(der, None, options, reading)),
            None => {
                let der = self.submitted.unwrap_or_default();
                (der, certificate::read(der, self.issuer, options, reading))
            }
        };
        match outcome {
            Ok(()) => {}
            Err(NotCertificate::Nothing) if self.leaf.is_some() => {
                certificate::note_unparsed(bytes, options, reading);
            }
            Err(what) => return Err(Reason::from(what).at(self.ordinal, self.offset as usize)),
        }
        reading.log_index = self.log_index;
        if let Some(leaf) = &self.leaf {
            note_leaf(leaf, reading);
        }
        Ok(())
    }
}

fn note_leaf(leaf: &Leaf<'_>, reading: &mut Reading) {
    reading.timestamp_ms = Some(leaf.timestamp_ms);
    reading
        .deviations
        .insert_if(leaf.has_trailing_bytes(), Deviation::TrailingBytes);
    reading
        .deviations
        .insert_if(leaf.leaf_index().is_err(), Deviation::LeafExtensionsUnreadable);
    match leaf.body {
        LeafBody::Precert { issuer_key_hash, .. } => {
            reading.issuer_key_hash = Some(*issuer_key_hash);
            reading.precert = true;
        }
        LeafBody::X509(_) => reading
            .deviations
            .insert_if(reading.precert, Deviation::PoisonInX509Entry),
    }
}

struct Decoded<'a> {
    leaf: Option<Leaf<'a>>,
    submitted: Option<&'a [u8]>,
    issuer: Option<&'a [u8]>,
}

impl<'a> Decoded<'a> {
    fn loose(certificate: &'a [u8], issuer: Option<&'a [u8]>) -> Self {
        Self {
            leaf: None,
            submitted: Some(certificate),
            issuer,
        }
    }

    fn tile(tile: TileLeaf<'a>) -> Self {
        let submitted = match tile.leaf.body {
            LeafBody::X509(certificate) => Some(certificate),
            LeafBody::Precert { .. } => tile.precertificate,
        };
        Self {
            leaf: Some(tile.leaf),
            submitted,
            issuer: None,
        }
    }
}

fn precert_then<'a>(certificate: &[u8], issuer: impl FnOnce() -> Option<&'a [u8]>) -> Option<&'a [u8]> {
    if certificate::may_be_precert(certificate) {
        issuer()
    } else {
        None
    }
}

fn get_entries<'s>(
    leaf_input: &[u8],
    extra_data: &[u8],
    leaf: &'s mut Vec<u8>,
    extra: &'s mut Vec<u8>,
    hash: Option<&mut Option<Hash>>,
) -> Result<Decoded<'s>, Reason> {
    decode_json(leaf_input, leaf, "leaf_input")?;
    if let Some(hash) = hash {
        *hash = Some(merkle::leaf_hash(leaf));
    }
    let parsed = Leaf::parse(leaf)?;
    let submitted = match parsed.body {
        LeafBody::X509(certificate) => Some(certificate),
        // Its absence is a deviation of the reading and no reason to lose the entry.
        LeafBody::Precert { .. } => precertificate(extra_data, extra),
    };
    Ok(Decoded {
        leaf: Some(parsed),
        submitted,
        issuer: None,
    })
}

/// Decodes the start of `extra_data` as far as the precertificate goes: the chain behind it is most of
/// the bytes.
fn precertificate<'s>(extra_data: &[u8], extra: &'s mut Vec<u8>) -> Option<&'s [u8]> {
    if !decode_prefix(extra_data, extra) {
        // The prefix holds an escape, or is damaged.
        decode_prefix(&json::bytes(extra_data)?, extra).then_some(())?;
    }
    split_precert_extra_data(extra)
        .ok()
        .map(|(precertificate, _)| precertificate)
}

/// Decodes as much of a base64 text as its first three bytes announce.
fn decode_prefix(text: &[u8], into: &mut Vec<u8>) -> bool {
    let mut length = [0u8; 4];
    let (Some(head), Some(announced)) = (text.first_chunk::<4>(), length.get_mut(1..)) else {
        return false;
    };
    if STANDARD
        .decode(head, base64_simd::Out::from_slice(announced))
        .is_err()
    {
        return false;
    }
    let bytes = 3 + u32::from_be_bytes(length) as usize;
    let prefix = text.get(..bytes.div_ceil(3) * 4).unwrap_or(text);
    decode_base64(prefix, into, "extra_data").is_ok()
}

fn chain<'s>(texts: &[u8], leaf: &'s mut Vec<u8>, extra: &'s mut Vec<u8>) -> Result<Decoded<'s>, Reason> {
    let mut texts = json::Strings::new(texts);
    let first = texts.next().ok_or(Reason::Missing { field: "chain" })?;
    decode_json(first, leaf, "chain")?;
    let leaf = &*leaf;
    let issuer = precert_then(leaf, || {
        decode_json(texts.next()?, extra, "chain").ok()?;
        Some(extra.as_slice())
    });
    Ok(Decoded::loose(leaf, issuer))
}

fn pem_block<'s>(
    body: &[u8],
    trusted: bool,
    following: &[u8],
    leaf: &'s mut Vec<u8>,
    extra: &'s mut Vec<u8>,
) -> Result<Decoded<'s>, Reason> {
    decode_pem(body, leaf)?;
    let mut certificate = leaf.as_slice();
    if trusted && let Some(bytes) = Header::element_bytes(certificate) {
        // OpenSSL's notes on trust stand behind the certificate.
        certificate = certificate.get(..bytes).unwrap_or(certificate);
    }
    let issuer = precert_then(certificate, || {
        decode_pem(pem::first(following)?, extra).ok()?;
        Some(extra.as_slice())
    });
    Ok(Decoded::loose(certificate, issuer))
}

fn decode_pem(body: &[u8], into: &mut Vec<u8>) -> Result<(), Reason> {
    decode_forgivingly(pem::without_headers(body), into, "PEM block")
}

fn extra_data_chain<'s>(
    leaf_input: &[u8],
    extra_data: &[u8],
    leaf: &mut Vec<u8>,
    extra: &'s mut Vec<u8>,
) -> Result<Chain<'s>, Reason> {
    decode_json(leaf_input, leaf, "leaf_input")?;
    decode_json(extra_data, extra, "extra_data")?;
    let list = match Leaf::parse(leaf)?.body {
        LeafBody::X509(_) => extra.as_slice(),
        LeafBody::Precert { .. } => split_precert_extra_data(extra)?.1,
    };
    CertificateList::parse(list).map(Chain::Certificates)
}

/// Gathers the rest of an add-chain body in the framing that logs use.
fn listed_chain<'s>(texts: &[u8], leaf: &mut Vec<u8>, extra: &'s mut Vec<u8>) -> Result<Chain<'s>, Reason> {
    extra.clear();
    for text in json::Strings::new(texts).skip(1) {
        decode_json(text, leaf, "chain")?;
        let [0, length @ ..] = u32::try_from(leaf.len()).unwrap_or(u32::MAX).to_be_bytes() else {
            return Err(Reason::Unexpected {
                expected: "a certificate of legal size",
            });
        };
        extra.extend(length);
        extra.extend(leaf.iter());
    }
    Ok(Chain::Certificates(CertificateList::new(extra)))
}

fn decode_json(text: &[u8], into: &mut Vec<u8>, field: &'static str) -> Result<(), Reason> {
    // No log escapes anything in base64, so escapes are looked for only where decoding fails.
    into.clear();
    if STANDARD.decode_append(text, into).is_ok() {
        return Ok(());
    }
    let text = json::bytes(text).ok_or(Reason::NotBase64 { field })?;
    decode_base64(&text, into, field)
}

/// Strict base64 at memory speed; what that refuses is tried again as browsers read it (white space,
/// no padding).
fn decode_base64(text: &[u8], into: &mut Vec<u8>, field: &'static str) -> Result<(), Reason> {
    into.clear();
    if STANDARD.decode_append(text, into).is_ok() {
        return Ok(());
    }
    decode_forgivingly(text, into, field)
}

fn decode_forgivingly(text: &[u8], into: &mut Vec<u8>, field: &'static str) -> Result<(), Reason> {
    into.clear();
    into.extend_from_slice(text);
    let bytes = forgiving_decode_inplace(into)
        .map_err(|_| Reason::NotBase64 { field })?
        .len();
    into.truncate(bytes);
    Ok(())
}
