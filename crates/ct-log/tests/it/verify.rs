//! What logs recorded in the wild sign, prove and promise, verified; and the same with a byte changed,
//! which must not verify.

use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use tamis_ct_log::certificate::{embedded_scts, logged_tbs, public_key_hash};
use tamis_ct_log::head::{Checkpoint, HeadError, SignedTreeHead, VerifiedHead};
use tamis_ct_log::input::{Chain, Scratch};
use tamis_ct_log::key::PublicKey;
use tamis_ct_log::leaf::{Leaf, LeafBody, TileLeaf};
use tamis_ct_log::log_list::{GOOGLE_KEY_PEM, LogList};
use tamis_ct_log::merkle::{
    CompactRange, Hash, HashTile, ProofError, TileId, Tree, leaf_hash, range_from_tiles, range_left_of,
    tiles_for_range, verify_consistency, verify_inclusion,
};
use tamis_ct_log::sct::{Sct, SctError};
use tamis_ct_log::{Input, answers, paths};

use crate::testdata;

const RECORDED: &str = "ct/rfc6962/recorded";
const NAVIGLI: &str = "ct/static/navigli2025h2";
const TESSERACT: &str = "ct/static/tesseract_client_log/log";

fn key(path: &str) -> PublicKey {
    PublicKey::from_pem(&testdata(path)).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    base64_simd::STANDARD.decode_to_vec(text).unwrap()
}

/// Each byte changed in some bits, one after the other.
fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..bytes.len()).flat_map(move |at| {
        [1, 0x20, 0x80].map(|flip| {
            let mut other = bytes.to_vec();
            other[at] ^= flip;
            (at, other)
        })
    })
}

fn recorded_head(body: &[u8]) -> Result<VerifiedHead, HeadError> {
    SignedTreeHead::from_json(body)?.verify(&key("ct/heads/argon2020.pem"))
}

/// The one entry of the recorded get-entries answer, as `leaf_input` holds it.
fn recorded_leaf() -> Vec<u8> {
    let body = testdata(&format!("{RECORDED}/get-entries-start-10000-end-10000.json"));
    let body: Value = serde_json::from_slice(&body).unwrap();
    base64(body["entries"][0]["leaf_input"].as_str().unwrap())
}

#[test]
fn a_recorded_head_verifies_and_no_byte_of_it_can_be_changed() {
    let body = testdata(&format!("{RECORDED}/get-sth.json"));
    let head = recorded_head(&body).unwrap();
    assert_eq!(
        (head.size(), head.timestamp_ms()),
        (961_984_011, 1_726_494_206_646)
    );
    for (at, other) in flips(body.trim_ascii_end()) {
        assert!(recorded_head(&other).is_err(), "byte {at}");
    }
    let other_log = SignedTreeHead::from_json(&body).unwrap();
    let error = other_log.verify(&key("ct/heads/argon2024.pem")).unwrap_err();
    assert!(matches!(error, HeadError::Signature(_)), "{error}");
    let other = testdata("ct/heads/argon2024.json");
    let other = SignedTreeHead::from_json(&other).unwrap();
    assert!(other.verify(&key("ct/heads/argon2024.pem")).is_ok());
}

