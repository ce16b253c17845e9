//! Keys of the Python package `surt` 0.3.1: reversed host, everything decoded, lower case.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::python::{UNRESERVED, idna_2003, quote_into, unescape_repeatedly};
use crate::parse::Reject;
use crate::parse::sets::ByteSet;

static UNRESERVED_SET: ByteSet = ByteSet::of(UNRESERVED, None);
static SAFE: ByteSet = ByteSet::of(br##"!"$&'()*+,-./:;<=>?@[\]^_`{|}~"##, Some(&UNRESERVED_SET));

fn expression(pattern: &str) -> Option<Regex> {
    regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .build()
        .ok()
}

static PATH_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"^(.*/)(\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$",
        r"^(.*/)(\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$",
    ]
    .into_iter()
    .filter_map(expression)
    .collect()
});

static QUERY_SESSIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"^(.*)(?:jsessionid=[0-9a-zA-Z]{32})(?:&(.*))?$",
        r"^(.*)(?:phpsessid=[0-9a-zA-Z]{32})(?:&(.*))?$",
        r"^(.*)(?:sid=[0-9a-zA-Z]{32})(?:&(.*))?$",
        r"^(.*)(?:ASPSESSIONID[a-zA-Z]{8}=[a-zA-Z]{24})(?:&(.*))?$",
        r"^(.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$",
    ]
    .into_iter()
    .filter_map(expression)
    .collect()
});

struct Parts {
    scheme: Vec<u8>,
    host: Option<Vec<u8>>,
    port: Option<u16>,
    path: Option<Vec<u8>>,
    query: Option<Vec<u8>>,
}

pub(super) fn surt(input: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
    if input.is_empty() || input.starts_with(b"filedesc") {
        out.extend_from_slice(if input.is_empty() { b"-" } else { input });
        return Ok(());
    }
    let parts = parse(input)?;
    let host = parts.host.map(|host| massage(&canonical_host(&host)));
    let host = host.filter(|host| !host.is_empty());
    match &host {
        Some(host) => {
            for (index, label) in host.rsplit(|&byte| byte == b'.').enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(label);
            }
            let default = match parts.scheme.to_ascii_lowercase().as_slice() {
                b"http" => 80,
                b"https" => 443,
                _ => 0,
            };
            if let Some(port) = parts.port.filter(|&port| port != default) {
                out.extend_from_slice(format!(":{port}").as_bytes());
            }
            out.push(b')');
        }
        None => {
            out.extend_from_slice(&parts.scheme);
            out.push(b':');
        }
    }
    path(parts.path, host.is_some(), out);
    if let Some(query) = parts.query {
        query_into(&query, out);
    }
    Ok(())
}

fn parse(input: &[u8]) -> Result<Parts, Reject> {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = input.iter().position(|byte| !space(byte)).unwrap_or(input.len());
    let end = input
        .iter()
        .rposition(|byte| !space(byte))
        .map_or(start, |last| last + 1);
    let mut url: Vec<u8> = input.get(start..end).unwrap_or_default().to_vec();
    url.retain(|byte| !b"\n\r\t".contains(byte));
    // Python fails on nothing but spaces.
    if url.is_empty() {
        return Err(Reject::NoScheme);
    }
    if scheme_end(&url).is_none() {
        url.splice(0..0, *b"http://");
    }
    let mut rest = url.as_slice();
    let mut last = &[][..];
    while let Some(prefix) = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix))
    {
        last = prefix;
        rest = rest.get(prefix.len()..).unwrap_or_default();
    }
    let url = [last, rest].concat();
    let colon = scheme_end(&url).ok_or(Reject::NoScheme)?;
    let (scheme, rest) = url.split_at(colon);
    let rest = rest.get(1..).unwrap_or_default();
    let rest = rest.split(|&byte| byte == b'#').next().unwrap_or_default();
    let cut = memchr::memchr(b'?', rest).unwrap_or(rest.len());
    let (before, query) = rest.split_at(cut);
    let (netloc, path) = match before.strip_prefix(b"//") {
        Some(rest) => rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len())),
        None => (&[][..], before),
    };
    let (mut host, port) = host_and_port(netloc)?;
    let some = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.to_vec());
    let mut path = some(path);
    if scheme.starts_with(b"http")
        && host.is_none()
        && let Some(all) = &path
    {
        let slashes = all.iter().take_while(|&&byte| byte == b'/').count();
        let all = all.get(slashes..).unwrap_or_default();
        let (name, rest) = all.split_at(memchr::memchr(b'/', all).unwrap_or(all.len()));
        host = Some(name.to_vec());
        path = Some([b"/", rest.get(1..).unwrap_or_default()].concat());
    }
    Ok(Parts {
        scheme: scheme.to_vec(),
        host,
        port,
        path,
        query: some(query.get(1..).unwrap_or_default()),
    })
}

fn scheme_end(url: &[u8]) -> Option<usize> {
    let colon = memchr::memchr(b':', url)?;
    let scheme = url.get(..colon)?;
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    (scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(fits)).then_some(colon)
}

