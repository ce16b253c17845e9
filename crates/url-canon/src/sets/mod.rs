//! Rule sets as data.

/// What the active rule sets say about one URL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Site<'a> {
    /// `utm_*` goes, as the classic profile has it.
    pub(crate) classic: bool,
    pub(crate) marker: std::marker::PhantomData<&'a ()>,
}

impl Site<'_> {
    pub(crate) fn drops(&self, name: &[u8], _value: &[u8]) -> bool {
        self.classic && name.starts_with(b"utm_")
    }

    pub(crate) fn keeps_fragment(&self, _fragment: &[u8]) -> bool {
        false
    }

    pub(crate) fn drop_path_parameters(&self, _out: &mut Vec<u8>, _start: usize) -> bool {
        false
    }
}
