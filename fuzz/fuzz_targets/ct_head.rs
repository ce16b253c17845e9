//! Any bytes are a head or an error, and none that this key did not sign is verified.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::answers::Body;
use tamis_ct_log::head::{CHECKPOINT_SIGNATURES_MAX, Checkpoint, SignedTreeHead, VerifiedHead};
use tamis_ct_log::key::PublicKey;

/// Of the log whose head and checkpoint are in the corpus.
static KEY: LazyLock<PublicKey> = LazyLock::new(|| {
    let key = include_bytes!("../../testdata/ct/heads/rome2024h1.pem");
    PublicKey::from_pem(key).expect("a key")
});
const SIZE: u64 = 115_474_666;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(head) = SignedTreeHead::from_json(bytes) {
        check(head.verify(&KEY).ok());
    }
    if let Ok(checkpoint) = Checkpoint::parse(bytes) {
        assert!(!checkpoint.origin().is_empty());
        assert!(checkpoint.signatures().len() <= CHECKPOINT_SIGNATURES_MAX);
        for signature in checkpoint.signatures() {
            let _ = signature.key_id();
        }
        check(checkpoint.verify(&KEY).ok());
    }
    assert!(Body::of(bytes).text.chars().count() <= 200);
});

fn check(verified: Option<VerifiedHead>) {
    assert!(verified.is_none_or(|head| head.size() == SIZE));
}
