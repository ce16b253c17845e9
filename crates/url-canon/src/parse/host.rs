//! Hosts as the URL Standard reads them: domains, IPv4 in all its spellings, IPv6, opaque hosts.
//!
//! <https://url.spec.whatwg.org/#host-parsing>. A domain of ASCII is lower-cased and no more, as the
//! standard has it now: a label `xn--…` that decodes to nothing is kept. A domain with other letters goes
//! through UTS 46, non-transitional, with the tables browsers use.

use super::sets::{self, C0_CONTROL, FORBIDDEN_DOMAIN, FORBIDDEN_HOST};
use crate::rule::{Rule, RuleBits};

/// What kind of host a URL has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostKind {
    /// No authority at all (`mailto:a@b`, `x:/path`).
    #[default]
    None,
    /// An authority without a host (`file:///x`, `x:///y`).
    Empty,
    /// A domain of a special scheme, in ASCII and lower case.
    Domain,
    /// An IPv4 address in dotted decimal.
    Ipv4,
    /// An IPv6 address in brackets, compressed.
    Ipv6,
    /// Whatever a scheme that is not special calls a host.
    Opaque,
}

/// Why a host was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing between the slashes.
    #[error("it is empty")]
    Empty,
    /// A character that no host may hold, plain or as an escape.
    #[error("it holds a character that no host may hold")]
    Forbidden,
    /// Bytes, or escapes, that are no UTF-8.
    #[error("it is no UTF-8")]
    NotUtf8,
    /// UTS 46 refuses the name.
    #[error("UTS 46 refuses the name")]
    Idna,
    /// It ends in a number, so it is an IPv4 address, and not a valid one.
    #[error("it ends in a number and is no IPv4 address")]
    Ipv4,
    /// Brackets around what is no IPv6 address.
    #[error("it is no IPv6 address")]
    Ipv6,
}

/// Appends the serialised host.
pub(super) fn parse(
    input: &[u8],
    special: bool,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
    fired: &mut RuleBits,
) -> Result<HostKind, HostError> {
    if let Some(inner) = input.strip_prefix(b"[") {
        let address = inner.strip_suffix(b"]").ok_or(HostError::Ipv6)?;
        let start = out.len();
        ipv6_into(parse_ipv6(address).ok_or(HostError::Ipv6)?, out);
        if out.get(start..) != Some(input) {
            fired.set(Rule::IpAddress);
        }
        return Ok(HostKind::Ipv6);
    }
    if !special {
        if FORBIDDEN_HOST.find(input).is_some() {
            return Err(HostError::Forbidden);
        }
        if sets::encode_into(input, &C0_CONTROL, out) {
            fired.set(Rule::PercentEncode);
        }
        return Ok(if input.is_empty() {
            HostKind::Empty
        } else {
            HostKind::Opaque
        });
    }
    let start = out.len();
    domain_into(input, scratch, out, fired)?;
    let domain = out.get(start..).unwrap_or_default();
    if domain.is_empty() {
        return Err(HostError::Empty);
    }
    if ends_in_number(domain) {
        let address = parse_ipv4(domain).ok_or(HostError::Ipv4)?;
        out.truncate(start);
        ipv4_into(address, out);
        if out.get(start..) != Some(input) {
            fired.set(Rule::IpAddress);
        }
        return Ok(HostKind::Ipv4);
    }
    Ok(HostKind::Domain)
}

fn domain_into(
    input: &[u8],
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
    fired: &mut RuleBits,
) -> Result<(), HostError> {
    let (mut plain, mut upper) = (true, false);
    for &byte in input {
        plain &= byte < 0x80 && !FORBIDDEN_DOMAIN.has(byte);
        upper |= byte.is_ascii_uppercase();
    }
    if plain {
        append_lower(input, upper, out, fired);
        return Ok(());
    }
    scratch.clear();
    sets::decode_into(input, scratch);
    if scratch != input {
        fired.set(Rule::HostEscapes);
    }
    if scratch.is_ascii() {
        if FORBIDDEN_DOMAIN.find(scratch).is_some() {
            return Err(HostError::Forbidden);
        }
        let upper = scratch.iter().any(u8::is_ascii_uppercase);
        append_lower(scratch, upper, out, fired);
        return Ok(());
    }
    std::str::from_utf8(scratch).map_err(|_| HostError::NotUtf8)?;
    let ascii = idna::uts46::Uts46::new()
        .to_ascii(
            scratch,
            idna::AsciiDenyList::EMPTY,
            idna::uts46::Hyphens::Allow,
            idna::uts46::DnsLength::Ignore,
        )
        .map_err(|_| HostError::Idna)?;
    if FORBIDDEN_DOMAIN.find(ascii.as_bytes()).is_some() {
        return Err(HostError::Forbidden);
    }
    fired.set(Rule::Idn);
    out.extend_from_slice(ascii.as_bytes());
    Ok(())
}

fn append_lower(ascii: &[u8], upper: bool, out: &mut Vec<u8>, fired: &mut RuleBits) {
    let start = out.len();
    out.extend_from_slice(ascii);
    if upper {
        fired.set(Rule::HostCase);
        if let Some(host) = out.get_mut(start..) {
            host.make_ascii_lowercase();
        }
    }
}

/// Whether the last label is a number, and so the host an IPv4 address or an error.
fn ends_in_number(domain: &[u8]) -> bool {
    let trimmed = match domain.strip_suffix(b".") {
        Some(rest) if !rest.is_empty() => rest,
        Some(_) => return false,
        None => domain,
    };
    let last = trimmed.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    match last.first() {
        Some(b'0'..=b'9') => last.iter().all(u8::is_ascii_digit) || ipv4_number(last).is_some(),
        _ => false,
    }
}

