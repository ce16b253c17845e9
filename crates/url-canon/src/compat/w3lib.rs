//! Keys of w3lib 2.5.0, `canonicalize_url` with its defaults.

use super::python::{UNRESERVED, idna_2003, quote_into};
use crate::parse::sets::{ByteSet, decode_into, escape_at, push_escape};
use crate::parse::{HostError, Reject, ipv6_text};

/// Schemes of the URL Standard, as w3lib lists them.
const SPECIAL: &[&str] = &["ftp", "file", "http", "https", "ws", "wss"];
/// Python's `urllib.parse.uses_params`.
const WITH_PARAMS: &[&str] = &[
    "", "ftp", "hdl", "prospero", "http", "https", "shttp", "rtsp", "rtsps", "rtspu", "sip", "sips", "mms",
    "sftp", "tel",
];
/// Python's `urllib.parse.uses_netloc`.
const WITH_NETLOC: &[&str] = &[
    "",
    "ftp",
    "http",
    "gopher",
    "nntp",
    "telnet",
    "imap",
    "wais",
    "file",
    "mms",
    "https",
    "shttp",
    "snews",
    "prospero",
    "rtsp",
    "rtsps",
    "rtspu",
    "rsync",
    "svn",
    "svn+ssh",
    "sftp",
    "nfs",
    "git",
    "git+ssh",
    "ws",
    "wss",
    "itms-services",
];

static UNRESERVED_SET: ByteSet = ByteSet::of(UNRESERVED, None);
static USERINFO: ByteSet = ByteSet::of(b"!$&'()*+,", Some(&UNRESERVED_SET));
static SAFEST: ByteSet = ByteSet::of(b":/?@!$&'()*+,;=%", Some(&UNRESERVED_SET));
static SPECIAL_QUERY: ByteSet = ByteSet::of(b":/?@!$&()*+,;=%", Some(&UNRESERVED_SET));
static PATH: ByteSet = ByteSet::of(b":/?[]@!$&'()*+,;=|%", Some(&UNRESERVED_SET));

#[derive(Default)]
struct Split<'a> {
    scheme: String,
    netloc: &'a str,
    path: &'a str,
    query: &'a str,
}

pub(super) fn canonicalize(input: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
    let text = decoded(input);
    let text = text.trim_matches(|c: char| c <= ' ');
    let text: String = text.chars().filter(|c| !"\t\n\r".contains(*c)).collect();
    let (scheme, rest) = scheme(&text);
    let special = SPECIAL.contains(&scheme.as_str());
    let rest = if special { slashes(rest) } else { rest.to_owned() };
    let split = split(scheme, &rest);
    let netloc = netloc(split.netloc)?;
    let mut quoted = Vec::new();
    quote_into(split.path.as_bytes(), &SAFEST, &mut quoted);
    let mut query = Vec::new();
    let query_set = if special { &SPECIAL_QUERY } else { &SAFEST };
    quote_into(split.query.as_bytes(), query_set, &mut query);
    if quoted.is_empty() && !query.is_empty() && special {
        quoted.push(b'/');
    }
    let (path, params) = params(&split.scheme, &quoted);
    let mut path = if path.is_empty() {
        b"/".to_vec()
    } else {
        requoted(path)
    };
    if path.starts_with(b"/") {
        path = without_dots(&path);
    }
    if !params.is_empty() {
        path.push(b';');
        path.extend_from_slice(params);
    }
    unsplit(&split.scheme, &netloc, &path, out);
    sorted_query(&query, out);
    Ok(())
}

/// Text; bytes that are no UTF-8 as escapes.
fn decoded(input: &[u8]) -> String {
    let mut text = String::with_capacity(input.len());
    for chunk in input.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn scheme(url: &str) -> (String, &str) {
    if let Some((scheme, rest)) = url.split_once(':') {
        let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(fits) {
            return (scheme.to_ascii_lowercase(), rest);
        }
    }
    (String::new(), url)
}

/// `\` as `/` before the query and fragment.
fn slashes(rest: &str) -> String {
    let cut = rest.find(['?', '#']).unwrap_or(rest.len());
    let (head, tail) = rest.split_at(cut);
    head.replace('\\', "/") + tail
}

fn split(scheme: String, rest: &str) -> Split<'_> {
    let (netloc, rest) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Split {
        scheme,
        netloc,
        path,
        query,
    }
}

