//! What `read` makes of names as certificates carry them, as one table by kind.

use std::borrow::Cow;

use proptest::prelude::*;

use super::read;
use crate::{HOST_BYTES_MAX, HostName, Identifier, Repairs, TEXT_BYTES_MAX};

#[track_caller]
fn check_host(raw: impl AsRef<[u8]>, display: &str, repairs: Repairs) {
    let raw = raw.as_ref();
    let Identifier::Host(name) = read(raw) else {
        panic!("{:?} is no host", read(raw));
    };
    assert_eq!(name.display(), display);
    assert_eq!(name.repairs(), repairs, "repairs of {display}");
    assert_is_stable(&name);
}

#[track_caller]
fn check_ip(raw: &str, address: &str) {
    assert_eq!(
        read(raw.as_bytes()),
        Identifier::Ip(address.parse().unwrap()),
        "{raw:?}"
    );
}

#[track_caller]
fn check_email(raw: impl AsRef<[u8]>, email: &str) {
    assert_eq!(read(raw.as_ref()), Identifier::Email(email.into()));
    assert_eq!(read(email.as_bytes()), Identifier::Email(email.into()));
}

#[track_caller]
fn check_other(raw: impl AsRef<[u8]>, text: &str) {
    assert_eq!(read(raw.as_ref()), Identifier::Other(text.into()));
    assert_eq!(read(text.as_bytes()), Identifier::Other(text.into()));
}

/// Reading the canonical form again gives the same host, and only what is odd about the host itself.
#[track_caller]
fn assert_is_stable(name: &HostName<'_>) {
    let display = name.display();
    let expected = HostName::new(
        Cow::Borrowed(name.host()),
        name.wildcard(),
        name.repairs().intersection(Repairs::PERSISTENT),
    );
    assert_eq!(read(display.as_bytes()), Identifier::Host(expected));
}

#[test]
fn clean_names_are_hosts() {
    for name in [
        "www.example.com",
        "example.com",
        "localhost",
        "a.b",
        "x",
        "1and1.de",
        "a1.2b",
        "a-b.c--d.e",
        "-.-",
    ] {
        check_host(name, name, Repairs::empty());
    }
    check_host("WWW.Example.COM", "www.example.com", Repairs::empty());
    check_host(
        "_sip._tcp.example.com",
        "_sip._tcp.example.com",
        Repairs::UNDERSCORE,
    );
    check_host("0x7f.0x1", "0x7f.0x1", Repairs::empty());
}

#[test]
fn clean_names_are_not_copied() {
    for name in [
        "www.example.com",
        "*.example.com",
        "_dmarc.example.com",
        " example.com",
        "http://example.com/",
    ] {
        let Identifier::Host(host) = read(name.as_bytes()) else {
            panic!("{name} is no host")
        };
        assert!(matches!(host.into_host(), Cow::Borrowed(_)), "{name} was copied");
    }
}

#[test]
fn wildcards_are_a_flag_on_the_base_name() {
    check_host("*.example.com", "*.example.com", Repairs::empty());
    check_host("*.EXAMPLE.com.", "*.example.com", Repairs::TRAILING_DOT);
    check_host("*.com", "*.com", Repairs::empty());
    check_host("\n*.example.com", "*.example.com", Repairs::WHITESPACE);
    check_host(".*.example.com", "*.example.com", Repairs::LEADING_DOT);
    check_host(
        "https://*.example.com/",
        "*.example.com",
        Repairs::SCHEME | Repairs::PATH,
    );
    check_host("*.müller.de", "*.xn--mller-kva.de", Repairs::ULABEL);
    for text in [
        "*",
        "*.",
        "*.*.example.com",
        "foo.*.example.com",
        "f*.example.com",
        "*foo.example.com",
        "**.a.b",
    ] {
        check_other(text, text);
    }
    check_other("*..example.com", "*..example.com");
    check_other("*.1.2.3.4", "*.1.2.3.4");
    check_other("＊.example.com", "＊.example.com");
}

#[test]
fn what_stands_around_a_name_is_removed_and_noted() {
    check_host("example.com.", "example.com", Repairs::TRAILING_DOT);
    check_host("example.com..", "example.com", Repairs::TRAILING_DOT);
    check_host(".example.com", "example.com", Repairs::LEADING_DOT);
    check_host(" \texample.com\r\n", "example.com", Repairs::WHITESPACE);
    check_host("\u{a0}example.com\u{3000}", "example.com", Repairs::WHITESPACE);
    check_host("example.com\0\0", "example.com", Repairs::NUL);
    check_host(
        "\0example.com\0 ",
        "example.com",
        Repairs::NUL | Repairs::WHITESPACE,
    );
    check_host("example.com:443", "example.com", Repairs::PORT);
    check_host("localhost:", "localhost", Repairs::PORT);
    check_host("example.com/", "example.com", Repairs::PATH);
    check_host(
        "http://www.example.com:8080/path",
        "www.example.com",
        Repairs::SCHEME | Repairs::PORT | Repairs::PATH,
    );
    check_host(
        "HTTPS://Example.com?q=a@b",
        "example.com",
        Repairs::SCHEME | Repairs::PATH,
    );
    check_host("https://host#x", "host", Repairs::SCHEME | Repairs::PATH);
    check_host(
        "ftp://me:pw@example.com",
        "example.com",
        Repairs::SCHEME | Repairs::USERINFO,
    );
    check_host("ldap+x.1-y://example.com", "example.com", Repairs::SCHEME);
}