/// As Python's `SplitResult` reads them.
fn host_and_port(netloc: &[u8]) -> Result<(Option<Vec<u8>>, Option<u16>), Reject> {
    let mut netloc = netloc;
    while let Some(rest) = netloc.strip_suffix(b":") {
        netloc = rest;
    }
    let at = memchr::memrchr(b'@', netloc).map_or(0, |at| at + 1);
    let host = netloc.get(at..).unwrap_or_default();
    let (host, port) = match memchr::memchr(b'[', host) {
        Some(open) => {
            let inner = host.get(open + 1..).unwrap_or_default();
            let (host, rest) = inner.split_at(memchr::memchr(b']', inner).unwrap_or(inner.len()));
            let port = memchr::memchr(b':', rest).map_or(&[][..], |at| rest.get(at..).unwrap_or_default());
            (host, port)
        }
        None => host.split_at(memchr::memchr(b':', host).unwrap_or(host.len())),
    };
    let mut lower = host.to_vec();
    let zone = memchr::memchr(b'%', &lower).unwrap_or(lower.len());
    lower.iter_mut().take(zone).for_each(u8::make_ascii_lowercase);
    let port = port.get(1..).unwrap_or_default();
    let port = match port {
        [] => None,
        digits if digits.iter().all(u8::is_ascii_digit) => {
            let number = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse().ok());
            Some(number.ok_or(Reject::Port)?).filter(|&port| port != 0)
        }
        _ => return Err(Reject::Port),
    };
    Ok(((!lower.is_empty()).then_some(lower), port))
}

fn canonical_host(host: &[u8]) -> Vec<u8> {
    let mut host = unescape_repeatedly(host);
    if !host.is_ascii() {
        let text: String = host.utf8_chunks().map(|chunk| chunk.valid()).collect();
        if let Some(ascii) = idna_2003(&text) {
            host = ascii.into_bytes();
        }
    }
    let mut single = Vec::with_capacity(host.len());
    let mut rest = host.as_slice();
    while let Some((&byte, tail)) = rest.split_first() {
        single.push(byte);
        rest = if byte == b'.' {
            tail.strip_prefix(b".").unwrap_or(tail)
        } else {
            tail
        };
    }
    let start = single
        .iter()
        .position(|&byte| byte != b'.')
        .unwrap_or(single.len());
    let end = single
        .iter()
        .rposition(|&byte| byte != b'.')
        .map_or(start, |last| last + 1);
    let host = single.get(start..end).unwrap_or_default();
    if let Some(address) = address(host) {
        return address.into_bytes();
    }
    let mut escaped = Vec::new();
    quote_into(&host.to_ascii_lowercase(), &SAFE, &mut escaped);
    escaped.make_ascii_lowercase();
    escaped
}

/// What `inet_aton` makes of digits and dots. A single number wraps at 32 bits.
fn address(host: &[u8]) -> Option<String> {
    if !host.first()?.is_ascii_digit() || !host.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let parts: Vec<&[u8]> = host.split(|&byte| byte == b'.').collect();
    if let [only] = parts.as_slice() {
        let number = only.iter().fold(0u32, |number, digit| {
            number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
        });
        return Some(std::net::Ipv4Addr::from(number).to_string());
    }
    let mut address = 0u64;
    for (index, part) in parts.iter().enumerate() {
        let radix = if part.len() > 1 && part.starts_with(b"0") {
            8
        } else {
            10
        };
        let number = u64::from_str_radix(std::str::from_utf8(part).ok()?, radix).ok()?;
        let bytes = if index + 1 == parts.len() {
            5usize.checked_sub(parts.len())?
        } else {
            1
        };
        if number >= 1 << (8 * bytes) {
            return None;
        }
        address = address << (8 * bytes) | number;
    }
    Some(std::net::Ipv4Addr::from(u32::try_from(address).ok()?).to_string())
}

fn massage(host: &[u8]) -> Vec<u8> {
    if let Some(rest) = host.strip_prefix(b"www") {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if let Some(rest) = rest.get(digits..).and_then(|rest| rest.strip_prefix(b".")) {
            return rest.to_vec();
        }
    }
    host.to_vec()
}

fn path(path: Option<Vec<u8>>, has_host: bool, out: &mut Vec<u8>) {
    let path = path.map(|path| unescape_repeatedly(&path));
    let path = match path {
        None if has_host => b"/".to_vec(),
        None => return,
        Some(path) if has_host => normal_path(&path),
        Some(path) => path,
    };
    let mut escaped = Vec::new();
    quote_into(&path, &SAFE, &mut escaped);
    escaped.make_ascii_lowercase();
    for session in PATH_SESSIONS.iter() {
        if let Some(found) = session.captures(&escaped)
            && let (Some(before), Some(behind)) = (found.get(1), found.get(3))
        {
            escaped = [before.as_bytes(), behind.as_bytes()].concat();
        }
    }
    if escaped.len() > 1 && escaped.ends_with(b"/") {
        escaped.pop();
    }
    out.extend_from_slice(&escaped);
}

fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut normal = b"/".to_vec();
    if let Some((last, head)) = kept.split_last() {
        for segment in head.iter().filter(|segment| !segment.is_empty()) {
            normal.extend_from_slice(segment);
            normal.push(b'/');
        }
        normal.extend_from_slice(last);
    }
    normal
}

fn query_into(query: &[u8], out: &mut Vec<u8>) {
    let mut escaped = Vec::new();
    quote_into(&unescape_repeatedly(query), &SAFE, &mut escaped);
    for session in QUERY_SESSIONS.iter() {
        if let Some(found) = session.captures(&escaped) {
            let part = |index| found.get(index).map_or(&[][..], |part| part.as_bytes());
            escaped = [part(1), part(2)].concat();
        }
    }
    escaped.make_ascii_lowercase();
    if escaped.is_empty() {
        return;
    }
    out.push(b'?');
    let mut parameters: Vec<(&[u8], Option<&[u8]>)> = escaped
        .split(|&byte| byte == b'&')
        .map(|parameter| match memchr::memchr(b'=', parameter) {
            Some(at) => (parameter.get(..at).unwrap_or_default(), parameter.get(at + 1..)),
            None => (parameter, None),
        })
        .collect();
    parameters.sort();
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
}
