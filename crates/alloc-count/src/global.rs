//! The allocator itself: the one module of the project that holds unsafe code.
//!
//! Why it is sound: every method hands its arguments unchanged to the same method of [`MiMalloc`] and returns
//! the result unchanged, so that the contract of [`GlobalAlloc`] holds because `MiMalloc` keeps it. What is
//! counted around a call touches only a thread-local cell without a destructor and atomics: it allocates
//! nothing, so it cannot call itself, and it cannot unwind.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

use crate::counts::{counted, off};

/// The allocator of the product, which can be told to count: see [`crate::set_mode`]. Beneath it is mimalloc:
/// requests are taken on one thread and given back on another, for which the system's allocator takes a lock
/// each time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

// SAFETY: see the head of the module.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, and it is the same one.
        let call = || unsafe { MiMalloc.alloc(layout) };
        if off() { call() } else { counted(Some(layout.size()), None, call) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let call = || unsafe { MiMalloc.alloc_zeroed(layout) };
        if off() { call() } else { counted(Some(layout.size()), None, call) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block came from `MiMalloc`, since all do.
        let call = || unsafe { MiMalloc.dealloc(block, layout) };
        if off() { call() } else { counted(None, Some(layout.size()), call) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; the block came from `MiMalloc`, since all do.
        let call = || unsafe { MiMalloc.realloc(block, layout, size) };
        if off() { call() } else { counted(Some(size), Some(layout.size()), call) }
    }
}
