//! Counts of every row as JSON: `cargo run --release -p sluice-bench-rows --example counts`. With the name of
//! a row and a number of steps it is the child that valgrind watches.

use std::process::{Command, ExitCode};

use sluice_bench_rows::counts;

/// The allocator of the program, which counts.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match counted(&arguments) {
        Ok(counts) => {
            println!("{counts:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn counted(arguments: &[String]) -> Result<serde_json::Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    match arguments {
        [] => counts::run(&[], |row, steps| {
            let mut child = Command::new(&program);
            child.args([row, &steps.to_string()]);
            child
        }),
        [row, steps] => {
            let steps = steps.parse().map_err(|_| format!("{steps:?} is not a number of steps"))?;
            counts::run_row(row, steps)
        }
        _ => Err("no arguments, or the name of a row and a number of steps".to_owned()),
    }
}
