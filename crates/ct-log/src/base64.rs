//! Strict base64 of fields that logs and lists write: padded, without spaces, with a limit.

/// The bytes of `text`; `None` where it is no base64, or stands for more than `bytes_max`.
pub(crate) fn decode(text: &str, bytes_max: usize) -> Option<Vec<u8>> {
    if text.len() > bytes_max.div_ceil(3).saturating_mul(4) {
        return None;
    }
    let bytes = base64_simd::STANDARD.decode_to_vec(text).ok()?;
    (bytes.len() <= bytes_max).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn strict_and_bounded() {
        let check = |text: &str, bytes_max: usize, expected: Option<&[u8]>| {
            assert_eq!(
                decode(text, bytes_max).as_deref(),
                expected,
                "{text} within {bytes_max}"
            );
        };
        check("AAEC", 3, Some(&[0, 1, 2]));
        check("AAEC", 2, None);
        check("AAE=", 2, Some(&[0, 1]));
        check("AAE=", 1, None);
        check("", 0, Some(&[]));
        // A bit set behind the last byte, no padding, a space, the alphabet of URLs.
        for other in ["AAF=", "AAE", "AA E=", "AAE=\n", "-_A="] {
            check(other, 100, None);
        }
    }
}