#[test]
fn a_step_that_is_not_sure_keeps_the_whole() {
    for text in [
        "Dept/Web",
        "host/www",
        "foo#1",
        "example.com?x",
        "a.b/c@d.e",
        "example.com:https",
        "example.com:123456",
        "example.com:80:80",
        "DNS:example.com",
        "://example.com",
        "1http://example.com",
        "http://",
        "http:///path",
        "//example.com",
        "example.com,example.org",
        "(www.)example.com",
        "100%.example.com",
        "a\\b.com",
        "'example.com'",
    ] {
        check_other(text, text);
    }
}

#[test]
fn an_embedded_nul_neither_cuts_nor_hides() {
    check_other("www.example.com\0.evil.com", r"www.example.com\x00.evil.com");
    check_other(
        "http://example.com/\0.evil.com",
        r"http://example.com/\x00.evil.com",
    );
    check_other("\0a\0b\0", r"\x00a\x00b\x00");
}

#[test]
fn what_lacks_sense_is_text() {
    check_other("", "");
    check_other(".", ".");
    check_other("...", "...");
    check_other("\0", r"\x00");
    check_other("  ", "");
    check_other("a..b", "a..b");
    check_other("a b.com", "a b.com");
    check_other("example .com", "example .com");
    check_other("a\nb.com", r"a\x0Ab.com");
    check_other(" Acme Widgets, Inc. ", "Acme Widgets, Inc.");
    check_other("a\u{202e}b.com", r"a\u{202E}b.com");
}

