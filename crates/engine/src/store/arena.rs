//! A vector that never moves what it holds.

/// Grows by chunks of `CHUNK` items (a power of two); an item's place in memory is for life.
#[derive(Debug)]
pub(crate) struct Arena<T, const CHUNK: usize> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T, const CHUNK: usize> Default for Arena<T, CHUNK> {
    fn default() -> Self {
        const { assert!(CHUNK.is_power_of_two()) };
        Arena { chunks: Vec::new(), len: 0 }
    }
}

impl<T, const CHUNK: usize> Arena<T, CHUNK> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.add_chunk();
        }
        let last = self.len / CHUNK;
        self.chunks[last].push(item);
        self.len += 1;
    }

    #[cold]
    fn add_chunk(&mut self) {
        self.chunks.push(Vec::with_capacity(CHUNK));
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}
