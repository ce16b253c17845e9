//! Asking a server, with limits on everything: time, length, inflated length.
//!
//! # Invariants
//! A body that breaks off is kept as far as it came, since the entries in it are as good as others.
//!
//! # Limits
//! [`BODY_BYTES_MAX`] before a body is read, and the limit of each question on what it may inflate to.

use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, RETRY_AFTER};
use tamis_ct_log::log_list::is_loopback;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of a body as it is sent; a longer one is refused before it is read.
pub(crate) const BODY_BYTES_MAX: u64 = 500_000_000;
/// Between two parts of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// Of a whole answer, however slowly it drips.
const ANSWER_MAX: Duration = Duration::from_secs(300);
/// A log that asks to wait longer is asked again after this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

const REDIRECTS_MAX: usize = 3;
/// Buffers of bodies kept for the next ones, and the longest that is kept: memory that was touched before
/// costs no page faults.
const BUFFERS_MAX: usize = 16;
const BUFFER_BYTES_MAX: usize = 4 << 20;
/// Of a body beside others; a longer one, as it comes or once inflated, waits for those that are large too. No
/// honest page is that long, and a hostile server must not fill the memory by several at once.
const BODY_BYTES_AT_ONCE: u64 = 16 << 20;
/// Of a buffer made for a body by its announced length.
const ANNOUNCED_BYTES_MAX: u64 = 16 << 20;
/// A body that may be longer than this gets such a buffer.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Asks servers.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    kept: reqwest::Client,
    closed: reqwest::Client,
    buffers: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Room for one large body at a time.
    room: Arc<Semaphore>,
}

/// Whether the connection stays open between questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    Keep,
    Close,
}

/// What a server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// Inflated, if it came compressed.
    pub(crate) body: Vec<u8>,
    /// The body broke off.
    pub(crate) is_cut: bool,
    /// As they came.
    pub(crate) wire_bytes: u64,
    pub(crate) took: Duration,
    /// Given back when a large body is done with.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot reach the server")]
    Unreachable(#[source] reqwest::Error),
    #[error("the answer has {bytes} bytes, more than the limit of {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("the answer inflates to more than the limit of {limit} bytes")]
    Bomb { limit: u64 },
    #[error("the answer came with the encoding \"{encoding}\", which was not asked for")]
    Encoding { encoding: String },
}

impl HttpError {
    /// The whole chain on one line: what reqwest says is in its sources.
    pub(crate) fn told(&self) -> String {
        let mut told = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let text = error.to_string();
            if !told.contains(&text) {
                told.push_str(": ");
                told.push_str(&text);
            }
            source = error.source();
        }
        told
    }
}

impl Http {
    /// A client that says who asks.
    pub(crate) fn new(user_agent: &str) -> Result<Self, reqwest::Error> {
        // A second client in one process finds the first one's choice, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            reqwest::Client::builder()
                .user_agent(user_agent)
                .connect_timeout(CONNECT_MAX)
                .read_timeout(SILENCE_MAX)
                .timeout(ANSWER_MAX)
                .redirect(reqwest::redirect::Policy::custom(redirect))
                .tcp_nodelay(true)
        };
        Ok(Self {
            kept: builder().pool_max_idle_per_host(8).build()?,
            closed: builder().pool_max_idle_per_host(0).build()?,
            buffers: Arc::default(),
            room: Arc::new(Semaphore::new(1)),
        })
    }

    /// An empty buffer for a body of `bytes`, as far as they are believed.
    fn buffer(&self, bytes: u64, limit: u64) -> Vec<u8> {
        let capacity = usize::try_from(bytes.min(ANNOUNCED_BYTES_MAX)).unwrap_or(0);
        let mut buffer = Vec::new();
        if limit > SMALL_BYTES_MAX {
            let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            buffer = buffers.pop().unwrap_or_default();
        }
        buffer.reserve(capacity);
        buffer
    }

    /// Takes the buffer of a body that is done with.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() > BUFFER_BYTES_MAX {
            return;
        }
        buffer.clear();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < BUFFERS_MAX {
            buffers.push(buffer);
        }
    }

    /// Asks for `url`. `limit` is what the body may inflate to.
    pub(crate) async fn get(
        &self,
        url: &str,
        connection: Connection,
        limit: u64,
    ) -> Result<Answer, HttpError> {
        let client = match connection {
            Connection::Keep => &self.kept,
            Connection::Close => &self.closed,
        };
        let asked = Instant::now();
        let request = client.get(url).header(ACCEPT_ENCODING, "gzip, identity");
        let mut response = request.send().await.map_err(HttpError::Unreachable)?;
        let announced = response.content_length().unwrap_or(0);
        let wire_limit = BODY_BYTES_MAX.min(limit.saturating_mul(2).max(1 << 20));
        if announced > wire_limit {
            return Err(HttpError::TooLarge {
                bytes: announced,
                limit: wire_limit,
            });
        }
        let is_gzip = is_gzip(response.headers())?;
        let retry_after = retry_after(response.headers());
        let status = response.status().as_u16();
        let mut body = self.buffer(announced, limit);
        let mut is_cut = false;
        let mut room = None;
        loop {
            if room.is_none() && announced.max(body.len() as u64) > BODY_BYTES_AT_ONCE {
                room = self.wait_for_room().await;
            }
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) => {
                    is_cut = true;
                    break;
                }
            }
            if body.len() as u64 > wire_limit {
                return Err(HttpError::TooLarge {
                    bytes: body.len() as u64,
                    limit: wire_limit,
                });
            }
        }
        let wire_bytes = body.len() as u64;
        if is_gzip {
            let (inflated, broke_off) = self.inflated(body, limit, &mut room).await?;
            body = inflated;
            is_cut |= broke_off;
        } else if wire_bytes > limit {
            return Err(HttpError::TooLarge {
                bytes: wire_bytes,
                limit,
            });
        }
        Ok(Answer {
            status,
            retry_after,
            body,
            is_cut,
            wire_bytes,
            took: asked.elapsed(),
            room,
        })
    }

    async fn wait_for_room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// The inflated bytes and whether they break off; those that are large wait for room.
    async fn inflated(
        &self,
        packed: Vec<u8>,
        limit: u64,
        room: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<(Vec<u8>, bool), HttpError> {
        let packed = Bytes::from(packed);
        if room.is_none() && limit > BODY_BYTES_AT_ONCE {
            match inflate_aside(packed.clone(), BODY_BYTES_AT_ONCE).await {
                Err(HttpError::Bomb { .. }) => *room = self.wait_for_room().await,
                inflated => return inflated,
            }
        }
        inflate_aside(packed, limit).await
    }
}