#[test]
fn addresses_are_not_hosts() {
    check_ip("192.0.2.1", "192.0.2.1");
    check_ip("192.0.2.1.", "192.0.2.1");
    check_ip(" 192.0.2.1\0", "192.0.2.1");
    check_ip("192.0.2.1:8443", "192.0.2.1");
    check_ip("http://192.0.2.1/x", "192.0.2.1");
    check_ip("１９２.0.2.1", "192.0.2.1");
    check_ip("2001:db8::1", "2001:db8::1");
    check_ip("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
    check_ip("[2001:db8::1]", "2001:db8::1");
    check_ip("https://[2001:db8::1]:443/x", "2001:db8::1");
    check_ip("::ffff:192.0.2.1", "::ffff:192.0.2.1");
    check_ip("::", "::");
    for text in [
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "192.0.2.0/24",
        "2001:db8::/32",
        "[2001:db8::1",
        "[2001:db8::1]x",
        "[192.0.2.1]",
        "fe80::1%eth0",
        "12345",
        "example.123",
    ] {
        check_other(text, text);
    }
}

#[test]
fn email_addresses_keep_their_local_part() {
    check_email("a@b.c", "a@b.c");
    check_email("John.Doe+x@Example.COM", "John.Doe+x@example.com");
    check_email(" a@b.c. ", "a@b.c");
    check_email("jörg@müller.de", "jörg@xn--mller-kva.de");
    check_email(b"j\xf6rg@m\xfcller.de", "jörg@xn--mller-kva.de");
    check_email("root@localhost", "root@localhost");
    for text in [
        "@b.c",
        "a@",
        "a@b@c.d",
        "a@b..c",
        "a@*.b.c",
        "a@192.0.2.1",
        "a@b c",
        "@",
    ] {
        check_other(text, text);
    }
    check_other("a\u{202e}@b.c", r"a\u{202E}@b.c");
    let long = format!("{}@b.c", "a".repeat(TEXT_BYTES_MAX));
    check_other(&long, &format!("{}…", "a".repeat(TEXT_BYTES_MAX - 3)));
}

#[test]
fn unicode_names_become_a_labels() {
    check_host("müller.de", "xn--mller-kva.de", Repairs::ULABEL);
    check_host("MÜLLER.DE", "xn--mller-kva.de", Repairs::ULABEL);
    check_host(
        b"m\xfcller.de",
        "xn--mller-kva.de",
        Repairs::ULABEL | Repairs::LATIN1,
    );
    check_host("straße.de", "xn--strae-oqa.de", Repairs::ULABEL);
    check_host(
        "例え。テスト。",
        "xn--r8jz45g.xn--zckzah",
        Repairs::ULABEL | Repairs::TRAILING_DOT,
    );
    check_host(
        "_a.müller.de",
        "_a.xn--mller-kva.de",
        Repairs::ULABEL | Repairs::UNDERSCORE,
    );
    check_host("ex\u{ad}ample.com", "example.com", Repairs::ULABEL);
    check_host("example.com\u{200b}", "example.com", Repairs::ULABEL);
    check_host("ｅxample.com", "example.com", Repairs::ULABEL);
    check_host(
        "xn--a.ß",
        "xn--a.xn--zca",
        Repairs::ULABEL | Repairs::PUNYCODE_INVALID,
    );
    // Refused by UTS 46: a stray joiner, mixed directions, an A-label with a letter beyond ASCII.
    for text in [
        "xn--teüla",
        "\u{64a}a",
        "\u{ad}",
        "a.\u{fffd}.b",
        "www‥example.com",
        "aaa…",
    ] {
        let shown = text.replace('\u{ad}', r"\xAD");
        check_other(text, &shown);
    }
    check_other("\u{200d}.example", r"\u{200D}.example");
}

#[test]
fn a_labels_that_do_not_decode_are_kept() {
    for host in [
        "xn--a.com",
        "xn--.com",
        "xn--zn7c.com",
        "xn--foo-.com",
        "a.xn--0",
        "xn--mller-kva.xn--99999999",
    ] {
        check_host(host, host, Repairs::PUNYCODE_INVALID);
    }
    for host in ["xn--mller-kva.de", "xn--g6h.net", "a-xn--b.com", "ab--c.com"] {
        check_host(host, host, Repairs::empty());
    }
    check_host("XN--MLLER-KVA.DE", "xn--mller-kva.de", Repairs::empty());
}

#[test]
fn length_is_noted_up_to_a_bound() {
    let label = |bytes: usize| "a".repeat(bytes);
    check_host(label(63), &label(63), Repairs::empty());
    check_host(label(64), &label(64), Repairs::LONG_LABEL);
    let longest = [label(63), label(63), label(63), label(61)].join(".");
    assert_eq!(longest.len(), 253);
    check_host(&longest, &longest, Repairs::empty());
    check_host(format!("{longest}a"), &format!("{longest}a"), Repairs::LONG_NAME);
    check_host(
        label(HOST_BYTES_MAX),
        &label(HOST_BYTES_MAX),
        Repairs::LONG_LABEL | Repairs::LONG_NAME,
    );
    let cut = format!("{}…", label(TEXT_BYTES_MAX - 3));
    check_other(label(HOST_BYTES_MAX + 1), &cut);
    check_other(label(100_000), &cut);
    // Longer than any host and not ASCII: Punycode is not even tried.
    let long = "ü".repeat(HOST_BYTES_MAX);
    check_other(&long, &format!("{}…", "ü".repeat(238)));
}

/// Bytes that are likely to meet a branch of the reader.
fn odd_bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = proptest::sample::select(vec![
        &b"."[..],
        b"..",
        b"*",
        b"*.",
        b"-",
        b"--",
        b"xn--",
        b"_",
        b"a",
        b"Z",
        b"example",
        b"com",
        b"1",
        b"255",
        b":",
        b"/",
        b"//",
        b"://",
        b"http",
        b"@",
        b"[",
        b"]",
        b"::",
        b"?",
        b"#",
        b"\0",
        b" ",
        b"\n",
        b"\x7f",
        b"%",
        b"\\",
        b"\xfc",
        b"\xc3\xbc",
        b"\xe3\x80\x82",
        b"\xc2\xad",
        b"\xe2\x80\xae",
        b"\xe2\x80\x8d",
        b"\xd7\x90",
        b"\xef\xbc\x91",
        b"\xff",
        b"\xc3",
        b"mller-kva",
        b"0x",
    ]);
    proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

fn assert_invariants(raw: &[u8]) {
    match read(raw) {
        Identifier::Host(name) => {
            let host = name.host();
            assert!(host.len() <= HOST_BYTES_MAX && !host.is_empty());
            assert!(host.split('.').all(|label| !label.is_empty()), "{host:?}");
            assert!(
                host.bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')),
                "{host:?}"
            );
            assert_is_stable(&name);
            let unicode = crate::to_unicode(host);
            assert!(!unicode.chars().any(char::is_control), "{unicode:?}");
            let Identifier::Host(back) = read(unicode.as_bytes()) else {
                panic!("{unicode:?} is no host")
            };
            assert_eq!(back.host(), host, "the way back from {unicode:?}");
        }
        Identifier::Ip(address) => assert_eq!(read(address.to_string().as_bytes()), Identifier::Ip(address)),
        Identifier::Email(text) => {
            assert!(text.len() <= TEXT_BYTES_MAX);
            assert_eq!(read(text.as_bytes()), Identifier::Email(text.clone()));
        }
        Identifier::Other(text) => {
            assert!(text.len() <= TEXT_BYTES_MAX);
            assert!(!text.chars().any(crate::text::is_hidden), "{text:?}");
            assert_eq!(read(text.as_bytes()), Identifier::Other(text.clone()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_one_of_the_four(raw in proptest::collection::vec(any::<u8>(), 0..80)) {
        assert_invariants(&raw);
    }

    #[test]
    fn odd_bytes_are_one_of_the_four(raw in odd_bytes()) {
        assert_invariants(&raw);
    }

    #[test]
    fn any_text_is_one_of_the_four(raw in "\\PC{0,24}") {
        assert_invariants(raw.as_bytes());
    }

    #[test]
    fn owning_changes_nothing(raw in odd_bytes()) {
        prop_assert_eq!(read(&raw).into_owned(), read(&raw));
    }
}
