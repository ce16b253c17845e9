//! From bytes to a [`Url`]: the states of the standard's parser, by part instead of by character.

use super::path::{self, is_drive, starts_with_drive};
use super::scheme::scheme_length;
use super::sets::{self, C0_CONTROL, USERINFO, class, encode_class_into};
use super::{HostError, HostKind, Reject, Scheme, URL_BYTES_MAX, Url, host};
use crate::rule::{Rule, RuleBits};

/// Parses URLs one after the other, with buffers that are used again.
#[derive(Debug, Default)]
pub struct Parser {
    /// The input without tabs and line ends.
    clean: Vec<u8>,
    states: States,
}

#[derive(Debug, Default)]
struct States {
    fired: RuleBits,
    /// A host with its escapes decoded.
    host: Vec<u8>,
}

impl Parser {
    /// Parses `input`, relative to `base` if there is one, into `url`, and tells what was changed.
    ///
    /// # Errors
    /// [`Reject`] says why it is no URL; `url` then holds nothing of use.
    pub fn parse(&mut self, input: &[u8], base: Option<&Url>, url: &mut Url) -> Result<RuleBits, Reject> {
        if input.len() > URL_BYTES_MAX {
            return Err(Reject::TooLong { bytes: input.len() });
        }
        let Self { clean, states } = self;
        states.fired = RuleBits::NONE;
        let mut trimmed = trim(input);
        if trimmed.len() != input.len() {
            states.fired.set(Rule::Trim);
        }
        if memchr::memchr3(b'\t', b'\n', b'\r', trimmed).is_some() {
            clean.clear();
            clean.extend(trimmed.iter().filter(|byte| !b"\t\n\r".contains(byte)));
            trimmed = clean;
            states.fired.set(Rule::LineBreaks);
        }
        if !trimmed.is_ascii() && std::str::from_utf8(trimmed).is_err() {
            states.fired.set(Rule::RawBytes);
        }
        url.clear();
        states.scheme(trimmed, base, url)?;
        keep_apart(url);
        if url.href.len() > URL_BYTES_MAX {
            return Err(Reject::TooLong {
                bytes: url.href.len(),
            });
        }
        Ok(states.fired)
    }
}

/// The length of a scheme that is `http` or `https`, with two slashes behind it.
#[inline]
fn usual_scheme(input: &[u8]) -> Option<usize> {
    if input.starts_with(b"https://") {
        Some(5)
    } else if input.starts_with(b"http://") {
        Some(4)
    } else {
        None
    }
}

/// The length of a domain of lower-case letters, digits, `-`, `_` and `.` that a `/`, `?`, `#` or the end
/// follows, and where its last three labels start, from the last on. None for any other authority, and
/// where the last label may be a number and so an address.
#[inline]
fn plain_host(rest: &[u8]) -> Option<(usize, [usize; 3])> {
    static PLAIN: sets::ByteSet = sets::ByteSet::of(b"abcdefghijklmnopqrstuvwxyz0123456789-_.", None);
    let mut starts = [0; 3];
    let mut end = rest.len();
    for (index, &byte) in rest.iter().enumerate() {
        if byte == b'.' {
            starts = [index + 1, starts[0], starts[1]];
        } else if !PLAIN.has(byte) {
            end = index;
            break;
        }
    }
    let plain = matches!(rest.get(end), None | Some(b'/' | b'?' | b'#'));
    let first = rest.get(starts[0]).filter(|_| starts[0] < end)?;
    (plain && !first.is_ascii_digit()).then_some((end, starts))
}

fn trim(input: &[u8]) -> &[u8] {
    let start = input.iter().position(|&byte| byte > b' ').unwrap_or(input.len());
    let end = input
        .iter()
        .rposition(|&byte| byte > b' ')
        .map_or(start, |last| last + 1);
    input.get(start..end).unwrap_or_default()
}

