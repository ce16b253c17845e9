//! What the subject says: common names, organisation, and the names hidden in them.

use tamis_hostname::{self as hostname, Identifier};

use super::distinguished_name::{COMMON_NAME, EMAIL_ADDRESS, ORGANISATION, each_attribute};
use super::extensions::host_bits;
use super::names::{EXACT, Kind, WILDCARD};
use super::reading::Reading;
use super::{ReadOptions, text};
use crate::der::Element;
use crate::deviation::{Deviation, Deviations};

/// What is left to do once the alternative names are known: e-mail addresses, at most a few.
#[derive(Default)]
pub(crate) struct Subject<'a> {
    emails: [Option<Element<'a>>; 4],
}

/// Reads common names and organisation.
pub(crate) fn read<'a>(subject: Option<Element<'a>>, reading: &mut Reading) -> Subject<'a> {
    let mut found = Subject::default();
    let is_name = subject.is_some_and(|subject| subject.is_sequence());
    reading
        .deviations
        .insert_if(!is_name, Deviation::SubjectUnreadable);
    let Some(subject) = subject else { return found };
    let mut deviations = Deviations::NONE;
    let clean = each_attribute(subject.content, &mut deviations, |kind, value, deviations| {
        if kind == COMMON_NAME {
            let text = text::decode(value.tag, value.content, deviations);
            reading.add_common_name(&text);
        } else if kind == ORGANISATION {
            if reading.subject_organisation().is_none() {
                let text = text::decode(value.tag, value.content, deviations);
                reading.set_subject_organisation(&text);
            }
        } else if kind == EMAIL_ADDRESS
            && let Some(free) = found.emails.iter_mut().find(|email| email.is_none())
        {
            *free = Some(value);
        }
    });
    deviations.insert_if(!clean, Deviation::SubjectUnreadable);
    reading.deviations = reading.deviations | deviations;
    found
}

/// Adds the names that the subject holds to those of the extension.
pub(crate) fn add_names(subject: &Subject<'_>, options: &ReadOptions, reading: &mut Reading) {
    let common_names = reading.common_names().len();
    for at in 0..common_names {
        reading.with_common_name(at, |reading, common_name| {
            add_common_name(common_name, options, reading)
        });
    }
    for email in subject.emails.iter().flatten() {
        let text = text::decode(email.tag, email.content, &mut reading.deviations);
        match hostname::read(text.as_bytes()) {
            Identifier::Email(email) => reading.add(Kind::Email, 0, &email, options),
            _ if text.is_empty() => {}
            _ => reading.add(Kind::Other, 0, &text, options),
        }
    }
}

/// A common name is a host name only where it has a dot; what is no identifier stays a common name.
fn add_common_name(common_name: &str, options: &ReadOptions, reading: &mut Reading) {
    let (host, bits) = match common_name.strip_prefix("*.") {
        Some(host) => (host, WILDCARD),
        None => (common_name, EXACT),
    };
    if reading.has_host(host, bits) {
        return;
    }
    match hostname::read(common_name.as_bytes()) {
        Identifier::Host(host) if host.host().contains('.') => {
            reading.add(Kind::Host, host_bits(host.wildcard()), host.host(), options);
        }
        Identifier::Host(_) | Identifier::Other(_) => {}
        identifier => reading.add_identifier(&identifier, options),
    }
}
