//! The functions of the ABI.
//!
//! Each is one call of [`guard`], which keeps panics in, around safe code and the accesses of `memory`.
#![allow(unsafe_code, reason = "names that C knows, and pointers that it gives")]

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, TryLockError};

use tamis_url_canon::{Canonical, Canonicalizer, Fingerprinter, Matcher, Profile, RuleSet};

use crate::memory::{self, TamisBytes};
use crate::status::TamisStatus;

/// Grows when a caller would have to be changed. Functions and codes that are added do not count.
const ABI_VERSION: u32 = 1;

/// Makes keys under one profile. Opaque.
///
/// It belongs to one thread at a time and may move between threads; give each thread its own. A call that
/// comes while another is in progress returns `TAMIS_STATUS_BUSY`, without harm. `tamis_canon_free` alone
/// must not run beside any other call with the handle.
#[derive(Debug)]
pub struct TamisCanon {
    /// Poisoned by a panic, after which its buffers are not to be trusted.
    canonicalizer: Mutex<Canonicalizer>,
}

/// Keeps panics on this side.
fn guard(call: impl FnOnce() -> Result<(), TamisStatus>) -> TamisStatus {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => TamisStatus::Ok,
        Ok(Err(status)) => status,
        Err(payload) => {
            // What a payload does when dropped is not known; it may panic again.
            std::mem::forget(payload);
            TamisStatus::Panic
        }
    }
}

/// The version of this ABI: compare it with `TAMIS_ABI_VERSION` of the header before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_abi_version() -> u32 {
    ABI_VERSION
}

/// A sentence in English about a status, also about a number that is none. Static, never NULL, ends in NUL.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_status_text(status: i32) -> *const c_char {
    match TamisStatus::of(status) {
        Some(status) => status.text(),
        None => c"no status of this version of Tamis",
    }
    .as_ptr()
}

/// Makes a handle for the profile of a name: `default`, `strict`, `classic`, `w3lib`, `surt` or `crawler-commons`.
///
/// `*handle` is the new handle, or NULL if there is none. Free it with `tamis_canon_free`.
///
/// # Safety
/// `profile` is readable for `profile_len` bytes; `handle` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_new(
    profile: *const c_char,
    profile_len: usize,
    handle: *mut *mut TamisCanon,
) -> TamisStatus {
    guard(|| {
        // SAFETY: what the caller promises of `handle`.
        unsafe { memory::write(handle, std::ptr::null_mut()) }?;
        // SAFETY: what the caller promises of `profile`.
        let profile = unsafe { memory::read(profile.cast(), profile_len) }?;
        let made = boxed(Canonicalizer::new(named(profile)?));
        // SAFETY: what the caller promises of `handle`.
        unsafe { memory::write(handle, made) }
    })
}

/// As `tamis_canon_new`, with rule sets (JSON, see `docs/url-rules.md`), all of which take part in the keys.
///
/// If a set is faulty (`TAMIS_STATUS_RULE_SET`), what is wrong is written to `message`, cut to
/// `message_room`, with its length in `*message_len`. Without `message_len` nothing is written.
///
/// # Safety
/// `profile` is readable for `profile_len` bytes, `sets` for `set_count` sets, each of them for its length;
/// `handle` is writable, `message` for `message_room` bytes; nothing that is written overlaps anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_new_with_rules(
    profile: *const c_char,
    profile_len: usize,
    sets: *const TamisBytes,
    set_count: usize,
    handle: *mut *mut TamisCanon,
    message: *mut c_char,
    message_room: usize,
    message_len: *mut usize,
) -> TamisStatus {
    guard(|| {
        // SAFETY: what the caller promises of `handle`.
        unsafe { memory::write(handle, std::ptr::null_mut()) }?;
        // SAFETY: what the caller promises of `profile`.
        let profile = unsafe { memory::read(profile.cast(), profile_len) }?;
        let canonicalizer = Canonicalizer::new(named(profile)?);
        // SAFETY: what the caller promises of `sets`.
        let sets = unsafe { memory::read(sets, set_count) }?;
        let mut documents = Vec::new();
        for set in sets {
            // SAFETY: what the caller promises of each set.
            documents.push(unsafe { memory::read(set.data, set.len) }?);
        }
        match compiled(&documents) {
            Ok(matcher) => {
                let made = boxed(canonicalizer.with_sets(Arc::new(matcher)));
                // SAFETY: what the caller promises of `handle`.
                unsafe { memory::write(handle, made) }
            }
            Err(fault) => {
                if !message_len.is_null() {
                    let fault = cut(&fault, message_room);
                    // SAFETY: what the caller promises of `message` and `message_len`; `fault` is ours.
                    unsafe { memory::fill(fault, message.cast(), message_room, message_len) }?;
                }
                Err(TamisStatus::RuleSet)
            }
        }
    })
}

