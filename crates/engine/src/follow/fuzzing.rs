//! Doors to the parsers of this module for the fuzz targets.

/// Reads any bytes as a zip file and takes each of the names out of it, at most `limit` bytes each.
pub fn zip_index(bytes: &[u8], names: &[&str], limit: u64) {
    super::zip_index::fuzz(bytes, names, limit);
}
