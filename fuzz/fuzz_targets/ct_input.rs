//! Any bytes are an input of some kind or an error, and every entry of it decodes or is one error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::certificate::ReadOptions;
use tamis_ct_log::input::{Chain, InputLimits, Scratch};
use tamis_ct_log::{Input, Reading};

fuzz_target!(|bytes: &[u8]| {
    let limits = InputLimits {
        inflated_bytes_max: 1 << 20,
    };
    let Ok(input) = Input::open_within(bytes, &limits) else {
        return;
    };
    let options = ReadOptions::default();
    let (mut scratch, mut reading) = (Scratch::new(), Reading::new());
    let mut ordinal = 0;
    for raw in input.entries() {
        if let Ok(raw) = &raw {
            assert_eq!(raw.ordinal(), ordinal);
            if let Ok(entry) = raw.decode(&mut scratch) {
                assert!(entry.offset <= input.bytes().len() as u64);
                let _ = entry.read(&options, &mut reading);
            }
            if let Ok(Chain::Certificates(certificates)) = raw.decode_chain(&mut scratch) {
                let _ = certificates.count();
            }
            let _ = raw.log_url();
        }
        ordinal += 1;
    }
});
