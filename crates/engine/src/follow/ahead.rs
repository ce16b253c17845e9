//! Pages on their way: fetched and decoded before they are appended.
//!
//! # Limits
//! [`AHEAD_MAX`] of one log; of all logs, as many as [`super::world::PAGES_IN_FLIGHT_MAX`].

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::decode::Decoded;
use super::reader::Reader;
use super::source::{Source, SourceError};
use super::world::{World, now_ms};

/// Pages fetched ahead of the one that is appended.
pub(super) const AHEAD_MAX: usize = 8;

type Ahead = JoinHandle<Result<Fetched, SourceError>>;

pub(super) struct Fetched {
    pub(super) decoded: Decoded,
    /// Given back when the page is appended.
    _permit: Option<OwnedSemaphorePermit>,
}

/// A page on its way.
pub(super) struct OnItsWay {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) task: Ahead,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reader {
    /// Fetches and decodes ahead. What fills a gap before pages that wait must not wait for room itself.
    pub(super) fn fetch(&self, start: u64, end: u64, size: u64, waits: bool) -> OnItsWay {
        let (world, source, number) = (Arc::clone(&self.world), self.source.clone(), self.number);
        let task = tokio::spawn(async move {
            let permit = if waits {
                Arc::clone(&world.pages_in_flight).acquire_owned().await.ok()
            } else {
                None
            };
            let decoded = fetch_page(&world, &source, number, start, end, size).await?;
            Ok(Fetched {
                decoded,
                _permit: permit,
            })
        });
        OnItsWay { start, end, task }
    }

    /// Behind the last leaf of the page that starts at `start`, as the log cuts pages.
    pub(super) fn page_end(&self, start: u64, end: u64) -> u64 {
        let fixed = self.source.fixed_page_end(start, end);
        fixed.unwrap_or_else(|| self.pages.end(start, end))
    }
}

/// Fetches a page and decodes it on a thread for such work.
pub(super) async fn fetch_page(
    world: &Arc<World>,
    source: &Source,
    number: u16,
    start: u64,
    end: u64,
    size: u64,
) -> Result<Decoded, SourceError> {
    let page = source.page(start, end, size).await?;
    let world = Arc::clone(world);
    let now = i64::try_from(now_ms() / 1_000).unwrap_or(0);
    let decoded = tokio::task::spawn_blocking(move || {
        let decoded = world.decoder.decode(&page, number, start, end, now);
        world.http.give_back(page.body);
        decoded
    })
    .await;
    decoded.unwrap_or_else(|error| {
        Err(SourceError::Unhashable {
            why: format!("decoding failed: {error}"),
        })
    })
}
