//! Talk on stderr: what happened, what is missing, what to do.
//!
//! # Invariants
//! Nobody has to listen: a closed stderr (`tamis … 2>&1 | head`) stops no work. What is told may quote
//! hostile input, so nothing a terminal would obey gets through.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

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

/// An error and its causes, without repeating a cause that the text before already quotes, and with a
/// hint where only the system spoke.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let system = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match system.and_then(|error| hint(error.kind())) {
        // The libraries put their own hints behind a semicolon.
        Some(hint) if !text.contains(';') => format!("{text}; {hint}"),
        _ => text,
    }
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied => "check the owner and the mode of it and of its folder",
        ErrorKind::NotADirectory => "a part of the path is a file and no folder",
        ErrorKind::IsADirectory => "it is a folder; name a file",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; name a place elsewhere",
        ErrorKind::StorageFull => "free some space, or name a place elsewhere",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_given_once() {
        let system = |kind| anyhow::Error::new(std::io::Error::from(kind));
        let error = system(ErrorKind::PermissionDenied).context("open a");
        assert!(
            told(&error).starts_with("open a: permission denied; check the owner"),
            "{}",
            told(&error)
        );
        let error = system(ErrorKind::NotFound).context("open b; look elsewhere");
        assert!(told(&error).ends_with("entity not found"), "{}", told(&error));
        let error = anyhow::anyhow!("c").context("d: c");
        assert_eq!(told(&error), "d: c");
    }
}