impl States {
    fn scheme(&mut self, input: &[u8], base: Option<&Url>, url: &mut Url) -> Result<(), Reject> {
        if base.is_none()
            && let Some(length) = usual_scheme(input)
        {
            return self.usual(input, length, url);
        }
        let Some(length) = scheme_length(input) else {
            return self.no_scheme(input, base.ok_or(Reject::NoScheme)?, url);
        };
        let (scheme, rest) = input.split_at(length);
        let rest = rest.get(1..).unwrap_or_default();
        url.href.reserve(input.len() + 16);
        url.href.extend_from_slice(scheme);
        if scheme.iter().any(u8::is_ascii_uppercase) {
            url.href.make_ascii_lowercase();
            self.fired.set(Rule::SchemeCase);
        }
        url.scheme = Scheme::of(&url.href);
        end_scheme(url);
        match url.scheme {
            Scheme::File => self.file(rest, base.filter(|base| base.scheme == Scheme::File), url),
            Scheme::Other => self.other(rest, url),
            special => match base.filter(|base| base.scheme == special) {
                Some(base) if !rest.starts_with(b"//") => self.relative(rest, base, url),
                _ => self.special_authority(rest, url),
            },
        }
    }

    /// `http://` or `https://` as nearly all URLs have it; `length` bytes of scheme.
    fn usual(&mut self, input: &[u8], length: usize, url: &mut Url) -> Result<(), Reject> {
        url.href.reserve(input.len() + 16);
        let (scheme, rest) = input.split_at(length + 3);
        url.scheme = Scheme::of(input.get(..length).unwrap_or_default());
        url.scheme_end = length;
        let Some((end, starts)) = plain_host(rest) else {
            let (scheme, rest) = input.split_at(length + 1);
            url.href.extend_from_slice(scheme);
            return self.special_authority(rest, url);
        };
        let (host, rest) = rest.split_at(end);
        url.href.extend_from_slice(scheme);
        url.href.extend_from_slice(host);
        url.username_end = scheme.len();
        url.host_start = scheme.len();
        url.host_end = url.href.len();
        url.path_start = url.href.len();
        url.host_kind = HostKind::Domain;
        url.label_starts = Some(starts);
        self.path_start(rest, url);
        Ok(())
    }

    fn no_scheme(&mut self, input: &[u8], base: &Url, url: &mut Url) -> Result<(), Reject> {
        if base.opaque_path && input.first() != Some(&b'#') {
            return Err(Reject::BaseNotHierarchical);
        }
        url.scheme = base.scheme;
        url.href.extend_from_slice(base.scheme().as_bytes());
        end_scheme(url);
        if base.opaque_path {
            no_authority(url);
            url.opaque_path = true;
            copy_path(base, url);
            copy_query(base, url);
            self.fragment(input, url);
            return Ok(());
        }
        match base.scheme {
            Scheme::File => self.file(input, Some(base), url),
            _ => self.relative(input, base, url),
        }
    }

    /// Behind the colon of a scheme that is not special.
    fn other(&mut self, rest: &[u8], url: &mut Url) -> Result<(), Reject> {
        if let Some(rest) = rest.strip_prefix(b"//") {
            return self.authority(rest, url);
        }
        no_authority(url);
        if let Some(rest) = rest.strip_prefix(b"/") {
            self.path(rest, url);
        } else {
            self.opaque_path(rest, url);
        }
        Ok(())
    }

    fn opaque_path(&mut self, rest: &[u8], url: &mut Url) {
        url.opaque_path = true;
        let end = rest
            .iter()
            .position(|byte| b"?#".contains(byte))
            .unwrap_or(rest.len());
        let (path, rest) = rest.split_at(end);
        // The last of the spaces before a query or fragment would be trimmed if those went.
        let (path, space) = match path.strip_suffix(b" ") {
            Some(path) if !rest.is_empty() => (path, true),
            _ => (path, false),
        };
        if sets::encode_into(path, &C0_CONTROL, &mut url.href) | space {
            self.fired.set(Rule::PercentEncode);
        }
        if space {
            url.href.extend_from_slice(b"%20");
        }
        self.query(rest, url);
    }

