//! A serial task that may leave its loop before it has read what its UART has to say.
//!
//! The task is written after the pseudo-code of the report that this investigation starts from: a loop around
//! `tokio::select!`, in which one arm reads bytes and either goes on (`n` bytes) or leaves (none), with a USDT probe
//! somewhere near. Cargo features choose the shape of the task (`report`, `subtraction`) and the place of the
//! probe (see `placement.rs`). Nothing here knows which compiler, which `usdt` or which backend it is built with, and
//! the probes are never registered: the fault is in the code around them.
//!
//! Exit status: 0 when the task read every byte, 1 when it left the loop early. One line on standard output says which.

mod placement;
#[cfg_attr(feature = "report", path = "task_report.rs")]
#[cfg_attr(not(feature = "report"), path = "task_subtraction.rs")]
mod task;
mod uart;

use std::process::ExitCode;

#[cfg(any(
    not(any(feature = "report", feature = "subtraction")),
    all(feature = "report", feature = "subtraction")
))]
compile_error!("switch on exactly one shape: report or subtraction");

#[usdt::provider(provider = "usdt_86")]
mod probes {
    fn serial_task_read(n: usize) {}
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("starting a tokio runtime");
    let read = runtime.block_on(task::run());
    let all = uart::BYTES;
    if read == all {
        println!("read {read} of {all} bytes");
        ExitCode::SUCCESS
    } else {
        println!("left the loop early: read {read} of {all} bytes");
        ExitCode::FAILURE
    }
}

/// What a task does to log: cheap, with an effect that the compiler has to keep.
#[allow(dead_code)] // most placements log nothing
fn log(message: &str) {
    eprintln!("{message}");
}
