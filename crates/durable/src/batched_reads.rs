//! Many reads in one system call, through io_uring.
//!
//! # Invariants
//! The kernel writes into buffers that this file owns until every read of a batch is done. Where that cannot
//! be learned, the buffers are leaked and the ring refuses further work.
//!
//! # Limits
//! [`READS_MAX`] reads are under way at once.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

/// Reads under way at once.
const READS_MAX: usize = 64;

/// A part of a file, and where its bytes go.
#[derive(Debug)]
pub struct Wanted<'f> {
    /// Read from this file,
    pub file: &'f File,
    /// from this offset on,
    pub offset: u64,
    /// into this buffer, which is filled as far as the file goes,
    pub buffer: Vec<u8>,
    /// behind its first so many bytes (direct reads want aligned memory).
    pub skip: usize,
    /// Bytes read; fewer than wanted at the end of the file.
    pub read: usize,
}

/// A ring for batches of reads; one a thread.
pub struct BatchedReads {
    ring: IoUring,
    failed: bool,
}

impl BatchedReads {
    /// A ring of its own.
    ///
    /// # Errors
    /// The kernel's, where it has no io_uring or forbids it.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(READS_MAX as u32)?,
            failed: false,
        })
    }

    /// Reads all that is wanted and answers when the last read is done.
    ///
    /// # Errors
    /// The first read's that failed.
    pub fn read<'f>(&mut self, wanted: Vec<Wanted<'f>>) -> io::Result<Vec<Wanted<'f>>> {
        if self.failed {
            return Err(io::Error::other("an earlier batch of reads was never finished"));
        }
        // Dropped by hand: until all reads are done the kernel may write to the buffers.
        let mut wanted = ManuallyDrop::new(wanted);
        let mut refused = None;
        for part in wanted.chunks_mut(READS_MAX) {
            self.failed = true;
            let done = self.part(part)?;
            self.failed = false;
            refused = refused.or(done.err());
        }
        let wanted = ManuallyDrop::into_inner(wanted);
        refused.map_or(Ok(wanted), Err)
    }

    /// Reads as many as the ring holds. The outer error says that reads may still be under way.
    fn part(&mut self, part: &mut [Wanted<'_>]) -> io::Result<io::Result<()>> {
        for (number, want) in part.iter_mut().enumerate() {
            let to = want.buffer.get_mut(want.skip..).unwrap_or_default();
            let (start, bytes) = (to.as_mut_ptr(), to.len().min(u32::MAX as usize) as u32);
            let read = opcode::Read::new(types::Fd(want.file.as_raw_fd()), start, bytes);
            let entry = read.offset(want.offset).build().user_data(number as u64);
            // SAFETY: the buffer is part of `wanted` in `read`, which neither moves nor frees it before all reads
            // of this part are done, and leaks it if that cannot be learned; the file is borrowed as long.
            unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        }
        let (mut left, mut refused) = (part.len(), Ok(()));
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                submitted => drop(submitted?),
            }
            for done in self.ring.completion() {
                left = left.saturating_sub(1);
                match (
                    usize::try_from(done.result()),
                    part.get_mut(done.user_data() as usize),
                ) {
                    (Ok(bytes), Some(want)) => want.read = bytes,
                    _ => refused = Err(io::Error::from_raw_os_error(-done.result())),
                }
            }
        }
        Ok(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_reads_than_the_ring_holds_give_what_the_file_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        let mut reads = BatchedReads::new().unwrap();
        let wanted = (0..3 * READS_MAX).map(|number| Wanted {
            file: &file,
            offset: number as u64 * 2_083,
            buffer: vec![0xee; 501],
            skip: 1,
            read: 0,
        });
        for want in reads.read(wanted.collect()).unwrap() {
            let start = (want.offset as usize).min(bytes.len());
            let expected = &bytes[start..bytes.len().min(start + 500)];
            assert_eq!((want.read, want.buffer[0]), (expected.len(), 0xee));
            assert_eq!(&want.buffer[1..=want.read], expected);
        }
    }

    #[test]
    fn a_read_that_fails_is_an_error_and_the_ring_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let (file, folder) = (File::open(&path).unwrap(), File::open(dir.path()).unwrap());
        let mut reads = BatchedReads::new().unwrap();
        let want = |file| Wanted {
            file,
            offset: 2,
            buffer: vec![0; 4],
            skip: 0,
            read: 0,
        };
        assert!(reads.read(vec![want(&file), want(&folder)]).is_err());
        let read = reads.read(vec![want(&file)]).unwrap();
        assert_eq!(read[0].buffer, b"2345");
    }
}
