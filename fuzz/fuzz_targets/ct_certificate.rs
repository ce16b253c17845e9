//! Any bytes are a certificate with what could be read of it, or say what they are instead.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_ct_log::certificate::{
    self, COMMON_NAMES_MAX, ISSUER_BYTES_MAX, ReadOptions, SERIAL_BYTES_MAX, TEXT_BYTES_MAX,
    canonical_serial, parse_serial,
};
use tamis_ct_log::{Name, Reading};

fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions {
        names_max: 20,
        ..ReadOptions::default()
    };
    let mut reading = Reading::new();
    if certificate::read(bytes, Some(bytes), &options, &mut reading).is_ok() {
        check(&reading, &options);
    }
    if certificate::read_precert_entry(bytes, None, &options, &mut reading).is_ok() {
        check(&reading, &options);
    }
});

fn check(reading: &Reading, options: &ReadOptions) {
    assert!(reading.names().len() <= options.names_max);
    assert!(reading.names_total() as usize >= reading.names().len());
    assert!(reading.common_names().len() <= COMMON_NAMES_MAX);
    assert!(reading.serial().len() <= SERIAL_BYTES_MAX);
    assert!(reading.issuer().len() <= ISSUER_BYTES_MAX);
    let texts = reading.names().filter_map(|name| match name {
        Name::Host {
            host,
            exact,
            wildcard,
        } => {
            assert!(exact || wildcard);
            Some(host)
        }
        Name::Email(text) | Name::Other(text) => Some(text),
        _ => None,
    });
    for text in texts.chain(reading.common_names()) {
        assert!(text.len() <= TEXT_BYTES_MAX);
    }
    if !reading.serial().is_empty() {
        let shown = parse_serial(&reading.serial_hex());
        assert_eq!(shown.as_deref(), Some(canonical_serial(reading.serial())));
    }
    let _ = (reading.issuer_display(), reading.issuer_organisation());
}
