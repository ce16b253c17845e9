//! Checkpoints: the heads of static logs, as signed notes.
//!
//! # Format
//! Three lines (origin, decimal size, base64 root), an empty line, and signature lines `— name base64`
//! of a key ID of four bytes and the signature. The log's own is an `RFC6962NoteSignature`: a timestamp of
//! eight bytes and the `DigitallySigned` of RFC 6962. See <https://c2sp.org/static-ct-api>,
//! <https://c2sp.org/tlog-checkpoint> and <https://c2sp.org/signed-note>.
//!
//! Lines by other keys, such as witnesses, are left alone whatever they hold.
//!
//! # Limits
//! [`CHECKPOINT_BYTES_MAX`] and [`CHECKPOINT_SIGNATURES_MAX`].

use sha2::{Digest as _, Sha256};

use super::{HeadError, SIGNATURE_BYTES_MAX, SignedTreeHead, VerifiedHead};
use crate::key::{LogId, PublicKey};
use crate::merkle::{Hash, Tree};

/// Of a checkpoint: room for 64 post-quantum cosignatures of 5 kB.
pub const CHECKPOINT_BYTES_MAX: usize = 512 << 10;
/// Of its signature lines; readers must take 16.
pub const CHECKPOINT_SIGNATURES_MAX: usize = 64;

/// A checkpoint as a log sent it: nothing about it is proved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint<'a> {
    origin: &'a str,
    tree: Tree,
    has_extensions: bool,
    signatures: Vec<NoteSignature<'a>>,
}

/// One signature line of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteSignature<'a> {
    /// Of the key.
    pub key_name: &'a str,
    /// The key ID and the signature.
    base64: &'a str,
}

/// Why a text is no checkpoint of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It is longer than any checkpoint.
    #[error("the checkpoint has {bytes} bytes, more than the limit of {CHECKPOINT_BYTES_MAX}")]
    TooLarge {
        /// Of the body.
        bytes: usize,
    },
    /// It is no note: a web page, or cut off.
    #[error("the answer is no signed note ({problem}): {body}; try again later")]
    NotNote {
        /// What a note has and this has not.
        problem: &'static str,
        /// What it is.
        body: crate::answers::Body,
    },
    /// A line does not hold what belongs there.
    #[error("the {line} line of the checkpoint is wrong")]
    Line {
        /// Which.
        line: &'static str,
    },
    /// There are more signatures than are read.
    #[error("the checkpoint has more than {CHECKPOINT_SIGNATURES_MAX} signatures")]
    TooManySignatures,
    /// No line is by the log's key.
    #[error(
        "no signature is by the key of the log, {key_name} {key_id:02x?}; this may be the checkpoint of another log"
    )]
    NotSigned {
        /// The origin, which is the name of the log's key.
        key_name: String,
        /// What the key ID would be.
        key_id: [u8; 4],
    },
    /// The log's own line is not as RFC 6962 signatures are written.
    #[error("the log's own signature line is malformed")]
    Signature,
    /// There are lines that the signature does not cover.
    #[error("the checkpoint has lines that its RFC 6962 signature does not cover")]
    Extensions,
}