/// Inflates on a thread that may be busy for a while.
async fn inflate_aside(packed: Bytes, limit: u64) -> Result<(Vec<u8>, bool), HttpError> {
    let inflated = tokio::task::spawn_blocking(move || inflate(&packed, limit)).await;
    // Who inflates does not panic; were it so, nothing came.
    inflated.unwrap_or_else(|_| Ok((Vec::new(), true)))
}

/// A few steps, never from TLS to none, and never from elsewhere to this machine.
fn redirect(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().last();
    let was_secure = from.is_some_and(|from| from.scheme() == "https");
    let was_near = from.is_some_and(|from| is_loopback(from.as_str()));
    let is_allowed = (attempt.url().scheme() == "https" || !was_secure)
        && (was_near || !is_loopback(attempt.url().as_str()));
    if attempt.previous().len() <= REDIRECTS_MAX && is_allowed {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Whether a body is compressed. Logs may compress unasked, in this way only.
fn is_gzip(headers: &HeaderMap) -> Result<bool, HttpError> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else {
        return Ok(false);
    };
    match encoding
        .to_str()
        .unwrap_or("?")
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
        "" | "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(true),
        other => Err(HttpError::Encoding {
            encoding: other.chars().take(40).collect(),
        }),
    }
}

/// Seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let format = &time::format_description::well_known::Rfc2822;
            let at = time::OffsetDateTime::parse(&value.replace("GMT", "+0000"), format).ok()?;
            (at - time::OffsetDateTime::now_utc())
                .try_into()
                .unwrap_or_default()
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// The inflated bytes up to `limit`, and whether they break off.
fn inflate(bytes: &[u8], limit: u64) -> Result<(Vec<u8>, bool), HttpError> {
    let mut inflated = Vec::new();
    let read = MultiGzDecoder::new(bytes)
        .take(limit.saturating_add(1))
        .read_to_end(&mut inflated);
    if inflated.len() as u64 > limit {
        return Err(HttpError::Bomb { limit });
    }
    Ok((inflated, read.is_err()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_inflates_has_a_limit_and_a_cut_one_keeps_its_start() {
        let bytes = vec![7; 100_000];
        let packed = gzip(&bytes);
        assert_eq!(inflate(&packed, 100_000).unwrap(), (bytes.clone(), false));
        assert!(matches!(
            inflate(&packed, 99_999),
            Err(HttpError::Bomb { limit: 99_999 })
        ));
        let noise: Vec<u8> = (0..100_000u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let packed = gzip(&noise);
        let (start, is_cut) = inflate(&packed[..packed.len() / 2], 1 << 20).unwrap();
        assert!(is_cut && !start.is_empty() && noise.starts_with(&start));
    }

    #[test]
    fn waiting_is_told_in_seconds_or_as_a_date() {
        let wait = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = wait("Wed, 21 Oct 2099 07:28:00 GMT");
        assert_eq!(far, Some(RETRY_AFTER_MAX));
        assert_eq!(wait("soon"), None);
    }

    /// Answers every connection with the same bytes.
    async fn server(answer: Vec<u8>) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 4_096]).await;
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        url
    }

    #[tokio::test]
    async fn large_bodies_wait_for_each_other_and_small_ones_do_not() {
        let answer = |body: &[u8], encoding: &str| {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{encoding}Connection: close\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), body].concat()
        };
        let large = vec![7; BODY_BYTES_AT_ONCE as usize + 1];
        let plain = server(answer(&large, "")).await;
        let packed = server(answer(&gzip(&large), "Content-Encoding: gzip\r\n")).await;
        let small = server(answer(b"small", "")).await;
        let http = Http::new("test").unwrap();
        let get = |url: String| {
            let http = http.clone();
            tokio::spawn(async move { http.get(&url, Connection::Close, BODY_BYTES_MAX).await.unwrap() })
        };
        for first in [&plain, &packed] {
            let held = get(first.clone()).await.unwrap();
            assert_eq!(held.body.len(), large.len());
            let mut waiting = [get(plain.clone()), get(packed.clone())];
            assert_eq!(get(small.clone()).await.unwrap().body, b"small");
            for waiting in &mut waiting {
                let early = tokio::time::timeout(Duration::from_millis(200), waiting).await;
                assert!(early.is_err(), "two large bodies at once");
            }
            drop(held);
            for waiting in waiting {
                assert_eq!(waiting.await.unwrap().body.len(), large.len());
            }
        }
    }
}
