//! The allocator itself: the one module of the project that holds unsafe code.
//!
//! Why it is sound: every method hands its arguments unchanged to the same method of [`System`] and returns the result
//! unchanged, so that the contract of [`GlobalAlloc`] holds because `System` keeps it. What is counted around a call
//! touches only a thread-local cell without a destructor and atomics: it allocates nothing, so it cannot call itself,
//! and it cannot unwind.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use crate::counts::{counted, off};

/// The system's allocator, which can be told to count: see [`crate::set_mode`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

// SAFETY: see the head of the module.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, and it is the same one.
        let call = || unsafe { System.alloc(layout) };
        if off() { call() } else { counted(Some(layout.size()), None, call) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let call = || unsafe { System.alloc_zeroed(layout) };
        if off() { call() } else { counted(Some(layout.size()), None, call) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block came from `System`, since all do.
        let call = || unsafe { System.dealloc(block, layout) };
        if off() { call() } else { counted(None, Some(layout.size()), call) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; the block came from `System`, since all do.
        let call = || unsafe { System.realloc(block, layout, size) };
        if off() { call() } else { counted(Some(size), Some(layout.size()), call) }
    }
}
