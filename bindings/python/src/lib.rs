//! The Python package `tamis`: canonical keys of URLs and their fingerprints.
//!
//! The compiled part, `tamis._tamis`; `python/tamis` holds what Python sees, with types and examples.
//!
//! # Concurrency
//! Batches let go of the interpreter: they copy the URLs first, and touch no Python object until all keys are
//! made.
#![forbid(unsafe_code)]

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tamis_url_canon::{Canonicalizer, Fingerprinter, Profile};

/// What was made of one URL.
#[pyclass(frozen, get_all, module = "tamis")]
struct Key {
    /// What to compare by; None if the URL was refused.
    key: Option<String>,
    /// What to fetch; None if the URL was refused, or is none that a browser would fetch.
    fetch_url: Option<String>,
    /// The rules that changed something on the way to the key.
    rules: Vec<&'static str>,
    /// What makes the keys; keys of two ids are not to be compared.
    id: String,
    /// Why there is no key, for people.
    error: Option<String>,
    /// Why there is no key, in one word.
    reason: Option<&'static str>,
}

#[pymethods]
impl Key {
    fn __repr__(&self) -> String {
        match (&self.key, &self.error) {
            (Some(key), _) => format!("Key(key={key:?})"),
            (None, error) => format!("Key(error={:?})", error.as_deref().unwrap_or_default()),
        }
    }
}

/// The key of one URL.
#[pyfunction]
#[pyo3(signature = (url, profile = "default"))]
fn canon(url: &Bound<'_, PyAny>, profile: &str) -> PyResult<Key> {
    let mut canonicalizer = named(profile)?;
    let id = canonicalizer.id().to_owned();
    Ok(match canonicalizer.canon(&bytes(url)?) {
        Ok(made) => Key {
            key: Some(made.key.to_owned()),
            fetch_url: Some(made.fetch_url.to_owned()).filter(|url| !url.is_empty()),
            rules: made.fired.iter().map(|rule| rule.name()).collect(),
            id,
            error: None,
            reason: None,
        },
        Err(reject) => Key {
            key: None,
            fetch_url: None,
            rules: Vec::new(),
            id,
            error: Some(reject.to_string()),
            reason: Some(reject.reason()),
        },
    })
}

/// The keys of many URLs.
#[pyfunction]
#[pyo3(signature = (urls, profile = "default"))]
fn keys(py: Python<'_>, urls: &Bound<'_, PyAny>, profile: &str) -> PyResult<Vec<Option<String>>> {
    let mut canonicalizer = named(profile)?;
    let urls = Urls::of(urls)?;
    Ok(py.detach(|| {
        let key = |url| canonicalizer.canon(url).ok().map(|made| made.key.to_owned());
        urls.iter().map(key).collect()
    }))
}

/// The fingerprints of the keys of many URLs, one behind the other.
#[pyfunction]
#[pyo3(signature = (urls, key, profile = "default"))]
fn fingerprints<'py>(
    py: Python<'py>,
    urls: &Bound<'py, PyAny>,
    key: &[u8],
    profile: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut canonicalizer = named(profile)?;
    let secret: &[u8; 16] = key
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("the key must have 16 bytes, and has {}", key.len())))?;
    let fingerprinter = Fingerprinter::new(secret, canonicalizer.id());
    let urls = Urls::of(urls)?;
    let prints: Vec<u8> = py.detach(|| {
        let print = |url| match canonicalizer.canon(url) {
            Ok(made) => fingerprinter.of(made.key.as_bytes()).0,
            Err(_) => [0; 16],
        };
        urls.iter().flat_map(print).collect()
    });
    Ok(PyBytes::new(py, &prints))
}

fn named(profile: &str) -> PyResult<Canonicalizer> {
    let profile: Profile = profile
        .parse()
        .map_err(|unknown: tamis_url_canon::UnknownProfile| PyValueError::new_err(unknown.to_string()))?;
    Ok(Canonicalizer::new(profile))
}

/// URLs copied out of Python, one behind the other.
#[derive(Default)]
struct Urls {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Urls {
    fn of(list: &Bound<'_, PyAny>) -> PyResult<Self> {
        if list.is_instance_of::<PyString>() || list.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(
                "give a list of URLs; for one URL there is tamis.canon",
            ));
        }
        let mut urls = Self::default();
        for url in list.try_iter()? {
            urls.bytes.extend_from_slice(&bytes(&url?)?);
            urls.ends.push(urls.bytes.len());
        }
        Ok(urls)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let url = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            url
        })
    }
}

/// The bytes of `str` or `bytes`. A lone surrogate is U+FFFD, as in browsers, so no `str` is refused.
fn bytes<'a>(url: &'a Bound<'_, PyAny>) -> PyResult<std::borrow::Cow<'a, [u8]>> {
    if let Ok(url) = url.cast::<PyBytes>() {
        return Ok(url.as_bytes().into());
    }
    let Ok(url) = url.cast::<PyString>() else {
        let kind = url.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a URL is str or bytes, not {kind}")));
    };
    if let Ok(url) = url.to_str() {
        return Ok(url.as_bytes().into());
    }
    let utf16 = url.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let units: Vec<u16> = utf16
        .cast::<PyBytes>()?
        .as_bytes()
        .chunks_exact(2)
        .map(|unit| {
            unit.iter()
                .rev()
                .fold(0, |unit, &byte| unit << 8 | u16::from(byte))
        })
        .collect();
    Ok(String::from_utf16_lossy(&units).into_bytes().into())
}

/// The compiled part of `tamis`.
#[pymodule]
mod _tamis {
    #[pymodule_export]
    use super::{Key, canon, fingerprints, keys};
}
