//! HTTP/1.1 as far as logs need it: a thread a connection, keep-alive, and the ways in which a server can
//! carry an answer wrongly, which a server library would not let us.
//!
//! # Limits
//! [`HEAD_BYTES_MAX`] of a request's head, [`REQUEST_BODY_BYTES_MAX`] of its body.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::shutdown::Shutdown;
use super::wire::Body;

const HEAD_BYTES_MAX: usize = 32 << 10;
const REQUEST_BODY_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;
/// Between two parts of a slow body.
const SLOW_TICK: Duration = Duration::from_millis(20);
/// A reader that is stalled this long is let go.
const STALL: Duration = Duration::from_secs(600);

pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Without the query.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) user_agent: &'a str,
    pub(super) accepts_gzip: bool,
    pub(super) body: &'a [u8],
}

/// What goes before the body, and how the body goes.
pub(super) struct Answer {
    pub(super) status: u16,
    content_type: &'static str,
    headers: Vec<(&'static str, String)>,
    pub(super) delivery: Delivery,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Delivery {
    #[default]
    Whole,
    Slow {
        bytes_per_s: u64,
    },
    /// Closed in the middle.
    Cut {
        after_bytes: u64,
    },
    /// Blanks follow the body.
    Huge {
        bytes: u64,
    },
    Reset {
        after_bytes: u64,
    },
    Stall,
}

impl Answer {
    pub(super) fn ok(content_type: &'static str) -> Self {
        Self::status(200, content_type)
    }

    pub(super) fn status(status: u16, content_type: &'static str) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            delivery: Delivery::Whole,
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.set_header(name, value);
        self
    }

    pub(super) fn set_header(&mut self, name: &'static str, value: &str) {
        self.headers.retain(|(old, _)| *old != name);
        self.headers.push((name, value.to_owned()));
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| *known == name)
    }

    pub(super) fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    fn head(&self, content_length: u64, is_last: bool) -> String {
        let Self {
            status, content_type, ..
        } = self;
        let mut head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {content_length}\r\n",
            reason(*status)
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if is_last {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// Who answers requests.
pub(super) trait Handler {
    /// What is being answered.
    type Asked;

    /// Fills the body and says how it goes.
    fn handle(&self, request: &Request<'_>, body: &mut Body) -> (Answer, Self::Asked);

    /// Told when the answer has gone but for its last byte, so that who has it whole finds it counted; or
    /// when the connection is about to break, with status 0 and how much of the body went.
    fn sent(&self, asked: Self::Asked, status: u16, body_bytes: u64);
}

/// Answers one request after the other until either side has enough.
///
/// # Errors
/// The connection broke.
pub(super) fn serve_connection(
    mut stream: TcpStream,
    handler: &impl Handler,
    shutdown: &Shutdown,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut body = Body::default();
    loop {
        let Some(parsed) = receive(&mut stream, &mut received)? else {
            return Ok(());
        };
        let request = match parsed.request(&received) {
            Ok(request) => request,
            Err(status) => {
                let head = Answer::status(status, "text/plain").head(0, true);
                return stream.write_all(head.as_bytes());
            }
        };
        body.clear();
        let (answer, asked) = handler.handle(&request, &mut body);
        if request.method == "HEAD" {
            body.clear();
        }
        let mut asked = Some(asked);
        let mut finish = |status, body_bytes| {
            if let Some(asked) = asked.take() {
                handler.sent(asked, status, body_bytes);
            }
        };
        let mut sender = Sender {
            stream: &mut stream,
            shutdown,
            sent: 0,
        };
        let outcome = sender.send(&answer, &mut body, parsed.is_last, &mut finish);
        // What ended well has said so before its last byte.
        finish(0, sender.sent);
        if !matches!(outcome?, End::KeepAlive) || parsed.is_last {
            return Ok(());
        }
        let consumed = parsed.consumed;
        received.drain(..consumed);
    }
}

/// Where the parts of a request are in what was received.
struct Parsed {
    consumed: usize,
    head_bytes: usize,
    is_last: bool,
    error: Option<u16>,
}

impl Parsed {
    fn error(status: u16) -> Self {
        Self {
            consumed: 0,
            head_bytes: 0,
            is_last: true,
            error: Some(status),
        }
    }

    fn request<'a>(&self, received: &'a [u8]) -> Result<Request<'a>, u16> {
        if let Some(status) = self.error {
            return Err(status);
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        parsed.parse(&received[..self.head_bytes]).map_err(|_| 400_u16)?;
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(400);
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Request {
            method,
            path,
            query,
            user_agent: header(parsed.headers, "user-agent").unwrap_or_default(),
            accepts_gzip: header(parsed.headers, "accept-encoding")
                .is_some_and(|value| value.contains("gzip")),
            body: &received[self.head_bytes..self.consumed],
        })
    }
}

fn header<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let found = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok()
}

/// Reads until one request is whole; `None` where the reader has closed the connection.
fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<Parsed>> {
    loop {
        if let Some(parsed) = parse(received) {
            return Ok(Some(parsed));
        }
        let mut part = [0; 8 << 10];
        match stream.read(&mut part)? {
            0 => return Ok(None),
            count => received.extend_from_slice(&part[..count]),
        }
    }
}

/// `None` where more has to come.
fn parse(received: &[u8]) -> Option<Parsed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let head_bytes = match request.parse(received) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if received.len() <= HEAD_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) => return Some(Parsed::error(413)),
        Err(_) => return Some(Parsed::error(400)),
    };
    let length = header(request.headers, "content-length").map_or(Ok(0), str::parse::<usize>);
    let Ok(length) = length else {
        return Some(Parsed::error(400));
    };
    if length > REQUEST_BODY_BYTES_MAX || header(request.headers, "transfer-encoding").is_some() {
        return Some(Parsed::error(413));
    }
    let consumed = head_bytes + length;
    if received.len() < consumed {
        return None;
    }
    let connection = header(request.headers, "connection").unwrap_or_default();
    let is_close = connection.eq_ignore_ascii_case("close");
    Some(Parsed {
        consumed,
        head_bytes,
        is_last: is_close || request.version == Some(0),
        error: None,
    })
}

