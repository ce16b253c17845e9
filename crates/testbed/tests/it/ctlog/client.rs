//! A reader of HTTP that sees what goes over the socket: one connection, kept alive.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub(super) struct Client {
    stream: TcpStream,
    host: String,
    received: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The connection ended before the body did.
    pub(super) is_cut: bool,
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    #[track_caller]
    pub(super) fn ok(self) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        assert_eq!((self.status, self.is_cut), (200, false), "{text}");
        self.body
    }

    pub(super) fn json(self) -> serde_json::Value {
        serde_json::from_slice(&self.ok()).expect("JSON")
    }
}

impl Client {
    /// Connects to the host of an address.
    pub(super) fn of(url: &str) -> Self {
        let host = url.strip_prefix("http://").expect("a plain address");
        let host = host.split('/').next().unwrap_or_default().to_owned();
        let stream = TcpStream::connect(&host).expect("the world listens");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            host,
            received: Vec::new(),
        }
    }

    /// Asks for a whole address.
    #[track_caller]
    pub(super) fn get(&mut self, url: &str) -> Response {
        self.get_with(url, "").expect("an answer")
    }

    /// `None` where the connection ended before a head came. `headers` end with line feeds each.
    pub(super) fn get_with(&mut self, url: &str, headers: &str) -> Option<Response> {
        self.ask("GET", url, headers, "")
    }

    #[track_caller]
    pub(super) fn post(&mut self, url: &str, body: &str) -> Response {
        let length = format!("Content-Length: {}\r\n", body.len());
        self.ask("POST", url, &length, body).expect("an answer")
    }

    fn ask(&mut self, method: &str, url: &str, headers: &str, body: &str) -> Option<Response> {
        let path = url
            .strip_prefix(&format!("http://{}", self.host))
            .expect("the same host");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n{body}",
            self.host
        );
        self.stream.write_all(request.as_bytes()).ok()?;
        let head_bytes = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        let head = String::from_utf8(self.received[..head_bytes].to_vec()).expect("a head in ASCII");
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "Content-Length");
        let length: usize = length.expect("a length").1.parse().expect("a number");
        let mut is_cut = false;
        while self.received.len() < head_bytes + length && !is_cut {
            is_cut = self.receive().is_none();
        }
        let end = self.received.len().min(head_bytes + length);
        let body = self.received[head_bytes..end].to_vec();
        self.received.drain(..end);
        Some(Response {
            status,
            headers,
            body,
            is_cut,
        })
    }

    /// `None` at the end of the connection.
    fn receive(&mut self) -> Option<()> {
        let mut part = [0; 64 << 10];
        match self.stream.read(&mut part) {
            Ok(count) if count > 0 => {
                self.received.extend_from_slice(&part[..count]);
                Some(())
            }
            _ => None,
        }
    }
}