impl<'a> Checkpoint<'a> {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn parse(body: &'a [u8]) -> Result<Self, CheckpointError> {
        if body.len() > CHECKPOINT_BYTES_MAX {
            return Err(CheckpointError::TooLarge { bytes: body.len() });
        }
        let not_note = |problem| CheckpointError::NotNote {
            problem,
            body: crate::answers::Body::of(body),
        };
        let text = std::str::from_utf8(body).map_err(|_| not_note("it is no UTF-8"))?;
        if text.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return Err(not_note("it holds control characters"));
        }
        let Some((lines, signatures)) = text.rsplit_once("\n\n") else {
            return Err(not_note("there is no empty line before signatures"));
        };
        let Some(signatures) = signatures.strip_suffix('\n') else {
            return Err(not_note("the last line does not end"));
        };
        let mut lines = lines.split('\n');
        let wrong = |line| CheckpointError::Line { line };
        let origin = lines
            .next()
            .filter(|line| !line.is_empty())
            .ok_or(wrong("origin"))?;
        let size = lines.next().and_then(decimal).ok_or(wrong("size"))?;
        let root = lines.next().and_then(Hash::from_base64).ok_or(wrong("root"))?;
        let signatures: Vec<NoteSignature<'_>> = signatures
            .split('\n')
            .filter_map(NoteSignature::parse)
            .take(CHECKPOINT_SIGNATURES_MAX + 1)
            .collect();
        if signatures.len() > CHECKPOINT_SIGNATURES_MAX {
            return Err(CheckpointError::TooManySignatures);
        }
        Ok(Self {
            origin,
            tree: Tree { size, root },
            has_extensions: lines.next().is_some(),
            signatures,
        })
    }

    /// What the log calls itself: its submission prefix without scheme and trailing slash. The RFC 6962
    /// signature does **not** cover it, so it is good for messages and for nothing else.
    #[must_use]
    pub fn origin(&self) -> &'a str {
        self.origin
    }

    /// What it claims about the tree, before its signature was checked: for messages only.
    #[must_use]
    pub fn claimed_tree(&self) -> &Tree {
        &self.tree
    }

    /// The signature lines, in order.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature<'a>] {
        &self.signatures
    }

    /// Checks every line that claims to be by the log's key. There must be one.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn verify(&self, key: &PublicKey) -> Result<VerifiedHead, HeadError> {
        let key_id = key_id(self.origin, &key.id());
        let ours = self.signatures.iter().filter_map(|signature| {
            let bytes = signature.bytes(SIGNATURE_BYTES_MAX)?;
            let (id, rest) = bytes.split_first_chunk::<4>()?;
            (signature.key_name == self.origin && *id == key_id).then(|| rest.to_vec())
        });
        let mut verified = None;
        for signature in ours {
            if self.has_extensions {
                return Err(CheckpointError::Extensions.into());
            }
            let (timestamp, signature) = signature
                .split_first_chunk::<8>()
                .ok_or(CheckpointError::Signature)?;
            let timestamp_ms = u64::from_be_bytes(*timestamp);
            let head = SignedTreeHead::new(self.tree, timestamp_ms, signature)?;
            verified = Some(head.verify(key)?);
        }
        verified.ok_or_else(|| {
            let key_name = self.origin.to_owned();
            CheckpointError::NotSigned { key_name, key_id }.into()
        })
    }
}

impl<'a> NoteSignature<'a> {
    /// `None` for what is no signature line: unknown kinds of lines are none of our business.
    fn parse(line: &'a str) -> Option<Self> {
        let (key_name, base64) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
        Some(Self { key_name, base64 })
    }

    fn bytes(&self, bytes_max: usize) -> Option<Vec<u8>> {
        crate::base64::decode(self.base64, 4 + 8 + bytes_max)
    }

    /// The short name of the key, for messages.
    #[must_use]
    pub fn key_id(&self) -> Option<[u8; 4]> {
        let bytes = crate::base64::decode(self.base64, CHECKPOINT_BYTES_MAX)?;
        bytes.first_chunk().copied()
    }
}

/// The key ID of a log's RFC 6962 key: SHA-256 over name, line feed, 5 and log id, four bytes of it.
fn key_id(key_name: &str, log_id: &LogId) -> [u8; 4] {
    let hash = Sha256::new()
        .chain_update(key_name)
        .chain_update([b'\n', 5])
        .chain_update(log_id.0)
        .finalize();
    let [a, b, c, d, ..] = <[u8; 32]>::from(hash);
    [a, b, c, d]
}

