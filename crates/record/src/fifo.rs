//! Bytes that go out as they came in, in blocks of one size: pieces of many sizes, each allocated
//! by itself, would leave an allocator with room between them for weeks.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a block: a few pages of the kernel.
const BLOCK: usize = 16 << 10;

/// A queue of bytes.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    blocks: VecDeque<Box<[u8]>>,
    /// Bytes of the first block that have gone out.
    gone: usize,
    bytes: usize,
}

impl Fifo {
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Adds bytes at the end.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = (self.gone + self.bytes) % BLOCK;
            if self.gone + self.bytes == self.blocks.len() * BLOCK {
                self.blocks.push_back(vec![0; BLOCK].into());
            }
            let Some(block) = self.blocks.back_mut() else { return };
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - at));
            block[at..at + now.len()].copy_from_slice(now);
            self.bytes += now.len();
            bytes = later;
        }
    }

    /// Takes bytes out at the beginning, at most all.
    pub(super) fn pop(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.gone += bytes;
        while self.gone >= BLOCK {
            self.blocks.pop_front();
            self.gone -= BLOCK;
        }
    }

    /// What stands there now, counted from the beginning, in pieces; at most until the end.
    pub(super) fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let (mut at, end) = (self.gone + range.start, self.gone + range.end.min(self.bytes));
        std::iter::from_fn(move || {
            let block = self.blocks.get(at / BLOCK).filter(|_| at < end)?;
            let from = at % BLOCK;
            let piece = &block[from..BLOCK.min(from + end - at)];
            at += piece.len();
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue_in_few_blocks(steps in proptest::collection::vec((0usize..9_000, 0usize..9_000), 0..40)) {
            let (mut fifo, mut plain) = (Fifo::default(), VecDeque::new());
            for (at, (comes, goes)) in steps.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..comes).map(|byte| (byte * 7 + at) as u8).collect();
                fifo.push(&bytes);
                plain.extend(bytes);
                fifo.pop(goes);
                plain.drain(..goes.min(plain.len()));
                prop_assert_eq!(fifo.len(), plain.len());
                prop_assert!(fifo.blocks.len() <= plain.len() / BLOCK + 2);
                let from = plain.len() / 3;
                let all: Vec<u8> = fifo.pieces(from..plain.len() + 5).flatten().copied().collect();
                prop_assert_eq!(all, plain.range(from..).copied().collect::<Vec<u8>>());
            }
        }
    }
}
