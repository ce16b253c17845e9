//! Any bytes are an SCT, a list of them, a key, or a certificate whose logged form is one too.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::certificate::{embedded_scts, logged_tbs, public_key_hash};
use tamis_ct_log::key::{LogId, PublicKey};
use tamis_ct_log::leaf::LeafBody;
use tamis_ct_log::sct::Sct;

static KEY: LazyLock<PublicKey> = LazyLock::new(|| {
    let key = include_bytes!("../../testdata/ct/sct/ct-server-key-public.pem");
    PublicKey::from_pem(key).expect("a key")
});

fuzz_target!(|bytes: &[u8]| {
    check(Sct::parse(bytes).ok().as_ref());
    for sct in Sct::list(bytes).into_iter().flatten() {
        check(sct.ok().as_ref());
    }
    if let Ok(key) = PublicKey::from_spki(bytes) {
        assert_ne!(key.id(), LogId([0; 32]));
        assert!(key.verify(b"message", bytes).is_err());
    }
    let _ = PublicKey::from_pem(bytes);
    if let Some(tbs) = logged_tbs(bytes, Some(bytes)) {
        assert!(tbs.len() <= bytes.len() * 2 + 64);
    }
    let _ = (public_key_hash(bytes), embedded_scts(bytes).map(Sct::list));
});

fn check(sct: Option<&Sct<'_>>) {
    let Some(sct) = sct else { return };
    let body = LeafBody::X509(b"no certificate");
    assert!(sct.verify(&body, &KEY).is_err());
    let _ = (sct.leaf_hash(&body), sct.leaf_index());
}
