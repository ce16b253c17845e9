//! One request to one log: what goes wrong before the answer, and how the answer is carried.

use std::io::Write as _;
use std::time::Duration;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc, FlushCompress};

use super::answers::refuse;
use super::faults::Fault;
use super::http::{Answer, Delivery, Request};
use super::log::SimulatedLog;
use super::report::RequestKind;
use super::request::Asked;
use super::shutdown::Shutdown;
use super::wire::Body;

/// Bodies are compressed as servers do it by default.
const LEVEL: u32 = 6;
/// Of a bomb, before it is compressed.
const BOMB_BLOCK_BYTES: usize = 1 << 20;
/// Blocks of a bomb: 64 GiB.
const BOMB_BLOCKS_MAX: u64 = 1 << 16;

/// Answers a request for `asked`; the body is left in `body`.
pub(super) fn serve(
    log: &SimulatedLog,
    asked: &Asked,
    request: &Request<'_>,
    shutdown: &Shutdown,
    body: &mut Body,
) -> Answer {
    let kind = asked.kind();
    delay(log, kind, shutdown);
    if let Some(answer) = refused(log, kind, body) {
        return answer;
    }
    let mut answer = log.answer(asked, body).unwrap_or_else(|error| {
        // Signing cannot fail with these keys; whoever meets this should see it.
        refuse(500, &format!("the simulator failed: {error:#}"), body)
    });
    if answer.status == 200 {
        encode(log, kind, request, &mut answer, body);
        carry(log, kind, &mut answer, body);
    }
    answer
}

fn delay(log: &SimulatedLog, kind: RequestKind, shutdown: &Shutdown) {
    let delays = log.faults.show_all(kind, |fault| match fault {
        Fault::Latency { ms } => Some(*ms),
        Fault::SlowHead { ms } if kind.is_head() => Some(*ms),
        _ => None,
    });
    let total: u64 = delays.iter().sum();
    if total > 0 {
        shutdown.wait(Duration::from_millis(total));
    }
}

/// What comes instead of an answer.
fn refused(log: &SimulatedLog, kind: RequestKind, body: &mut Body) -> Option<Answer> {
    let fault = log.faults.show(kind, |fault| match fault {
        Fault::TooManyRequests { .. }
        | Fault::RateLimit { .. }
        | Fault::ServerError { .. }
        | Fault::HtmlPage { .. }
        | Fault::Reset { after_bytes: 0 }
        | Fault::Stall => Some(fault.clone()),
        _ => None,
    })?;
    Some(match fault {
        Fault::TooManyRequests { retry_after_s, .. } | Fault::RateLimit { retry_after_s, .. } => {
            body.bytes.extend_from_slice(b"rate limit exceeded\n");
            let answer = Answer::status(429, "text/plain");
            match retry_after_s {
                Some(seconds) => answer.header("Retry-After", &seconds.to_string()),
                None => answer,
            }
        }
        Fault::HtmlPage { status } => {
            let page = format!(
                "<!DOCTYPE html>\n<html><head><title>{status} | one moment please</title></head><body>Checking your browser.</body></html>\n"
            );
            body.bytes.extend_from_slice(page.as_bytes());
            Answer::status(status, "text/html; charset=utf-8")
        }
        Fault::Reset { .. } => Answer::ok("text/plain").delivery(Delivery::Reset { after_bytes: 0 }),
        Fault::Stall => Answer::ok("text/plain").delivery(Delivery::Stall),
        Fault::ServerError { status } => {
            body.bytes.extend_from_slice(b"backend failed\n");
            Answer::status(status, "text/plain")
        }
        _ => return None,
    })
}

/// Compression, wanted or not.
fn encode(
    log: &SimulatedLog,
    kind: RequestKind,
    request: &Request<'_>,
    answer: &mut Answer,
    body: &mut Body,
) {
    let bomb = log.faults.show(kind, |fault| match fault {
        Fault::GzipBomb { inflated_bytes } => Some(*inflated_bytes),
        _ => None,
    });
    if let Some(inflated_bytes) = bomb {
        body.clear();
        body.bytes = gzip_bomb(inflated_bytes);
        answer.set_header("Content-Encoding", "gzip");
        return;
    }
    if answer.has_header("Content-Encoding") {
        return;
    }
    let unasked = log
        .faults
        .show(kind, |fault| matches!(fault, Fault::GzipUnasked).then_some(()));
    if unasked.is_some() || log.compresses() && request.accepts_gzip {
        let plain = body.flat();
        let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::new(LEVEL));
        if let Ok(compressed) = encoder.write_all(plain).and_then(|()| encoder.finish()) {
            *plain = compressed;
            answer.set_header("Content-Encoding", "gzip");
        }
    }
}

/// How the body reaches the reader, or does not.
fn carry(log: &SimulatedLog, kind: RequestKind, answer: &mut Answer, body: &mut Body) {
    let body_bytes = body.len() as u64;
    let too_large = log.faults.show(kind, |fault| match fault {
        Fault::RefuseLargeBody { bytes, status } if body_bytes > *bytes => Some(*status),
        _ => None,
    });
    if let Some(status) = too_large {
        *answer = refuse(status, "the answer is larger than the limit", body);
        return;
    }
    let delivery = log.faults.show(kind, |fault| match fault {
        Fault::SlowBody { bytes_per_s } => Some(Delivery::Slow {
            bytes_per_s: *bytes_per_s,
        }),
        Fault::CutBody { per_mille } => Some(Delivery::Cut {
            after_bytes: body_bytes * u64::from(*per_mille).min(999) / 1_000,
        }),
        Fault::HugeBody { bytes } => Some(Delivery::Huge { bytes: *bytes }),
        Fault::Reset { after_bytes } if *after_bytes > 0 => Some(Delivery::Reset {
            after_bytes: (*after_bytes).min(body_bytes.saturating_sub(1)),
        }),
        _ => None,
    });
    answer.delivery = delivery.unwrap_or_default();
}

/// A gzip stream of zeros: one block of deflate over and over.
fn gzip_bomb(inflated_bytes: u64) -> Vec<u8> {
    let blocks = inflated_bytes
        .div_ceil(BOMB_BLOCK_BYTES as u64)
        .clamp(1, BOMB_BLOCKS_MAX);
    let zeros = vec![0; BOMB_BLOCK_BYTES];
    let mut compressor = flate2::Compress::new(Compression::best(), false);
    let mut block = Vec::with_capacity(1 << 16);
    // A full flush ends on a byte and refers to nothing before it.
    if compressor
        .compress_vec(&zeros, &mut block, FlushCompress::Full)
        .is_err()
    {
        block.clear();
    }
    let mut one = Crc::new();
    one.update(&zeros);
    let mut sum = Crc::new();
    // Header: deflate, no name, no time, unknown system.
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..blocks {
        out.extend_from_slice(&block);
        sum.combine(&one);
    }
    out.extend(empty_last_block());
    out.extend(sum.sum().to_le_bytes());
    out.extend(sum.amount().to_le_bytes());
    out
}

fn empty_last_block() -> Vec<u8> {
    DeflateEncoder::new(Vec::new(), Compression::best())
        .finish()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_bomb_is_whole_gzip_and_small() {
        let bomb = gzip_bomb(5 << 20);
        assert!(bomb.len() < 10_000, "{}", bomb.len());
        let mut inflated = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&bomb[..]);
        decoder.read_to_end(&mut inflated).expect("a whole stream");
        assert_eq!(inflated.len(), 5 << 20);
        assert!(inflated.iter().all(|byte| *byte == 0));
    }
}