/// Frees a handle. NULL is fine; a handle that was freed is not.
///
/// # Safety
/// `handle` is NULL or one of `tamis_canon_new`, not freed before, with no call in progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_free(handle: *mut TamisCanon) {
    guard(|| {
        if !handle.is_null() {
            // SAFETY: made by `boxed` and not freed before, as the caller promises.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// The id of what makes the keys: profile, its version, rule sets. Keys of two ids are not to be compared.
///
/// Written to `buffer`, without NUL, if `room` is enough; its length to `*length` in any case.
///
/// # Safety
/// `handle` is a handle; `buffer` is writable for `room` bytes, and `length` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_id(
    handle: *const TamisCanon,
    buffer: *mut c_char,
    room: usize,
    length: *mut usize,
) -> TamisStatus {
    guard(|| {
        let use_it = |canonicalizer: &mut Canonicalizer| {
            // SAFETY: what the caller promises of `buffer` and `length`; the id is ours.
            unsafe { memory::fill(canonicalizer.id().as_bytes(), buffer.cast(), room, length) }
        };
        // SAFETY: what the caller promises of `handle`.
        unsafe { locked(handle, use_it) }
    })
}

/// The key of a URL: what to compare by. With rule sets, that is the key that they leave.
///
/// Written to `buffer`, without NUL, if `room` is enough; its length to `*length` whenever there is a key.
/// `buffer` may be NULL if `room` is 0, to ask for the length.
///
/// # Safety
/// `handle` is a handle; `url` is readable for `url_len` bytes, `buffer` writable for `room`, and `length`
/// writable; nothing that is written overlaps anything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_key(
    handle: *const TamisCanon,
    url: *const c_char,
    url_len: usize,
    buffer: *mut c_char,
    room: usize,
    length: *mut usize,
) -> TamisStatus {
    // SAFETY: the caller promises the same.
    unsafe {
        part(handle, url, url_len, buffer, room, length, |made| {
            made.equivalence
        })
    }
}

/// The URL to fetch, as a browser would ask for it; never to compare by. Else as `tamis_canon_key`.
///
/// Empty under the profiles of other tools, where those make keys of what no browser would fetch.
///
/// # Safety
/// As `tamis_canon_key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_fetch_url(
    handle: *const TamisCanon,
    url: *const c_char,
    url_len: usize,
    buffer: *mut c_char,
    room: usize,
    length: *mut usize,
) -> TamisStatus {
    // SAFETY: the caller promises the same.
    unsafe { part(handle, url, url_len, buffer, room, length, |made| made.fetch_url) }
}

/// The fingerprint of the key of a URL: 16 bytes, SipHash-2-4-128 under `secret` (16 bytes) over the id of
/// the handle, a zero byte and the key.
///
/// # Safety
/// `handle` is a handle; `url` is readable for `url_len` bytes, `secret` for 16; `fingerprint` is writable
/// for 16 and overlaps nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_canon_fingerprint(
    handle: *const TamisCanon,
    url: *const c_char,
    url_len: usize,
    secret: *const u8,
    fingerprint: *mut u8,
) -> TamisStatus {
    guard(|| {
        if fingerprint.is_null() {
            return Err(TamisStatus::Null);
        }
        // SAFETY: what the caller promises of `url`.
        let url = unsafe { memory::read(url.cast(), url_len) }?;
        // SAFETY: what the caller promises of `secret`.
        let secret: &[u8] = unsafe { memory::read(secret, 16) }?;
        let secret = secret.try_into().map_err(|_| TamisStatus::Length)?;
        let use_it = |canonicalizer: &mut Canonicalizer| {
            let fingerprinter = Fingerprinter::new(secret, canonicalizer.id());
            let made = fingerprinter.of(canonicalizer.canon(url)?.equivalence.as_bytes());
            // SAFETY: what the caller promises of `fingerprint`; bytes have no alignment.
            unsafe { memory::write(fingerprint.cast(), made.0) }
        };
        // SAFETY: what the caller promises of `handle`.
        unsafe { locked(handle, use_it) }
    })
}