#[test]
fn a_recorded_inclusion_proof_verifies_and_no_byte_of_it_can_be_changed() {
    let head = recorded_head(&testdata(&format!("{RECORDED}/get-sth.json"))).unwrap();
    let leaf = recorded_leaf();
    let hash = leaf_hash(&leaf);
    assert_eq!(Leaf::parse(&leaf).unwrap().hash(), hash.0);
    // The hash that the proof was asked for by, as the recording's name has it.
    let path = paths::proof_by_hash(&hash, head.size());
    assert!(
        path.contains("nCs3mfIydh9x4CKyQ%2Bu2xtmpxmFggA5MLymHwNQSlLg%3D"),
        "{path}"
    );
    let body = testdata(&format!(
        "{RECORDED}/get-proof-by-hash-tree-size-961984011-index-10000.json"
    ));
    let (index, path) = answers::proof_by_hash(&body).unwrap();
    assert_eq!(index, 10_000);
    assert_eq!(verify_inclusion(index, &hash, &path, head.tree()), Ok(()));
    let range = range_left_of(index, &hash, &path, head.tree()).unwrap();
    assert_eq!((range.begin(), range.end(), range.nodes().len()), (0, 10_000, 5));
    for (at, other) in flips(body.trim_ascii_end()) {
        let verified = answers::proof_by_hash(&other)
            .is_ok_and(|(index, path)| verify_inclusion(index, &hash, &path, head.tree()).is_ok());
        assert!(!verified, "byte {at}");
    }
    for (at, other) in flips(&leaf) {
        let error = verify_inclusion(index, &leaf_hash(&other), &path, head.tree());
        assert!(
            matches!(error, Err(ProofError::Root { .. })),
            "byte {at} of the leaf"
        );
    }
}

#[test]
fn a_recorded_consistency_proof_verifies_and_no_byte_of_it_can_be_changed() {
    let head = recorded_head(&testdata(&format!("{RECORDED}/get-sth.json"))).unwrap();
    // The root at this size, which the tests of golang.org/x/mod have from the same log.
    let old = Tree {
        size: 3_654_490,
        root: Hash::from_base64("AuIZ5V6sDUj1vn3Y1K85oOaQ7y+FJJKtyRTl1edIKBQ=").unwrap(),
    };
    let body = testdata(&format!(
        "{RECORDED}/get-sth-consistency-first-3654490-second-961984011.json"
    ));
    let path = answers::consistency(&body).unwrap();
    assert_eq!(verify_consistency(&old, head.tree(), &path), Ok(()));
    for (at, other) in flips(body.trim_ascii_end()) {
        let verified = answers::consistency(&other)
            .is_ok_and(|path| verify_consistency(&old, head.tree(), &path).is_ok());
        assert!(!verified, "byte {at}");
    }
    for (at, root) in flips(&old.root.0) {
        let root = Hash(root.try_into().unwrap());
        assert!(
            verify_consistency(&Tree { root, ..old }, head.tree(), &path).is_err(),
            "byte {at}"
        );
    }
}

