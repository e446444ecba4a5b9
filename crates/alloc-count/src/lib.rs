//! Counts what a thread takes from the allocator, for the benchmarks.
//!
//! What lives here: [`Counting`], a global allocator that hands every call to the one beneath it and, only
//! while told to, counts the calls of each thread, or the blocks of all of them. What does not: any
//! allocation strategy. While counting is off, which is always outside of `sluice bench`, a call costs one
//! relaxed load and one branch more.
//!
//! ```
//! use sluice_alloc_count::{Counting, Mode, counts, set_mode};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! set_mode(Mode::Count);
//! let before = counts();
//! let bytes = vec![0u8; 100];
//! let taken = counts().since(&before);
//! set_mode(Mode::Off);
//! assert_eq!((taken.allocations, taken.bytes), (1, 100));
//! drop(bytes);
//! ```

mod counts;
mod global;

pub use counts::{Counts, Mode, TIMED_ONE_IN, counts, set_mode, total_allocations};
pub use global::Counting;
