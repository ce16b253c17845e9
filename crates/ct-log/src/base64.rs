//! Strict base64 of fields that logs and lists write: padded, without spaces, with a limit.

/// The bytes of `text`; `None` where it is no base64, or stands for more than `bytes_max`.
pub(crate) fn decode(text: &str, bytes_max: usize) -> Option<Vec<u8>> {
    if text.len() > bytes_max.div_ceil(3).saturating_mul(4) {
        return None;
    }
    let bytes = base64_simd::STANDARD.decode_to_vec(text).ok()?;
    (bytes.len() <= bytes_max).then_some(bytes)
}
