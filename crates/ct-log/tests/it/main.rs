//! What the crate reads, against real data and against what other parsers read from the same.

use std::path::PathBuf;

use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::Scratch;
use tamis_ct_log::{Input, Reading};

fn testdata(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

#[test]
fn smoke() {
    for path in ["ct/rfc6962/navigli2025h2_get-entries.json.gz", "ct/static/navigli2025h2/tile/data/000", "ct/rfc6962/live_ct.json","ct/rfc6962/itko2025_get-roots.json","ct/rfc6962/add-pre-chain.json","certs/odd_real/google_chain.pem"] {
        let bytes = std::fs::read(testdata(path)).unwrap();
        let input = Input::open(&bytes).unwrap();
        let mut reading = Reading::new();
        let mut n = 0;
        for raw in input.entries() {
            let raw = raw.unwrap();
            let mut scratch = Scratch::new();
            let entry = raw.decode(&mut scratch).unwrap();
            entry.read(&ReadOptions::default(), &mut reading).unwrap();
            if n < 3 { println!("{:?} {:?} {} {:?} {:?} {}", reading.names().collect::<Vec<_>>(), reading.deviations, reading.serial_hex(), reading.not_after, reading.log_index, reading.issuer_display()); }
            n += 1;
        }
        println!("{path} {:?} {n}", input.kind());
    }
}