/// One part of what is made of a URL, into a buffer.
///
/// # Safety
/// As [`tamis_canon_key`].
unsafe fn part(
    handle: *const TamisCanon,
    url: *const c_char,
    url_len: usize,
    buffer: *mut c_char,
    room: usize,
    length: *mut usize,
    of: impl FnOnce(Canonical<'_>) -> &str,
) -> TamisStatus {
    guard(|| {
        // SAFETY: what the caller promises of `url`.
        let url = unsafe { memory::read(url.cast(), url_len) }?;
        let use_it = |canonicalizer: &mut Canonicalizer| {
            let part = of(canonicalizer.canon(url)?).as_bytes();
            // SAFETY: what the caller promises of `buffer` and `length`; the part lies in our buffers.
            unsafe { memory::fill(part, buffer.cast(), room, length) }
        };
        // SAFETY: what the caller promises of `handle`.
        unsafe { locked(handle, use_it) }
    })
}

/// Uses what is in a handle, if nobody else does.
///
/// # Safety
/// `handle` is NULL or one of [`boxed`], not freed, and will not be during the call.
unsafe fn locked(
    handle: *const TamisCanon,
    use_it: impl FnOnce(&mut Canonicalizer) -> Result<(), TamisStatus>,
) -> Result<(), TamisStatus> {
    // SAFETY: what the caller promises; a handle is only ever shared, its inside is behind the lock.
    let handle = unsafe { handle.as_ref() }.ok_or(TamisStatus::Null)?;
    match handle.canonicalizer.try_lock() {
        Ok(mut canonicalizer) => use_it(&mut canonicalizer),
        Err(TryLockError::WouldBlock) => Err(TamisStatus::Busy),
        Err(TryLockError::Poisoned(_)) => Err(TamisStatus::Panic),
    }
}

/// A handle, for the caller to keep.
fn boxed(canonicalizer: Canonicalizer) -> *mut TamisCanon {
    let canonicalizer = Mutex::new(canonicalizer);
    Box::into_raw(Box::new(TamisCanon { canonicalizer }))
}

fn named(profile: &[u8]) -> Result<Profile, TamisStatus> {
    let name = std::str::from_utf8(profile).ok();
    name.and_then(|name| name.parse().ok())
        .ok_or(TamisStatus::UnknownProfile)
}

/// Rule sets as one matcher, or what is wrong with them.
fn compiled(documents: &[&[u8]]) -> Result<Matcher, String> {
    let sets: Result<Vec<RuleSet>, _> = documents.iter().map(|json| RuleSet::parse(json)).collect();
    let sets = sets.map_err(|error| error.to_string())?;
    Matcher::new(&sets.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())
}

/// The start of a text that fits, whole characters only.
fn cut(text: &str, room: usize) -> &[u8] {
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.as_bytes().get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(handle: *const TamisCanon) -> TamisStatus {
        let (url, mut length) = (b"http://e.com/", 0);
        // SAFETY: the handle, the URL and the length are ours and live.
        unsafe {
            tamis_canon_key(
                handle,
                url.as_ptr().cast(),
                url.len(),
                std::ptr::null_mut(),
                0,
                &raw mut length,
            )
        }
    }

    #[test]
    fn a_panic_is_a_status_and_ends_the_handle() {
        assert_eq!(guard(|| panic!("as asked")), TamisStatus::Panic);
        let handle = boxed(Canonicalizer::new(Profile::Default));
        assert_eq!(length_of(handle), TamisStatus::BufferTooSmall);
        // SAFETY: the handle is live.
        let status = guard(|| unsafe { locked(handle, |_| panic!("as asked")) });
        assert_eq!(status, TamisStatus::Panic);
        assert_eq!(length_of(handle), TamisStatus::Panic);
        // SAFETY: made above, freed once.
        unsafe { tamis_canon_free(handle) };
    }

    #[test]
    fn a_handle_in_use_is_busy() {
        let handle = boxed(Canonicalizer::new(Profile::Default));
        let use_it = |_: &mut Canonicalizer| {
            assert_eq!(length_of(handle), TamisStatus::Busy);
            Ok(())
        };
        // SAFETY: the handle is live.
        assert_eq!(guard(|| unsafe { locked(handle, use_it) }), TamisStatus::Ok);
        // SAFETY: made above, freed once.
        unsafe { tamis_canon_free(handle) };
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), b"a");
        assert_eq!(cut("aé", 3), "aé".as_bytes());
        assert_eq!(cut("aé", 0), b"");
    }
}