/// A number in decimal, octal (`0…`) or hexadecimal (`0x…`); far too large ones saturate.
fn ipv4_number(part: &[u8]) -> Option<u64> {
    let (digits, radix) = match part {
        [] => return None,
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = sets::hex(digit).filter(|&digit| digit < radix)?;
        Some(
            value
                .saturating_mul(u64::from(radix))
                .saturating_add(u64::from(digit)),
        )
    })
}

fn parse_ipv4(domain: &[u8]) -> Option<u32> {
    let domain = domain.strip_suffix(b".").unwrap_or(domain);
    let mut numbers = [0u64; 4];
    let mut count = 0u32;
    for part in domain.split(|&byte| byte == b'.') {
        *numbers.get_mut(count as usize)? = ipv4_number(part)?;
        count += 1;
    }
    let (last, head) = numbers.get(..count as usize)?.split_last()?;
    // The last number fills the bytes that the others leave.
    if *last >= 1u64 << (8 * (5 - count)) {
        return None;
    }
    let mut address = u32::try_from(*last).ok()?;
    for (index, &number) in (0u32..).zip(head) {
        address |= u32::from(u8::try_from(number).ok()?) << (8 * (3 - index));
    }
    Some(address)
}

fn ipv4_into(address: u32, out: &mut Vec<u8>) {
    for (index, byte) in address.to_be_bytes().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        decimal_into(byte.into(), out);
    }
}

/// Appends a number in decimal.
pub(super) fn decimal_into(number: u16, out: &mut Vec<u8>) {
    let mut divisor = 10_000;
    while divisor > 1 && number < divisor {
        divisor /= 10;
    }
    while divisor > 0 {
        out.push(b'0' + u8::try_from(number / divisor % 10).unwrap_or_default());
        divisor /= 10;
    }
}

/// <https://url.spec.whatwg.org/#concept-ipv6-parser>.
fn parse_ipv6(mut input: &[u8]) -> Option<[u16; 8]> {
    let mut pieces = [0u16; 8];
    let (mut count, mut compress) = (0usize, None);
    if let Some(rest) = input.strip_prefix(b":") {
        input = rest.strip_prefix(b":")?;
        compress = Some(0);
    }
    while !input.is_empty() {
        if count == 8 {
            return None;
        }
        if let Some(rest) = input.strip_prefix(b":") {
            if compress.is_some() {
                return None;
            }
            input = rest;
            compress = Some(count);
            continue;
        }
        let digits = input
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let (number, rest) = input.split_at(digits);
        if rest.first() == Some(&b'.') {
            if digits == 0 || count > 6 {
                return None;
            }
            let [high, low] = embedded_ipv4(input)?;
            *pieces.get_mut(count)? = high;
            *pieces.get_mut(count + 1)? = low;
            count += 2;
            break;
        }
        let value = number.iter().try_fold(0u16, |value, &digit| {
            Some(value << 4 | u16::from(sets::hex(digit)?))
        })?;
        input = match rest.split_first() {
            Some((b':', rest)) if !rest.is_empty() => rest,
            None => rest,
            Some(_) => return None,
        };
        *pieces.get_mut(count)? = value;
        count += 1;
    }
    match compress {
        Some(at) => {
            let tail = count - at;
            for index in (0..tail).rev() {
                pieces.swap(at + index, 8 - tail + index);
            }
            Some(pieces)
        }
        None => (count == 8).then_some(pieces),
    }
}

/// Four decimal numbers without leading zeros, and nothing behind them.
fn embedded_ipv4(input: &[u8]) -> Option<[u16; 2]> {
    let mut bytes = [0u8; 4];
    let mut count = 0;
    for part in input.split(|&byte| byte == b'.') {
        if !matches!(part, [b'0'] | [b'1'..=b'9', ..]) || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        *bytes.get_mut(count)? = std::str::from_utf8(part).ok()?.parse().ok()?;
        count += 1;
    }
    let [a, b, c, d] = bytes;
    (count == 4).then_some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// An IPv6 address as it is serialised, in brackets.
pub(crate) fn ipv6_text(pieces: [u16; 8]) -> String {
    let mut text = Vec::new();
    ipv6_into(pieces, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn ipv6_into(pieces: [u16; 8], out: &mut Vec<u8>) {
    use std::io::Write;
    let run = longest_zeros(pieces);
    out.push(b'[');
    let mut index = 0;
    while let Some(piece) = pieces.get(index) {
        if let Some((start, length)) = run.filter(|&(start, _)| start == index) {
            out.extend_from_slice(if start == 0 { b"::" } else { b":" });
            index += length;
            continue;
        }
        // Writing to memory cannot fail.
        let _ = write!(out, "{piece:x}");
        index += 1;
        if index < 8 {
            out.push(b':');
        }
    }
    out.push(b']');
}

/// The first of the longest runs of two zeros or more.
fn longest_zeros(pieces: [u16; 8]) -> Option<(usize, usize)> {
    let mut longest: Option<(usize, usize)> = None;
    let mut start = 0;
    while start < 8 {
        let length = pieces.iter().skip(start).take_while(|&&piece| piece == 0).count();
        if length > 1 && longest.is_none_or(|(_, best)| length > best) {
            longest = Some((start, length));
        }
        start += length.max(1);
    }
    longest
}