/// A number as checkpoints write it: digits only, no leading zero.
fn decimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    (is_plain && is_short).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SignatureError;

    /// Of the log Rome2024h1, as recorded in the tests of transparency-dev/formats (Apache-2.0).
    const KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEAXM8Ld9qn64g1zVFDh5FtgxS3zj5sqQDwYMs3wrBV3MCBiFhK/iRLxdKF4YsAcJaEglMlu4Lewvzxs0xO2uwEw==";
    const ROME: &str = "rome.ct.filippo.io/2024h1\n115474666\n2q1K6aiIJR+F7TyhiWOghoWOjY0/3dVBLsBbAvB4xCw=\n\n\u{2014} rome.ct.filippo.io/2024h1 ePSrrgAAAY5+gVlSBAMARzBFAiEAv8bOMzo3Ed/GbU9fzzJvaStX6i8xTsmEF+NqvpGhIO0CIEn1X+zzVEerdix64GEn97XCXObA2G5JQ8UDDqCKdG5m\n";

    fn verify(text: &[u8]) -> Result<VerifiedHead, HeadError> {
        let key = PublicKey::from_base64(KEY).unwrap();
        Checkpoint::parse(text)?.verify(&key)
    }

    #[test]
    fn a_real_checkpoint_verifies() {
        let head = verify(ROME.as_bytes()).unwrap();
        assert_eq!(
            (head.size(), head.timestamp_ms()),
            (115_474_666, 1_711_519_390_034)
        );
        let checkpoint = Checkpoint::parse(ROME.as_bytes()).unwrap();
        assert_eq!(checkpoint.origin(), "rome.ct.filippo.io/2024h1");
        assert_eq!(
            checkpoint.signatures()[0].key_id(),
            Some([0x78, 0xf4, 0xab, 0xae])
        );
    }

    #[test]
    fn no_byte_of_it_can_be_changed() {
        for at in 0..ROME.len() {
            for flip in [1, 2, 0x10, 0x80] {
                let mut other = ROME.as_bytes().to_vec();
                other[at] ^= flip;
                assert!(verify(&other).is_err(), "byte {at} xor {flip}");
            }
            assert!(verify(&ROME.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn lines_by_others_are_left_alone() {
        let cosigned = format!("{ROME}\u{2014} witness.example AAAA\n\u{2014} witness.example\nnonsense\n");
        assert_eq!(
            verify(cosigned.as_bytes()).unwrap(),
            verify(ROME.as_bytes()).unwrap()
        );
        let large = format!("{ROME}\u{2014} witness.example {}\n", "AAAA".repeat(2_500));
        assert!(verify(large.as_bytes()).is_ok());
        // The same name with another key ID is another key.
        let name = "rome.ct.filippo.io/2024h1";
        let other_key = ROME.replace("\n\n", &format!("\n\n\u{2014} {name} AAAAAAAA\n"));
        assert!(verify(other_key.as_bytes()).is_ok());
        // The log's key a second time must hold too.
        let (_, line) = ROME.split_once("\n\n").unwrap();
        let twice = format!("{ROME}{}", line.replace("AYg", "AYh").replace("G5m", "G5n"));
        assert!(matches!(
            verify(twice.as_bytes()),
            Err(HeadError::Signature(SignatureError::Invalid { .. }))
        ));
        let many = format!("{ROME}{}", "\u{2014} witness.example AAAA\n".repeat(64));
        assert!(matches!(
            verify(many.as_bytes()),
            Err(HeadError::Checkpoint(CheckpointError::TooManySignatures))
        ));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| verify(text.as_bytes()).unwrap_err().to_string();
        assert!(error("<html><title>503</title></html>").contains("a web page (\"503\")"));
        assert!(error("").contains("empty"));
        assert!(error(ROME.trim_end()).contains("does not end"));
        assert!(error(&ROME.replace("115474666", "0115474666")).contains("size line"));
        assert!(error(&ROME.replace("115474666", "+115474666")).contains("size line"));
        assert!(error(&ROME.replace("2q1K", "2q1")).contains("root line"));
        assert!(error(&format!("\n{ROME}")).contains("origin line"));
        assert!(error(&ROME.replace('\n', "\r\n")).contains("control characters"));
        assert!(error(&ROME.replace("\n\n", "\nextension\n\n")).contains("does not cover"));
        assert!(error(&ROME.replace("rome.ct", "sofia.ct")).contains("sofia.ct.filippo.io/2024h1"));
        let long = "a".repeat(CHECKPOINT_BYTES_MAX + 1);
        assert!(error(&long).contains("more than the limit"));
    }
}
