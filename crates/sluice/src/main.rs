//! The binary: its allocator, and the command line of `sluice-cli`.

/// Counts what benchmarks and `serve --count-allocations` allocate; one load and one branch a call while it
/// does not.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;

fn main() -> std::process::ExitCode {
    sluice_cli::main()
}
