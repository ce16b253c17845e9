//! Files and bodies that hold entries or certificates, recognised by what is in them.
//!
//! [`Input::open`] finds out what it is, [`Input::entries`] frames it into [`RawEntry`]s cheaply and in
//! order, and each of these can be decoded anywhere, such as on another core.
//!
//! # Limits
//! [`InputLimits::inflated_bytes_max`] for compressed input. Nothing else is copied.

mod decode;
mod der;
mod gzip;
mod json;
mod pem;
mod tile;

use std::borrow::Cow;

pub use self::decode::{Chain, Entry, RawEntry, Scratch};
use crate::error::{EntryError, Error, Reason};

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// JSON with `leaf_input` and `extra_data`: a get-entries body, or such objects in any nesting,
    /// one a line or one after the other.
    Entries,
    /// JSON with `chain`: an add-chain or add-pre-chain body.
    Chain,
    /// JSON with `certificates`: a get-roots body.
    Roots,
    /// A data tile of a static log.
    DataTile,
    /// PEM blocks in any text.
    Pem,
    /// DER certificates one behind the other.
    Der,
}

/// What an input may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Of a compressed input, once inflated.
    pub inflated_bytes_max: u64,
}

impl Default for InputLimits {
    fn default() -> Self {
        Self {
            inflated_bytes_max: 1 << 30,
        }
    }
}

/// One file or body.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: Cow<'a, [u8]>,
    kind: Kind,
    gzip: Option<gzip::End>,
}

impl<'a> Input<'a> {
    /// Recognises `bytes` with the default limits.
    ///
    /// # Errors
    /// [`Error::NotRecognised`], or what is wrong with the compression.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::open_within(bytes, &InputLimits::default())
    }

    /// Recognises `bytes`.
    ///
    /// # Errors
    /// [`Error::NotRecognised`], or what is wrong with the compression.
    pub fn open_within(bytes: &'a [u8], limits: &InputLimits) -> Result<Self, Error> {
        if !gzip::is_gzip(bytes) {
            return Ok(Self {
                kind: recognise(bytes)?,
                bytes: Cow::Borrowed(bytes),
                gzip: None,
            });
        }
        let (inflated, end) = gzip::inflate(bytes, limits.inflated_bytes_max)?;
        Ok(Self {
            kind: recognise(&inflated)?,
            bytes: Cow::Owned(inflated),
            gzip: Some(end),
        })
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it came compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.gzip.is_some()
    }

    /// The bytes, inflated if they came compressed; offsets in errors count these.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        let bytes: &[u8] = &self.bytes;
        let framing = match self.kind {
            Kind::Entries | Kind::Chain | Kind::Roots => Framing::Json(json::Framer::new(bytes)),
            Kind::DataTile => Framing::Tile(tile::Framer::new(bytes)),
            Kind::Pem => Framing::Pem(pem::Framer::new(bytes)),
            Kind::Der => Framing::Der(der::Framer::new(bytes)),
        };
        let cut_at = (self.gzip == Some(gzip::End::Early)).then_some(bytes.len());
        Entries {
            framing,
            ordinal: 0,
            cut_at,
        }
    }
}

/// The entries of an input, in order. An error stands for one entry, or for the rest where a cut-off
/// input leaves none.
#[derive(Debug)]
pub struct Entries<'a> {
    framing: Framing<'a>,
    ordinal: u64,
    /// Where the compression broke off, until that was told.
    cut_at: Option<usize>,
}

#[derive(Debug)]
enum Framing<'a> {
    Json(json::Framer<'a>),
    Tile(tile::Framer<'a>),
    Pem(pem::Framer<'a>),
    Der(der::Framer<'a>),
}

impl Entries<'_> {
    /// How many things that are no certificates were passed over so far: PEM blocks with other labels.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        match &self.framing {
            Framing::Pem(framer) => framer.skipped(),
            _ => 0,
        }
    }
}

/// What a framer found: an entry, or an error and where it is.
type Framed<'a> = Result<RawEntry<'a>, (usize, Reason)>;

impl<'a> Iterator for Entries<'a> {
    type Item = Result<RawEntry<'a>, EntryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let framed = match &mut self.framing {
            Framing::Json(framer) => framer.next(),
            Framing::Tile(framer) => framer.next(),
            Framing::Pem(framer) => framer.next(),
            Framing::Der(framer) => framer.next(),
        };
        let ordinal = self.ordinal;
        self.ordinal += 1;
        match framed {
            Some(Ok(entry)) => Some(Ok(entry.numbered(ordinal))),
            Some(Err((offset, reason))) => {
                // A body that inflated only in part is cut off for one reason, not for two.
                if matches!(reason, Reason::CutOff { .. }) {
                    self.cut_at = None;
                }
                Some(Err(reason.at(ordinal, offset)))
            }
            None => self
                .cut_at
                .take()
                .map(|offset| Err(Reason::Gzip.at(ordinal, offset))),
        }
    }
}

/// The start of `bytes` without a byte order mark and white space, and where it is.
fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .trim_ascii_start()
}

fn recognise(bytes: &[u8]) -> Result<Kind, Error> {
    let start = trimmed(bytes);
    if matches!(start.first(), Some(b'{' | b'['))
        && let Some(kind) = json::kind(start)
    {
        return Ok(kind);
    }
    if der::is_der(bytes) {
        return Ok(Kind::Der);
    }
    if tile::is_tile(bytes) {
        return Ok(Kind::DataTile);
    }
    if pem::is_pem(bytes) {
        return Ok(Kind::Pem);
    }
    Err(Error::NotRecognised {
        seen: seen(bytes),
        hint: hint(bytes),
    })
}

fn seen(bytes: &[u8]) -> String {
    match bytes.get(..48).unwrap_or(bytes) {
        [] => "nothing".to_owned(),
        start => format!("\"{}\"", start.escape_ascii()),
    }
}

fn hint(bytes: &[u8]) -> &'static str {
    match trimmed(bytes) {
        [] => "it is empty",
        [b'<', ..] => "this looks like a web page, perhaps a server's error page",
        [b'{' | b'[', ..] => {
            "JSON needs \"leaf_input\" (get-entries), \"chain\" (add-chain) or \"certificates\" (get-roots)"
        }
        [b'M', b'I', ..] => "bare base64 needs -----BEGIN CERTIFICATE----- around it",
        [b'P', b'K', 3, 4, ..] => "this is a zip archive; unpack it first",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "this is compressed with zstd; unpack it first",
        _ => {
            "known are get-entries, get-roots and add-chain JSON, data tiles, PEM and DER, each also as gzip"
        }
    }
}