    /// Behind the colon of a special scheme: any number of slashes.
    fn special_authority(&mut self, rest: &[u8], url: &mut Url) -> Result<(), Reject> {
        let slashes = rest.iter().take_while(|byte| b"/\\".contains(byte)).count();
        let (slashes, rest) = rest.split_at(slashes);
        if slashes != b"//" {
            self.fired.set(Rule::AuthoritySlashes);
        }
        self.authority(rest, url)
    }

    fn relative(&mut self, input: &[u8], base: &Url, url: &mut Url) -> Result<(), Reject> {
        let special = url.scheme.is_special();
        let slash = |byte: Option<&u8>| byte == Some(&b'/') || special && byte == Some(&b'\\');
        if slash(input.first()) {
            let rest = input.get(1..).unwrap_or_default();
            if slash(rest.first()) {
                let rest = rest.get(1..).unwrap_or_default();
                return if special {
                    self.special_authority_behind_two(rest, url)
                } else {
                    self.authority(rest, url)
                };
            }
            copy_authority(base, url);
            self.path(rest, url);
            return Ok(());
        }
        copy_authority(base, url);
        copy_path(base, url);
        match input.first() {
            None => copy_query(base, url),
            Some(b'?') => self.query(input, url),
            Some(b'#') => {
                copy_query(base, url);
                self.fragment(input, url);
            }
            Some(_) => {
                path::shorten(url);
                self.path(input, url);
            }
        }
        Ok(())
    }

    fn special_authority_behind_two(&mut self, rest: &[u8], url: &mut Url) -> Result<(), Reject> {
        let more = rest.iter().take_while(|byte| b"/\\".contains(byte)).count();
        self.authority(rest.get(more..).unwrap_or_default(), url)
    }

    /// Behind the two slashes, to the end.
    fn authority(&mut self, input: &[u8], url: &mut Url) -> Result<(), Reject> {
        let special = url.scheme.is_special();
        let end = input
            .iter()
            .position(|&byte| matches!(byte, b'/' | b'?' | b'#') || byte == b'\\' && special)
            .unwrap_or(input.len());
        let (authority, rest) = input.split_at(end);
        url.href.extend_from_slice(b"//");
        let hostport = match memchr::memrchr(b'@', authority) {
            Some(at) => {
                let (userinfo, hostport) = authority.split_at(at);
                self.userinfo(userinfo, url);
                if hostport.len() == 1 {
                    return Err(Reject::Host(HostError::Empty));
                }
                hostport.get(1..).unwrap_or_default()
            }
            None => {
                url.username_end = url.href.len();
                authority
            }
        };
        url.host_start = url.href.len();
        self.host_and_port(hostport, url)?;
        url.path_start = url.href.len();
        self.path_start(rest, url);
        Ok(())
    }

    fn userinfo(&mut self, userinfo: &[u8], url: &mut Url) {
        let colon = memchr::memchr(b':', userinfo).unwrap_or(userinfo.len());
        let (name, password) = userinfo.split_at(colon);
        let password = password.get(1..).unwrap_or_default();
        let mut encoded = sets::encode_into(name, &USERINFO, &mut url.href);
        url.username_end = url.href.len();
        if !password.is_empty() {
            url.href.push(b':');
            encoded |= sets::encode_into(password, &USERINFO, &mut url.href);
        }
        if !userinfo.is_empty() && userinfo != b":" {
            url.href.push(b'@');
        }
        if encoded {
            self.fired.set(Rule::PercentEncode);
        }
    }