enum End {
    KeepAlive,
    Closed,
    Broken,
}

struct Sender<'a> {
    stream: &'a mut TcpStream,
    shutdown: &'a Shutdown,
    /// Of the body.
    sent: u64,
}

impl Sender<'_> {
    fn send(
        &mut self,
        answer: &Answer,
        body: &mut Body,
        is_last: bool,
        finish: &mut dyn FnMut(u16, u64),
    ) -> io::Result<End> {
        let length = body.len() as u64;
        let head = answer.head(length, is_last);
        if answer.delivery == Delivery::Whole {
            return self.send_whole(answer.status, head.as_bytes(), body, finish);
        }
        let body = &**body.flat();
        match answer.delivery {
            Delivery::Whole => Ok(End::KeepAlive),
            Delivery::Slow { bytes_per_s } => {
                self.write(head.as_bytes(), &[])?;
                let (rest, last) = body.split_at(body.len().saturating_sub(1));
                self.write_slowly(rest, bytes_per_s)?;
                finish(answer.status, length);
                self.write(&[], last)?;
                Ok(End::KeepAlive)
            }
            Delivery::Cut { after_bytes } => {
                let part = &body[..(after_bytes as usize).min(body.len())];
                self.write(head.as_bytes(), part)?;
                Ok(End::Broken)
            }
            Delivery::Huge { bytes } => {
                self.write(answer.head(bytes.max(length), true).as_bytes(), body)?;
                // Who reads on is told what it costs by its own memory.
                finish(answer.status, self.sent);
                self.write_blanks(bytes.saturating_sub(length))?;
                Ok(End::Closed)
            }
            Delivery::Reset { after_bytes } => {
                if after_bytes > 0 {
                    let part = &body[..(after_bytes as usize).min(body.len())];
                    self.write(head.as_bytes(), part)?;
                }
                // Closing with a linger of zero sends a reset.
                rustix::net::sockopt::set_socket_linger(&*self.stream, Some(Duration::ZERO))?;
                Ok(End::Broken)
            }
            Delivery::Stall => {
                self.stall()?;
                Ok(End::Broken)
            }
        }
    }

    /// All but the last byte, then what is to be done before it, then that.
    fn send_whole(
        &mut self,
        status: u16,
        head: &[u8],
        body: &Body,
        finish: &mut dyn FnMut(u16, u64),
    ) -> io::Result<End> {
        let mut slices = vec![IoSlice::new(head)];
        slices.extend(body.slices());
        let last_piece = slices
            .iter()
            .rposition(|slice| !slice.is_empty())
            .unwrap_or_default();
        slices.truncate(last_piece + 1);
        let Some(last) = slices.pop() else {
            return Ok(End::KeepAlive);
        };
        // The head is never empty, and no slice behind the last that is not.
        let (rest, last_byte) = last.split_at(last.len() - 1);
        slices.push(IoSlice::new(rest));
        self.write_all(&mut slices)?;
        self.sent = body.len() as u64;
        finish(status, self.sent);
        self.write_all(&mut [IoSlice::new(last_byte)])?;
        Ok(End::KeepAlive)
    }

    fn write(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.write_all(&mut [IoSlice::new(head), IoSlice::new(body)])?;
        self.sent += body.len() as u64;
        Ok(())
    }

    fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.stream.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_slowly(&mut self, body: &[u8], bytes_per_s: u64) -> io::Result<()> {
        let ticks_per_s = 1_000 / SLOW_TICK.as_millis() as u64;
        // Below one byte a tick, the ticks become longer.
        let part = (bytes_per_s / ticks_per_s).max(1);
        let pause = Duration::from_secs_f64(part as f64 / bytes_per_s.max(1) as f64);
        for part in body.chunks(part as usize) {
            self.write(&[], part)?;
            if !self.shutdown.wait(pause) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    fn write_blanks(&mut self, count: u64) -> io::Result<()> {
        let blanks = [b' '; 64 << 10];
        let mut left = count;
        while left > 0 {
            let part = left.min(blanks.len() as u64);
            self.write(&[], &blanks[..part as usize])?;
            left -= part;
        }
        Ok(())
    }

    /// Until the reader closes, the world ends, or it took too long.
    fn stall(&mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(STALL))?;
        let mut byte = [0];
        // Whatever happens ends the stall.
        let _ = self.stream.read(&mut byte);
        Ok(())
    }
}
