//! Any bytes are a leaf or an error, and a leaf has a hash and an index or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::leaf::{CertificateList, Leaf, LeafBody, split_precert_extra_data};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(leaf) = Leaf::parse(bytes) {
        let _ = (leaf.hash(), leaf.leaf_index());
        let body = match leaf.body {
            LeafBody::X509(certificate) => certificate.len(),
            LeafBody::Precert { tbs, .. } => tbs.len() + 32,
        };
        let whole = 2 + 8 + 2 + 3 + body + 2 + leaf.extensions.len();
        assert!(whole == bytes.len() || (whole < bytes.len() && leaf.has_trailing_bytes()));
    }
    if let Ok((precertificate, chain)) = split_precert_extra_data(bytes) {
        assert_eq!(3 + precertificate.len() + chain.len(), bytes.len());
    }
    let listed: usize = CertificateList::new(bytes)
        .map(|certificate| 3 + certificate.len())
        .sum();
    assert!(listed <= bytes.len());
});