    fn host_and_port(&mut self, hostport: &[u8], url: &mut Url) -> Result<(), Reject> {
        let mut inside = false;
        let colon = hostport.iter().position(|&byte| {
            match byte {
                b'[' => inside = true,
                b']' => inside = false,
                _ => {}
            }
            byte == b':' && !inside
        });
        let (name, port) = match colon {
            Some(0) => return Err(Reject::Host(HostError::Empty)),
            Some(colon) => hostport.split_at(colon),
            None => (hostport, &[][..]),
        };
        let special = url.scheme.is_special();
        if name.is_empty() && special {
            return Err(Reject::Host(HostError::Empty));
        }
        url.host_kind = host::parse(name, special, &mut self.host, &mut url.href, &mut self.fired)?;
        url.host_end = url.href.len();
        let Some(digits) = port.get(1..) else {
            return Ok(());
        };
        let mut number = 0u16;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(Reject::Port);
            }
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(u16::from(digit - b'0')))
                .ok_or(Reject::Port)?;
        }
        url.port = Some(number).filter(|&port| !digits.is_empty() && url.scheme.default_port() != Some(port));
        if let Some(port) = url.port {
            url.href.push(b':');
            host::decimal_into(port, &mut url.href);
        }
        if url.href.len() - url.host_end != port.len() {
            self.fired.set(Rule::DefaultPort);
        }
        Ok(())
    }

    /// Behind the authority.
    fn path_start(&mut self, rest: &[u8], url: &mut Url) {
        match rest.first() {
            Some(b'/') => self.path(rest.get(1..).unwrap_or_default(), url),
            Some(b'\\') if url.scheme.is_special() => {
                self.fired.set(Rule::Backslash);
                self.path(rest.get(1..).unwrap_or_default(), url);
            }
            _ if url.scheme.is_special() => {
                self.fired.set(Rule::EmptyPath);
                self.path(rest, url);
            }
            _ => self.query(rest, url),
        }
    }

    fn path(&mut self, input: &[u8], url: &mut Url) {
        let rest = path::segments(input, url, &mut self.fired);
        self.query(rest, url);
    }

    /// A `?` and what follows, or a `#`, or nothing.
    fn query(&mut self, input: &[u8], url: &mut Url) {
        let Some(rest) = input.strip_prefix(b"?") else {
            return self.fragment(input, url);
        };
        url.query = Some(url.href.len());
        url.href.push(b'?');
        let end = memchr::memchr(b'#', rest).unwrap_or(rest.len());
        let (query, rest) = rest.split_at(end);
        let escaped = if url.scheme.is_special() {
            class::IN_SPECIAL_QUERY
        } else {
            class::IN_QUERY
        };
        let seen = encode_class_into(query, escaped, &mut url.href);
        url.query_info = seen;
        if seen & escaped != 0 {
            url.query_info |= class::PERCENT;
            self.fired.set(Rule::PercentEncode);
        }
        self.fragment(rest, url);
    }

    fn fragment(&mut self, input: &[u8], url: &mut Url) {
        if let Some(fragment) = input.strip_prefix(b"#") {
            url.fragment = Some(url.href.len());
            url.href.push(b'#');
            let seen = encode_class_into(fragment, class::IN_FRAGMENT, &mut url.href);
            if seen & class::IN_FRAGMENT != 0 {
                self.fired.set(Rule::PercentEncode);
            }
        }
    }

    fn file(&mut self, input: &[u8], base: Option<&Url>, url: &mut Url) -> Result<(), Reject> {
        match (input.first(), base) {
            (Some(b'/' | b'\\'), _) => self.file_slash(input, base, url),
            (first, Some(base)) => {
                file_host(Some(base), url);
                match first {
                    None | Some(b'?' | b'#') => {
                        copy_path(base, url);
                        if input.first() == Some(&b'?') {
                            self.query(input, url);
                        } else {
                            copy_query(base, url);
                            self.fragment(input, url);
                        }
                    }
                    Some(_) => {
                        if !starts_with_drive(input) {
                            copy_path(base, url);
                            path::shorten(url);
                        }
                        self.path(input, url);
                    }
                }
                Ok(())
            }
            (_, None) => {
                file_host(None, url);
                self.path(input, url);
                Ok(())
            }
        }
    }

    fn file_slash(&mut self, input: &[u8], base: Option<&Url>, url: &mut Url) -> Result<(), Reject> {
        if input.starts_with(b"\\") {
            self.fired.set(Rule::Backslash);
        }
        let rest = input.get(1..).unwrap_or_default();
        if matches!(rest.first(), Some(b'/' | b'\\')) {
            return self.file_authority(rest.get(1..).unwrap_or_default(), url);
        }
        file_host(base, url);
        if let Some(base) = base.filter(|_| !starts_with_drive(rest)) {
            let path = base.path().as_bytes();
            if let Some(drive) = path.get(1..3).filter(|drive| is_drive(drive))
                && matches!(path.get(3), None | Some(b'/'))
                && drive.ends_with(b":")
            {
                url.href.push(b'/');
                url.href.extend_from_slice(drive);
            }
        }
        self.path(rest, url);
        Ok(())
    }

    fn file_authority(&mut self, rest: &[u8], url: &mut Url) -> Result<(), Reject> {
        let end = rest
            .iter()
            .position(|byte| b"/\\?#".contains(byte))
            .unwrap_or(rest.len());
        let (name, tail) = rest.split_at(end);
        file_host(None, url);
        if is_drive(name) {
            self.path(rest, url);
            return Ok(());
        }
        if !name.is_empty() {
            url.host_kind = host::parse(name, true, &mut self.host, &mut url.href, &mut self.fired)?;
            if url.bytes(url.host_start..url.href.len()) == b"localhost" {
                url.href.truncate(url.host_start);
                url.host_kind = HostKind::Empty;
            }
            url.host_end = url.href.len();
            url.path_start = url.href.len();
        }
        self.path_start(tail, url);
        Ok(())
    }
}

