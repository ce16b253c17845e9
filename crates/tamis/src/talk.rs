//! Talk on stderr: what happened, what is missing, what to do.
//!
//! # Invariants
//! Nobody has to listen: a closed stderr (`tamis … 2>&1 | head`) stops no work. What is told may quote
//! hostile input, so nothing a terminal would obey gets through.

use std::fmt::Arguments;
use std::io::Write;

/// Tells one line on stderr, with the name of the program before it.
macro_rules! talk {
    ($($what:tt)*) => {
        $crate::talk::line(format_args!($($what)*))
    };
}

/// What [`talk!`] does.
pub(crate) fn line(what: Arguments<'_>) {
    let line = format!("tamis: {}\n", crate::render::printable(&what.to_string()));
    // In one call, so that lines of two threads do not mix.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