fn netloc(netloc: &str) -> Result<Vec<u8>, Reject> {
    let mut out = Vec::new();
    let host = match netloc.rsplit_once('@') {
        Some((userinfo, host)) => {
            let (user, password) = match userinfo.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (userinfo, None),
            };
            for (index, part) in [Some(user), password].into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push(b':');
                }
                let mut plain = Vec::new();
                decode_into(part.as_bytes(), &mut plain);
                quote_into(&plain, &USERINFO, &mut out);
            }
            out.push(b'@');
            host
        }
        None => netloc,
    };
    let brackets = (netloc.contains('['), netloc.contains(']'));
    let (name, port) = match brackets {
        (true, true) => {
            let inner = host.strip_prefix('[').ok_or(Reject::Host(HostError::Ipv6))?;
            let (name, port) = inner.split_once(']').ok_or(Reject::Host(HostError::Ipv6))?;
            if !port.is_empty() && !port.starts_with(':') || name.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(Reject::Host(HostError::Ipv6));
            }
            (name, port.split_once(':').map_or("", |(_, port)| port))
        }
        (false, false) => host.split_once(':').unwrap_or((host, "")),
        _ => return Err(Reject::Host(HostError::Ipv6)),
    };
    host_into(name, &mut out);
    if !port.is_empty() {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let number: u16 = port.parse().ok().filter(|_| digits).ok_or(Reject::Port)?;
        out.extend_from_slice(format!(":{number}").as_bytes());
    }
    Ok(out)
}

fn host_into(name: &str, out: &mut Vec<u8>) {
    if let Ok(address) = name.parse::<std::net::Ipv6Addr>() {
        out.extend_from_slice(ipv6_text(address.segments()).as_bytes());
        return;
    }
    // What looks like a zone keeps its case here, and loses it when the key is put together.
    let lower = name.to_lowercase();
    let ascii = if lower.is_ascii() { None } else { idna_2003(&lower) };
    out.extend_from_slice(ascii.unwrap_or(lower).to_lowercase().as_bytes());
}

fn params<'a>(scheme: &str, path: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let last = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let semicolon = path.get(last..).and_then(|segment| memchr::memchr(b';', segment));
    match semicolon {
        Some(at) if WITH_PARAMS.contains(&scheme) => {
            let (path, params) = path.split_at(last + at);
            (path, params.get(1..).unwrap_or_default())
        }
        _ => (path, &[]),
    }
}

/// Decoded but for `%`, `/`, `;` and `?`, and escaped again.
fn requoted(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        match escape_at(rest) {
            Some(decoded) => {
                if b"%/;?".contains(&decoded) {
                    push_escape(decoded, &mut out);
                } else {
                    quote_into(&[decoded], &PATH, &mut out);
                }
                rest = rest.get(3..).unwrap_or_default();
            }
            None => {
                quote_into(&[byte], &PATH, &mut out);
                rest = tail;
            }
        }
    }
    out
}

fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = path.split(|&byte| byte == b'/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let dots = matches!(*segment, b"." | b"..");
        if *segment == b".." {
            kept.pop();
        }
        if !dots {
            kept.push(segment);
        } else if index + 1 == segments.len() {
            kept.push(b"");
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

fn unsplit(scheme: &str, netloc: &[u8], path: &[u8], out: &mut Vec<u8>) {
    if !scheme.is_empty() {
        out.extend_from_slice(scheme.as_bytes());
        out.push(b':');
    }
    if !netloc.is_empty() {
        out.extend_from_slice(b"//");
        out.extend_from_slice(netloc);
        if !path.starts_with(b"/") && !path.is_empty() {
            out.push(b'/');
        }
    } else if path.starts_with(b"//")
        || !scheme.is_empty() && WITH_NETLOC.contains(&scheme) && (path.is_empty() || path.starts_with(b"/"))
    {
        out.extend_from_slice(b"//");
    }
    out.extend_from_slice(path);
}

fn sorted_query(query: &[u8], out: &mut Vec<u8>) {
    let plain = |part: &[u8]| {
        let spaced: Vec<u8> = part
            .iter()
            .map(|&byte| if byte == b'+' { b' ' } else { byte })
            .collect();
        let mut plain = Vec::with_capacity(spaced.len());
        decode_into(&spaced, &mut plain);
        plain
    };
    let mut parameters: Vec<(Vec<u8>, Vec<u8>)> = query
        .split(|&byte| byte == b'&')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| {
            let at = memchr::memchr(b'=', parameter).unwrap_or(parameter.len());
            let (name, value) = parameter.split_at(at);
            (plain(name), plain(value.get(1..).unwrap_or_default()))
        })
        .collect();
    parameters.sort();
    for (index, (name, value)) in parameters.iter().enumerate() {
        out.push(if index == 0 { b'?' } else { b'&' });
        form_into(name, out);
        out.push(b'=');
        form_into(value, out);
    }
}

fn form_into(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|&byte| byte == b' ') {
        match part.strip_suffix(b" ") {
            Some(part) => {
                quote_into(part, &UNRESERVED_SET, out);
                out.push(b'+');
            }
            None => quote_into(part, &UNRESERVED_SET, out),
        }
    }
}
