//! Records: files that follow one another in `seq` become one, block by block.

use std::sync::Arc;

use super::Outputs;
use crate::Result;
use crate::manifest::{HashPart, Holds, KeyPart};
use crate::segment::Segment;

/// Joins files of records, given by age. Blocks are checked and copied as they are.
pub(super) fn join(inputs: &[Arc<Segment>], outputs: &mut Outputs<'_>) -> Result<()> {
    let mut open = outputs.open(Holds::Records, KeyPart::default(), HashPart::default())?;
    for input in inputs {
        let mut number = 0;
        while let Some((payload, block)) = input.records_payload(number)? {
            open.writer.records_block(&payload, &block)?;
            open.entry.records += block.records.len() as u64;
            outputs.pace(&mut open)?;
            number += 1;
        }
    }
    outputs.close(open)
}
