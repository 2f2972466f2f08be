//! Buffers that a run needs beside the regions, kept between runs.

use super::kernels::Pixel;
use super::wide::WideBuffers;

/// A buffer that is lent out and comes back.
#[derive(Debug, Clone)]
pub(super) struct Staged<T> {
    buffer: Vec<T>,
}

impl<T> Default for Staged<T> {
    fn default() -> Self {
        Self { buffer: Vec::new() }
    }
}

impl<T: Copy + Default> Staged<T> {
    /// The buffer, at least `elements` long; what it holds is left from earlier uses.
    pub(super) fn take(&mut self, elements: usize) -> Vec<T> {
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.len() < elements {
            buffer.resize(elements, T::default());
        }
        buffer
    }

    /// Returns the buffer for the next use.
    pub(super) fn give_back(&mut self, buffer: Vec<T>) {
        self.buffer = buffer;
    }
}

/// All buffers of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    pub(super) bytes: Staged<u8>,
    pub(super) words: Staged<i16>,
    pub(super) pixels: Vec<Pixel>,
    pub(super) byte_results: Vec<u8>,
    pub(super) word_results: Vec<i32>,
    pub(super) first: Vec<i32>,
    pub(super) second: Vec<i32>,
    pub(super) wide: WideBuffers,
}
