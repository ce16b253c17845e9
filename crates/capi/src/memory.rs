//! The memory of the caller: the only place where its pointers are followed.
//!
//! Every function takes what C promises ("readable for `len` bytes") as its safety contract, and checks what
//! can be checked: NULL, and lengths that no object has.
#![allow(unsafe_code, reason = "pointers that C gives")]

use std::ptr;
use std::slice;

use crate::status::TamisStatus;

/// Bytes of the caller. NULL with a length of 0 is empty.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TamisBytes {
    /// The first of them.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

/// `len` things from `data` on.
///
/// # Safety
/// `data` is NULL, or aligned, readable for `len` things, and not written to during `'a`.
pub(crate) unsafe fn read<'a, T>(data: *const T, len: usize) -> Result<&'a [T], TamisStatus> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(TamisStatus::Null);
    }
    if len > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(TamisStatus::Length);
    }
    // SAFETY: not NULL and no longer than an object can be, checked above; the rest is what the caller promises.
    Ok(unsafe { slice::from_raw_parts(data, len) })
}

/// Puts one thing where the caller wants it.
///
/// # Safety
/// `place` is NULL, or aligned and writable for one `T`.
pub(crate) unsafe fn write<T: Copy>(place: *mut T, value: T) -> Result<(), TamisStatus> {
    if place.is_null() {
        return Err(TamisStatus::Null);
    }
    // SAFETY: not NULL, checked above; the rest is what the caller promises.
    unsafe { place.write(value) };
    Ok(())
}

/// Copies `bytes` into a buffer if they fit, and always writes how many there are.
///
/// # Safety
/// `buffer` is NULL or writable for `room` bytes, `length` NULL or aligned and writable; neither overlaps `bytes`.
pub(crate) unsafe fn fill(
    bytes: &[u8],
    buffer: *mut u8,
    room: usize,
    length: *mut usize,
) -> Result<(), TamisStatus> {
    if buffer.is_null() && room > 0 {
        return Err(TamisStatus::Null);
    }
    // SAFETY: what the caller promises of `length`.
    unsafe { write(length, bytes.len()) }?;
    if bytes.len() > room {
        return Err(TamisStatus::BufferTooSmall);
    }
    if !bytes.is_empty() {
        // SAFETY: `room`, and so `bytes.len()`, bytes are writable as the caller promises, and `buffer` is not
        // NULL, as `room` is not 0 here.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
    }
    Ok(())
}
