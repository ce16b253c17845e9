//! The end of a world: waits that end with it, and connections that are closed by it.
//!
//! # Limits
//! [`CONNECTIONS_MAX`] connections at one time.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::lock;

const CONNECTIONS_MAX: usize = 1_024;

#[derive(Default)]
pub(super) struct Shutdown {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_over: bool,
    next: u64,
    connections: HashMap<u64, TcpStream>,
}

impl Shutdown {
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    /// Waits, or returns early because the world ends; says whether it goes on.
    pub(super) fn wait(&self, duration: Duration) -> bool {
        let until = Instant::now() + duration;
        let mut state = lock(&self.state);
        while !state.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        false
    }

    /// Registers a connection until what it gives is dropped; `None` where there are too many, or the world
    /// is over.
    pub(super) fn enter(&self, stream: &TcpStream) -> Option<Entered<'_>> {
        let mut state = lock(&self.state);
        if state.is_over || state.connections.len() >= CONNECTIONS_MAX {
            return None;
        }
        let id = state.next;
        state.next += 1;
        state.connections.insert(id, stream.try_clone().ok()?);
        Some(Entered { shutdown: self, id })
    }

    /// Ends all waits and closes all connections; returns once these are gone, or after a second.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        for stream in state.connections.values() {
            // One that the reader closed already is what is wanted.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.changed.notify_all();
        let until = Instant::now() + Duration::from_secs(1);
        while !state.connections.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

/// A connection that is registered: also a thread that panics leaves none open.
pub(super) struct Entered<'a> {
    shutdown: &'a Shutdown,
    id: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        lock(&self.shutdown.state).connections.remove(&self.id);
        self.shutdown.changed.notify_all();
    }
}
