//! What a log was asked and how it answered, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::http::{Answer, HttpError};

/// Kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Head,
    Entries,
    DataTile,
    HashTile,
    Proof,
    Consistency,
    Issuer,
    Roots,
}

impl Question {
    pub(crate) const ALL: [Self; 8] = [
        Self::Head,
        Self::Entries,
        Self::DataTile,
        Self::HashTile,
        Self::Proof,
        Self::Consistency,
        Self::Issuer,
        Self::Roots,
    ];

    /// As a label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Entries => "entries",
            Self::DataTile => "data_tile",
            Self::HashTile => "hash_tile",
            Self::Proof => "proof",
            Self::Consistency => "consistency",
            Self::Issuer => "issuer",
            Self::Roots => "roots",
        }
    }
}

/// Kinds of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Ok,
    Cut,
    Refused,
    Absent,
    OtherClientError,
    ServerError,
    TooLarge,
    Unreachable,
}

impl AnswerKind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Ok,
        Self::Cut,
        Self::Refused,
        Self::Absent,
        Self::OtherClientError,
        Self::ServerError,
        Self::TooLarge,
        Self::Unreachable,
    ];

    /// As a label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Cut => "cut_off",
            Self::Refused => "refused",
            Self::Absent => "absent",
            Self::OtherClientError => "client_error",
            Self::ServerError => "server_error",
            Self::TooLarge => "too_large",
            Self::Unreachable => "unreachable",
        }
    }

    fn of(answer: &Result<Answer, HttpError>) -> Self {
        match answer {
            Ok(answer) => match answer.status {
                200 if answer.is_cut => Self::Cut,
                200..=299 => Self::Ok,
                429 | 503 => Self::Refused,
                404 | 410 => Self::Absent,
                500.. => Self::ServerError,
                _ => Self::OtherClientError,
            },
            Err(HttpError::TooLarge { .. } | HttpError::Bomb { .. }) => Self::TooLarge,
            Err(HttpError::Unreachable(_) | HttpError::Encoding { .. }) => Self::Unreachable,
        }
    }
}

/// Counts of one log since this process started.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    answers: [[AtomicU64; AnswerKind::ALL.len()]; Question::ALL.len()],
    bytes: AtomicU64,
    latency_us: AtomicU64,
    latency_count: AtomicU64,
}

impl Asked {
    pub(crate) fn note(&self, question: Question, answer: &Result<Answer, HttpError>) {
        let kind = AnswerKind::of(answer);
        if let Some(count) = self
            .answers
            .get(question as usize)
            .and_then(|kinds| kinds.get(kind as usize))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(answer) = answer {
            self.bytes.fetch_add(answer.wire_bytes, Ordering::Relaxed);
            let took = u64::try_from(answer.took.as_micros()).unwrap_or(u64::MAX);
            self.latency_us.fetch_add(took, Ordering::Relaxed);
            self.latency_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often a question ended so.
    pub(crate) fn count(&self, question: Question, kind: AnswerKind) -> u64 {
        self.answers
            .get(question as usize)
            .and_then(|kinds| kinds.get(kind as usize))
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Bytes of bodies, as they came.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sum of seconds and count of answers.
    pub(crate) fn latency(&self) -> (f64, u64) {
        let sum = self.latency_us.load(Ordering::Relaxed);
        (sum as f64 / 1e6, self.latency_count.load(Ordering::Relaxed))
    }
}
