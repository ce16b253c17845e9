//! Keys of crawler-commons' `BasicURLNormalizer` with its defaults, as its source was in 2025.
//!
//! # Limits
//! Web, `ftp:` and `file:` URLs; a URL that it makes nothing of is refused here, too. Java's own refusals
//! of rare host names are not reproduced.

use super::python::{UNRESERVED, idna_2003};
use crate::parse::sets::{ByteSet, decode_into, escape_at, push_escape};
use crate::parse::{HostError, Reject};

static UNRESERVED_SET: ByteSet = ByteSet::of(UNRESERVED, None);
/// What is escaped wherever it stands, brackets of IPv6 hosts included.
static ESCAPED: ByteSet = ByteSet::of(b" \"#<>[]^`{|}\x7f", None);

struct Parts {
    protocol: String,
    host: Vec<u8>,
    port: Option<u16>,
    file: Vec<u8>,
}

pub(super) fn normalize(input: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
    if input.is_empty() {
        return Ok(());
    }
    let start = input.iter().position(|&byte| byte > b' ').unwrap_or(input.len());
    let end = input
        .iter()
        .rposition(|&byte| byte > b' ')
        .map_or(start, |last| last + 1);
    let trimmed = input.get(start..end).unwrap_or_default();
    let escaped = escape(trimmed.split(|&byte| byte == b'#').next().unwrap_or_default());
    let Parts {
        protocol,
        host,
        port,
        mut file,
    } = match parts(&escaped) {
        Err(reject) if !has_scheme(&escaped) => {
            parts(&[b"http://", escaped.as_slice()].concat()).map_err(|_| reject)?
        }
        parts => parts?,
    };
    let web = protocol != "file";
    let mut normal = true;
    let host = if web { host_name(&host)? } else { host };
    if web && !file.starts_with(b"/") {
        file.insert(0, b'/');
        normal = false;
    }
    let mut file = unescaped_file(&file)?;
    if normal {
        file = normal_file(&file);
    }
    out.extend_from_slice(protocol.as_bytes());
    out.push(b':');
    if !host.is_empty() {
        out.extend_from_slice(b"//");
        out.extend_from_slice(&host);
        if let Some(port) = port {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
    } else if !web && escaped.starts_with(b"file:///") && escaped.get(7..) == Some(file.as_slice()) {
        // Nothing changed, so the three slashes stay.
        out.extend_from_slice(b"//");
    }
    out.extend_from_slice(&file);
    Ok(())
}

fn has_scheme(url: &[u8]) -> bool {
    scheme(url).is_some_and(|(_, rest)| rest.starts_with(b"/"))
}

fn scheme(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', url)?;
    let (scheme, rest) = url.split_at(colon);
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    (scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(fits))
        .then_some((scheme, rest.get(1..).unwrap_or_default()))
}

fn parts(url: &[u8]) -> Result<Parts, Reject> {
    let (scheme, rest) = scheme(url).ok_or(Reject::NoScheme)?;
    // Java's URI takes no backslash.
    if rest.is_empty() || rest.contains(&b'\\') {
        return Err(Reject::NoScheme);
    }
    let protocol = String::from_utf8_lossy(scheme).to_ascii_lowercase();
    let default = match protocol.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        "ftp" => Some(21),
        "file" => None,
        _ => return Err(Reject::NotHierarchical),
    };
    let (authority, file) = match rest.strip_prefix(b"//") {
        Some(rest) => {
            let cut = rest
                .iter()
                .position(|byte| b"/?".contains(byte))
                .unwrap_or(rest.len());
            rest.split_at(cut)
        }
        None => (&[][..], rest),
    };
    let at = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let authority = authority.get(at..).unwrap_or_default();
    let (host, port) = authority.split_at(memchr::memchr(b':', authority).unwrap_or(authority.len()));
    let port = match port.get(1..).unwrap_or_default() {
        [] => None,
        digits => {
            let number = std::str::from_utf8(digits)
                .ok()
                .filter(|text| !text.starts_with('+'));
            Some(number.and_then(|text| text.parse().ok()).ok_or(Reject::Port)?)
        }
    };
    Ok(Parts {
        protocol,
        host: host.to_vec(),
        port: port.filter(|port| Some(*port) != default),
        file: file.to_vec(),
    })
}

