//! Keys of crawler-commons 1.5, `BasicURLNormalizer` with its defaults, over `java.net.URL`.
//!
//! # Limits
//! `jar:` URLs are refused; what Java's IDN refuses of rare names is not reproduced exactly.

use super::python::{UNRESERVED, idna_2003};
use crate::parse::sets::{ByteSet, decode_into, escape_at, push_escape};
use crate::parse::{HostError, Reject};

static UNRESERVED_SET: ByteSet = ByteSet::of(UNRESERVED, None);
/// What is escaped wherever it stands in path and query.
static ESCAPED: ByteSet = ByteSet::of(b" \"#<>[]^`{|}\x7f", None);

struct Parts {
    protocol: String,
    /// None: no authority, or one that Java makes nothing of.
    host: Option<Vec<u8>>,
    port: Option<u32>,
    given_port: Option<u32>,
    default_port: Option<u32>,
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
    let url = input.get(start..end).unwrap_or_default();
    let mut added = false;
    let parts = match parts(url) {
        Err(reject) if !has_scheme(url) => {
            added = true;
            parts(&[b"http://", url].concat()).map_err(|_| reject)?
        }
        parts => parts?,
    };
    let web = !matches!(parts.protocol.as_str(), "file" | "mailto");
    let host = match (&parts.host, web) {
        (Some(host), true) => Some(host_name(host)?),
        _ => parts.host.clone(),
    };
    let mut file = parts.file.clone();
    let mut normal = parts.protocol != "mailto";
    if web && !file.starts_with(b"/") {
        file.insert(0, b'/');
        normal = false;
    }
    let mut file = spelled_file(&file)?;
    // Java makes no URI of such a URL, and then leaves the path alone.
    let odd = |byte: &u8| b" \"<>\\^`{|}%".contains(byte);
    let odd_host = host.as_ref().is_some_and(|host| host.iter().any(odd));
    if normal && !odd_host && !file.contains(&b'\\') {
        file = normal_file(&file);
    }
    // Java knows no default port without a host.
    let port_goes = parts.given_port.is_some() && parts.port == parts.default_port;
    let usual = !port_goes && !url.contains(&b'#') && !added;
    if usual && host == parts.host && file == parts.file && url.starts_with(parts.protocol.as_bytes()) {
        // Nothing changed, so even `http:///` stays.
        if host.as_ref().is_some_and(Vec::is_empty) {
            out.extend_from_slice(url);
            return Ok(());
        }
    }
    out.extend_from_slice(parts.protocol.as_bytes());
    out.push(b':');
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        out.extend_from_slice(b"//");
        out.extend_from_slice(&host);
        if let Some(port) = parts.port.filter(|_| parts.port != parts.default_port) {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
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

/// As `java.net.URL` reads it.
fn parts(url: &[u8]) -> Result<Parts, Reject> {
    let url = match url.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case(b"url:") => url.get(4..).unwrap_or_default(),
        _ => url,
    };
    let (scheme, rest) = scheme(url).ok_or(Reject::NoScheme)?;
    let rest = rest.split(|&byte| byte == b'#').next().unwrap_or_default();
    let protocol = String::from_utf8_lossy(scheme).to_ascii_lowercase();
    let default_port = match protocol.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        "ftp" => Some(21),
        "file" | "mailto" => None,
        _ => return Err(Reject::NotHierarchical),
    };
    let (authority, file) = match rest.strip_prefix(b"//").filter(|rest| !rest.starts_with(b"//")) {
        Some(rest) => {
            let cut = rest
                .iter()
                .position(|byte| b"/?".contains(byte))
                .unwrap_or(rest.len());
            let (authority, file) = rest.split_at(cut);
            (Some(authority), file)
        }
        None => (None, rest),
    };
    let (host, port) = match authority {
        Some(authority) if authority.iter().filter(|&&byte| byte == b'@').count() < 2 => {
            let (host, port) = host_and_port(authority)?;
            (Some(host.to_vec()), port)
        }
        _ => (None, None),
    };
    Ok(Parts {
        protocol,
        host,
        port: port.or(default_port),
        given_port: port,
        default_port,
        file: file.to_vec(),
    })
}

fn host_and_port(authority: &[u8]) -> Result<(&[u8], Option<u32>), Reject> {
    let at = memchr::memchr(b'@', authority).map_or(0, |at| at + 1);
    let authority = authority.get(at..).unwrap_or_default();
    let end = if authority.starts_with(b"[") {
        let end = memchr::memchr(b']', authority).ok_or(Reject::Host(HostError::Ipv6))? + 1;
        let address = authority.get(1..end - 1).unwrap_or_default();
        let address = std::str::from_utf8(address).ok();
        address
            .and_then(|address| address.parse::<std::net::Ipv6Addr>().ok())
            .ok_or(Reject::Host(HostError::Ipv6))?;
        end
    } else {
        memchr::memchr(b':', authority).unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(end);
    let digits = match port {
        [] | [b':'] => return Ok((host, None)),
        [b':', digits @ ..] => digits,
        _ => return Err(Reject::Port),
    };
    let number: i32 = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .filter(|&number| number >= -1)
        .ok_or(Reject::Port)?;
    Ok((host, u32::try_from(number).ok()))
}

/// Escapes what must be, and each `%` that starts no escape.
fn escape(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(file.len());
    let mut rest = file;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            out.extend_from_slice(if escape_at(rest).is_some() { b"%" } else { b"%25" });
        } else if !(b' '..0x80).contains(&byte) || ESCAPED.has(byte) {
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
        let stray = |at: usize| escape_at(host.get(at..).unwrap_or_default()).is_none();
        if memchr::memchr_iter(b'%', host).any(stray) {
            return Err(Reject::Host(HostError::Forbidden));
        }
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
    Ok(ascii.strip_suffix('.').unwrap_or(&ascii).as_bytes().to_vec())
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

/// The place of the `?`, in characters, is taken before escapes are decoded and made, and used after: a
/// changed path moves letters between path and query. Those keys are what sets of that tool hold.
fn spelled_file(file: &[u8]) -> Result<Vec<u8>, Reject> {
    let Some(mark) = memchr::memchr(b'?', file) else {
        return Ok(escape(&unescape(file)));
    };
    if mark + 1 == file.len() {
        return Ok(escape(&unescape(file.get(..mark).unwrap_or_default())));
    }
    let before = String::from_utf8_lossy(file.get(..mark).unwrap_or_default());
    let mark = before.encode_utf16().count();
    let file = escape(&unescape(file));
    // Java fails beyond the end.
    let (Some(path), Some(query)) = (
        file.get(..mark),
        file.get(mark + 1..).filter(|query| !query.is_empty()),
    ) else {
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
