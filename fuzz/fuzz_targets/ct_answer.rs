//! Any bytes are a proof or a list of roots of bounded length, or one error that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::answers::{self, AnswerError};
use tamis_ct_log::merkle::{Hash, PATH_HASHES_MAX, Tree, range_left_of, verify_consistency};

fuzz_target!(|bytes: &[u8]| {
    let root = Hash::EMPTY_ROOT;
    let new = Tree {
        size: 961_984_011,
        root,
    };
    match answers::consistency(bytes) {
        Ok(path) => {
            assert!(path.len() <= PATH_HASHES_MAX);
            let old = Tree {
                size: 3_654_490,
                root,
            };
            assert!(verify_consistency(&old, &new, &path).is_err());
        }
        Err(error) => show(&error),
    }
    match answers::proof_by_hash(bytes) {
        Ok((index, path)) => {
            assert!(path.len() <= PATH_HASHES_MAX);
            assert!(range_left_of(index, &root, &path, &new).is_err());
        }
        Err(error) => show(&error),
    }
    match answers::roots(bytes) {
        Ok(roots) => assert!(roots.iter().map(Vec::len).sum::<usize>() <= bytes.len()),
        Err(error) => show(&error),
    }
});

fn show(error: &AnswerError) {
    assert!(!error.to_string().contains('\u{1b}'));
    let _ = error.is_retryable();
}