fn escape(url: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(url.len());
    let mut rest = url;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            out.extend_from_slice(if escape_at(rest).is_some() { b"%" } else { b"%25" });
        } else if byte < b' ' || byte >= 0x80 || ESCAPED.has(byte) {
            push_escape(byte, &mut out);
        } else {
            out.push(byte);
        }
        rest = tail;
    }
    out
}

fn host_name(host: &[u8]) -> Result<Vec<u8>, Reject> {
    let mut plain = Vec::new();
    if host.contains(&b'%') {
        let spaced: Vec<u8> = host
            .iter()
            .map(|&byte| if byte == b'+' { b' ' } else { byte })
            .collect();
        decode_into(&spaced, &mut plain);
    } else {
        plain.extend_from_slice(host);
    }
    let lower = String::from_utf8_lossy(&plain).to_lowercase();
    let ascii = if lower.is_ascii() {
        lower
    } else {
        idna_2003(&lower).ok_or(Reject::Host(HostError::Idna))?
    };
    let ascii = ascii.strip_suffix('.').unwrap_or(&ascii);
    // The key is parsed once more by Java, which takes no such host.
    if ascii
        .bytes()
        .any(|byte| byte <= b' ' || b"\"<>\\^`{|}[]%".contains(&byte))
    {
        return Err(Reject::Host(HostError::Forbidden));
    }
    Ok(ascii.as_bytes().to_vec())
}

/// Escapes of unreserved letters decoded, others in upper case.
fn unescape(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(file.len());
    let mut rest = file;
    while let Some((&byte, tail)) = rest.split_first() {
        match escape_at(rest) {
            Some(decoded) => {
                if UNRESERVED_SET.has(decoded) {
                    out.push(decoded);
                } else {
                    push_escape(decoded, &mut out);
                }
                rest = rest.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

/// The place of the `?` is taken before escapes are decoded and used after, so a decoded escape in the path
/// moves letters between path and query. Those keys are what sets of that tool hold.
fn unescaped_file(file: &[u8]) -> Result<Vec<u8>, Reject> {
    let Some(mark) = memchr::memchr(b'?', file) else {
        return Ok(unescape(file));
    };
    if mark + 1 == file.len() {
        return Ok(unescape(file.get(..mark).unwrap_or_default()));
    }
    let file = unescape(file);
    let (Some(path), Some(query)) = (file.get(..mark), file.get(mark + 1..)) else {
        return Err(Reject::NoScheme);
    };
    let mut parameters: Vec<(&[u8], &[u8])> = query
        .split(|&byte| byte == b'&')
        .map(|parameter| {
            let at = memchr::memchr(b'=', parameter).unwrap_or(parameter.len());
            let (name, value) = parameter.split_at(at);
            (name, value.get(1..).unwrap_or_default())
        })
        .filter(|(name, _)| !name.is_empty())
        .collect();
    parameters.sort_by_key(|(name, _)| *name);
    let mut out = path.to_vec();
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        out.push(if index == 0 { b'?' } else { b'&' });
        out.extend_from_slice(name);
        if !value.is_empty() {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    Ok(out)
}

/// Java's `URI.normalize`, and leading `/..` taken off.
fn normal_file(file: &[u8]) -> Vec<u8> {
    let cut = memchr::memchr(b'?', file).unwrap_or(file.len());
    let (path, query) = file.split_at(cut);
    let odd = path.windows(2).any(|pair| matches!(pair, b"/." | b"//" | b"./"));
    let mut normal = if odd { normal_path(path) } else { path.to_vec() };
    let mut start = 0;
    while odd
        && normal.get(start..).is_some_and(|rest| rest.starts_with(b"/.."))
        && (start + 3 == normal.len() + query.len() || normal.get(3) == Some(&b'/'))
    {
        start += 3;
    }
    normal.drain(..start);
    if !normal.starts_with(b"/") {
        normal.insert(0, b'/');
    }
    normal.extend_from_slice(query);
    normal
}

fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments = path
        .split(|&byte| byte == b'/')
        .filter(|segment| !segment.is_empty());
    let mut directory = path.ends_with(b"/");
    for segment in segments {
        directory = path.ends_with(b"/") || matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => {
                kept.pop();
            }
            _ => {
                directory &= segment != b".." || path.ends_with(b"/");
                kept.push(segment);
            }
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if directory || out.is_empty() {
        out.push(b'/');
    }
    out
}
