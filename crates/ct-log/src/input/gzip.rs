//! Inflates a compressed body up to a limit, and keeps what came before a break.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use crate::error::Error;

/// How a compressed body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// Cut off or damaged; what was inflated before stands.
    Early,
}

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8])
}

pub(super) fn inflate(bytes: &[u8], limit: u64) -> Result<(Vec<u8>, End), Error> {
    let mut inflated = Vec::new();
    let outcome = MultiGzDecoder::new(bytes)
        .take(limit.saturating_add(1))
        .read_to_end(&mut inflated);
    if inflated.len() as u64 > limit {
        return Err(Error::InflatedTooLarge { limit });
    }
    match outcome {
        Ok(_) => Ok((inflated, End::Whole)),
        Err(source) if inflated.is_empty() => Err(Error::Gzip { source }),
        Err(_) => Ok((inflated, End::Early)),
    }
}