#[test]
fn checkpoints_verify_and_what_is_signed_cannot_be_changed() {
    for (name, size) in [("rome2024h1", 115_474_666), ("arche2025h1", 1_432_088_532)] {
        let body = testdata(&format!("ct/heads/{name}.checkpoint"));
        let key = key(&format!("ct/heads/{name}.pem"));
        let verify = |body: &[u8]| Checkpoint::parse(body)?.verify(&key);
        let head = verify(&body).unwrap();
        assert_eq!((head.size(), head.log_id()), (size, key.id()));
        // The text, the empty line and the log's own line; witnesses' lines are not ours to judge.
        let start = memchr::memmem::find(&body, b"\n\n").unwrap() + 2;
        let end = start + memchr::memchr(b'\n', &body[start..]).unwrap();
        for (at, other) in flips(&body) {
            match verify(&other) {
                Ok(other) => assert!(at > end && other == head, "{name} byte {at}"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn small_trees_of_tiles_lead_to_the_roots_of_their_checkpoints() {
    // A byte for the kind of key, and the key.
    let ed25519 = &base64("AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx")[1..];
    let last = testdata(&format!("{TESSERACT}/checkpoint.15"));
    let last = *Checkpoint::parse(&last).unwrap().claimed_tree();
    let mut all = CompactRange::empty(0).unwrap();
    for size in 0..=15u64 {
        let body = testdata(&format!("{TESSERACT}/checkpoint.{size}"));
        let checkpoint = Checkpoint::parse(&body).unwrap();
        let tree = *checkpoint.claimed_tree();
        assert_eq!(
            (tree.size, checkpoint.origin()),
            (size, "example.com/log/testdata")
        );
        // Signed with Ed25519, as no CT log may: refused as such, though the signature is good.
        let (text, line) = std::str::from_utf8(&body).unwrap().rsplit_once("\n\n").unwrap();
        let signature = base64(line.trim_end().rsplit_once(' ').unwrap().1);
        let verifier = UnparsedPublicKey::new(&ED25519, ed25519);
        assert!(
            verifier
                .verify(format!("{text}\n").as_bytes(), &signature[4..])
                .is_ok()
        );
        assert!(checkpoint.verify(&key("ct/heads/rome2024h1.pem")).is_err());
        let tiles: Vec<HashTile> = tiles_for_range(size, size)
            .unwrap()
            .into_iter()
            .map(|id| HashTile::parse(id, &testdata(&format!("{TESSERACT}/{id}"))).unwrap())
            .collect();
        let range = range_from_tiles(size, &tree, &tiles).unwrap();
        assert_eq!(range.root(), Some(tree.root));
        for tile in &tiles {
            let body = testdata(&format!("{TESSERACT}/{}", tile.id()));
            for (at, other) in flips(&body) {
                let other = HashTile::parse(tile.id(), &other).unwrap();
                assert!(
                    range_from_tiles(size, &tree, &[other]).is_err(),
                    "{} byte {at}",
                    tile.id()
                );
            }
            while all.end() < size {
                all.push(tile.hashes()[all.end() as usize]).unwrap();
            }
        }
        assert_eq!(all, range);
        let part = tiles_for_range(size, 15).unwrap();
        let part: Vec<HashTile> = part
            .into_iter()
            .map(|id| HashTile::parse(id, &testdata(&format!("{TESSERACT}/{id}"))).unwrap())
            .collect();
        assert_eq!(range_from_tiles(size, &last, &part), Ok(range));
    }
}

#[test]
fn published_vectors_of_inclusion_proofs() {
    let text = String::from_utf8(testdata("ct/merkle/proof_vectors.jsonl")).unwrap();
    let mut counts = [0, 0];
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let hash = |value: &Value| Hash::from_base64(value.as_str().unwrap_or_default());
        let path = vector["proof"].as_array().into_iter().flatten().map(hash);
        let index = vector["leafIdx"].as_u64().unwrap();
        let size = vector["treeSize"].as_u64().unwrap();
        // What is no hash of 32 bytes is refused before any proof is looked at.
        let verified = (|| {
            let path: Vec<Hash> = path.collect::<Option<_>>()?;
            let (leaf, root) = (hash(&vector["leafHash"])?, hash(&vector["root"])?);
            verify_inclusion(index, &leaf, &path, &Tree { size, root }).ok()
        })();
        let is_bad = vector["wantErr"].as_bool().unwrap();
        assert_eq!(verified.is_none(), is_bad, "{}", vector["id"]);
        counts[usize::from(is_bad)] += 1;
    }
    assert_eq!(counts[0] + counts[1], 98);
    assert!(counts[0] >= 5, "{counts:?}");
}

#[test]
fn entries_of_a_data_tile_are_the_leaves_of_its_hash_tile() {
    let data = testdata(&format!("{NAVIGLI}/tile/data/000"));
    let id = TileId::in_tree(0, 0, 256).unwrap();
    let hashes = HashTile::parse(id, &testdata(&format!("{NAVIGLI}/{}", paths::tile(&id)))).unwrap();
    let mut rest = data.as_slice();
    for (index, hash) in hashes.hashes().iter().enumerate() {
        let (entry, behind) = TileLeaf::parse(rest).unwrap();
        let bytes = &rest[..rest.len() - behind.len()];
        rest = behind;
        let leaf = entry.leaf.merkle_tree_leaf();
        assert_eq!((leaf_hash(&leaf), entry.leaf.hash()), (*hash, hash.0));
        assert_eq!(entry.leaf.check_index(index as u64), Ok(()));
        assert!(entry.leaf.check_index(index as u64 + 1).is_err());
        // The start, the end, and some bytes between of what the tree covers.
        let covered = leaf.len() - 2;
        for at in (0..covered).step_by(97).chain([covered - 1]) {
            let mut other = bytes.to_vec();
            other[at] ^= 1;
            let same = TileLeaf::parse(&other).is_ok_and(|(entry, _)| entry.leaf.hash() == hash.0);
            assert!(!same, "entry {index} byte {at}");
        }
        let mut chain = bytes.to_vec();
        *chain.last_mut().unwrap() ^= 1;
        let (chain, _) = TileLeaf::parse(&chain).unwrap();
        assert_eq!(chain.leaf.hash(), hash.0, "the chain is not covered");
    }
    assert_eq!(rest, b"");
}

#[test]
fn roots_of_a_real_log_are_read() {
    let roots = answers::roots(&testdata("ct/rfc6962/itko2025_get-roots.json")).unwrap();
    assert_eq!(roots.len(), 661);
    assert!(roots.iter().all(|root| public_key_hash(root).is_some()));
}

/// The first certificate of a PEM file.
fn pem(path: &str) -> Vec<u8> {
    let bytes = testdata(path);
    let input = Input::open(&bytes).unwrap();
    let raw = input.entries().next().unwrap().unwrap();
    raw.decode(&mut Scratch::new())
        .unwrap()
        .submitted
        .unwrap()
        .to_vec()
}

#[track_caller]
fn check_sct(proof: &[u8], body: &LeafBody<'_>, key: &PublicKey) {
    assert_eq!(Sct::parse(proof).unwrap().verify(body, key), Ok(()));
    for (at, other) in flips(proof) {
        let verified = Sct::parse(&other).and_then(|sct| sct.verify(body, key));
        assert!(verified.is_err(), "byte {at}");
    }
}

#[test]
fn timestamps_of_certificates_verify() {
    let server = key("ct/sct/ct-server-key-public.pem");
    let rsa = key("ct/sct/rsa/ct-server-key-public-rsa.pem");
    for (certificate, proof, key) in [
        ("test-cert", "test-cert", &server),
        ("test-intermediate-cert", "test-intermediate-cert", &server),
        ("test-cert", "rsa/test-cert-rsa", &rsa),
    ] {
        let der = pem(&format!("ct/sct/{certificate}.pem"));
        check_sct(
            &testdata(&format!("ct/sct/{proof}.proof")),
            &LeafBody::X509(&der),
            key,
        );
    }
    let proof = testdata("ct/sct/test-cert.proof");
    let der = pem("ct/sct/test-cert.pem");
    let error = Sct::parse(&proof)
        .unwrap()
        .verify(&LeafBody::X509(&der), &rsa)
        .unwrap_err();
    assert!(matches!(error, SctError::OtherLog { .. }));
}

#[test]
fn timestamps_of_precertificates_verify_also_through_their_signers() {
    let key = key("ct/sct/ct-server-key-public.pem");
    // The precertificate, who signed it, and whose key the final certificate is signed with.
    for (name, signer, issuer) in [
        ("test-embedded", "ca-cert", "ca-cert"),
        ("test-embedded-with-preca", "ca-pre-cert", "ca-cert"),
        (
            "test-embedded-with-intermediate",
            "intermediate-cert",
            "intermediate-cert",
        ),
        (
            "test-embedded-with-intermediate-preca",
            "intermediate-pre-cert",
            "intermediate-cert",
        ),
    ] {
        let proof = testdata(&format!("ct/sct/{name}-pre-cert.proof"));
        let precert = pem(&format!("ct/sct/{name}-pre-cert.pem"));
        let signer = pem(&format!("ct/sct/{signer}.pem"));
        let issuer_key_hash = public_key_hash(&pem(&format!("ct/sct/{issuer}.pem"))).unwrap();
        let tbs = logged_tbs(&precert, Some(&signer)).unwrap();
        let body = LeafBody::Precert {
            issuer_key_hash: &issuer_key_hash,
            tbs: &tbs,
        };
        check_sct(&proof, &body, &key);
        // The certificate that came of it carries the same promise.
        let certificate = pem(&format!("ct/sct/{name}-cert.pem"));
        assert_eq!(logged_tbs(&certificate, None).unwrap(), tbs, "{name}");
        let list = Sct::list(embedded_scts(&certificate).unwrap()).unwrap();
        assert_eq!(list, [Sct::parse(&proof)]);
    }
    let invalid = pem("ct/sct/test-invalid-embedded-cert.pem");
    let issuer_key_hash = public_key_hash(&pem("ct/sct/ca-cert.pem")).unwrap();
    let tbs = logged_tbs(&invalid, None).unwrap();
    let body = LeafBody::Precert {
        issuer_key_hash: &issuer_key_hash,
        tbs: &tbs,
    };
    for sct in Sct::list(embedded_scts(&invalid).unwrap()).unwrap() {
        assert!(sct.and_then(|sct| sct.verify(&body, &key)).is_err());
    }
}

#[test]
fn timestamps_in_certificates_of_today_verify_with_the_keys_of_the_list() {
    let list = testdata("ct/log_lists/google_v3_log_list.json");
    let signature = testdata("ct/log_lists/google_v3_log_list.sig");
    let google = PublicKey::from_pem(GOOGLE_KEY_PEM.as_bytes()).unwrap();
    let logs = LogList::read_signed(&list, &signature, &google).unwrap();
    let bytes = testdata("ct/rfc6962/live_ct.json");
    let input = Input::open(&bytes).unwrap();
    let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
    let (mut verified, mut with_index) = (0, 0);
    for raw in input.entries() {
        let raw = raw.unwrap();
        let entry = raw.decode(&mut scratch).unwrap();
        let Some(LeafBody::X509(der)) = entry.leaf.map(|leaf| leaf.body) else {
            continue;
        };
        let Chain::Certificates(mut chain) = raw.decode_chain(&mut other).unwrap() else {
            panic!()
        };
        let issuer_key_hash = public_key_hash(chain.next().unwrap()).unwrap();
        let tbs = logged_tbs(der, None).unwrap();
        let body = LeafBody::Precert {
            issuer_key_hash: &issuer_key_hash,
            tbs: &tbs,
        };
        for sct in Sct::list(embedded_scts(der).unwrap()).unwrap() {
            let sct = sct.unwrap();
            let Some(log) = logs.log(&sct.log_id) else {
                continue;
            };
            assert_eq!(sct.verify(&body, &log.key), Ok(()), "{}", log.description);
            verified += 1;
            with_index += usize::from(sct.leaf_index().unwrap().is_some());
        }
    }
    println!("{verified} timestamps verified, {with_index} of static logs");
    assert!(verified >= 40 && with_index >= 1, "{verified} {with_index}");
}

#[test]
fn what_logs_put_into_leaves_is_what_we_rebuild_from_precertificates() {
    let mut rebuilt = 0;
    for path in [
        "ct/rfc6962/live_ct.json",
        "ct/rfc6962/navigli2025h2_get-entries.json.gz",
    ] {
        let bytes = testdata(path);
        let input = Input::open(&bytes).unwrap();
        let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
        for raw in input.entries() {
            let raw = raw.unwrap();
            let entry = raw.decode(&mut scratch).unwrap();
            let leaf = entry.leaf.unwrap();
            let LeafBody::Precert { issuer_key_hash, tbs } = leaf.body else {
                continue;
            };
            let Chain::Certificates(mut chain) = raw.decode_chain(&mut other).unwrap() else {
                panic!()
            };
            let issuer = chain.next().unwrap();
            assert_eq!(
                logged_tbs(entry.submitted.unwrap(), Some(issuer)).as_deref(),
                Some(tbs)
            );
            assert_eq!(public_key_hash(issuer).as_ref(), Some(issuer_key_hash));
            rebuilt += 1;
        }
    }
    assert_eq!(rebuilt, 14 + 256);
}