/// Puts `/.` before a path that would be read as an authority.
fn keep_apart(url: &mut Url) {
    if url.host_kind == HostKind::None && !url.opaque_path && url.path().starts_with("//") {
        url.href.splice(url.path_start..url.path_start, *b"/.");
        url.path_start += 2;
        url.query = url.query.map(|at| at + 2);
        url.fragment = url.fragment.map(|at| at + 2);
    }
}

fn end_scheme(url: &mut Url) {
    url.scheme_end = url.href.len();
    url.href.push(b':');
}

fn no_authority(url: &mut Url) {
    let end = url.href.len();
    (url.username_end, url.host_start, url.host_end, url.path_start) = (end, end, end, end);
    url.host_kind = HostKind::None;
}

/// Userinfo, host and port of the base.
fn copy_authority(base: &Url, url: &mut Url) {
    if base.host_kind == HostKind::None {
        return no_authority(url);
    }
    url.href
        .extend_from_slice(base.bytes(base.scheme_end + 1..base.path_start));
    url.username_end = base.username_end;
    url.host_start = base.host_start;
    url.host_end = base.host_end;
    url.host_kind = base.host_kind;
    url.port = base.port;
    url.path_start = base.path_start;
}

/// The authority of a file: empty, or the base's host.
fn file_host(base: Option<&Url>, url: &mut Url) {
    url.href.extend_from_slice(b"//");
    url.username_end = url.href.len();
    url.host_start = url.href.len();
    url.host_kind = HostKind::Empty;
    if let Some(base) = base {
        url.href.extend_from_slice(base.bytes(base.host_range()));
        url.host_kind = base.host_kind;
    }
    url.host_end = url.href.len();
    url.path_start = url.href.len();
}

fn copy_path(base: &Url, url: &mut Url) {
    url.path_info = base.path_info;
    url.href.extend_from_slice(base.bytes(base.path_range()));
}

fn copy_query(base: &Url, url: &mut Url) {
    url.query_info = base.query_info;
    if let Some(range) = base.query_range() {
        url.query = Some(url.href.len());
        url.href.push(b'?');
        url.href.extend_from_slice(base.bytes(range));
    }
}
