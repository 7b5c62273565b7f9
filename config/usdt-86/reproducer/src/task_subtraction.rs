//! The smallest task found that leaves its loop early on every compiler tried.
//!
//! What is matched on comes straight out of a subtraction whose result is also stored, so the comparison with 0 needs
//! no instruction of its own: the subtraction has set the flags already. `select!` itself writes flags once a
//! branch is ready, so the subtraction stands in the arm.

use crate::placement::{
    log_after_probe, log_before_probe, probe_above_match, probe_in_n_arm, probe_in_zero_arm,
};
use crate::uart::Ring;
use tokio::sync::oneshot;

/// Runs the task until it returns and says how many of the UART's bytes it has read.
pub async fn run() -> usize {
    let (_keep_open, close) = oneshot::channel();
    let mut last = 0;
    serial_task(Ring::default(), close, &mut last).await
}

/// Reads until the UART is done or `close` says so. `last` is the length of the latest read.
async fn serial_task(mut ring: Ring, mut close: oneshot::Receiver<()>, last: &mut usize) -> usize {
    let mut total = 0;
    loop {
        tokio::select! {
            biased;

            _ = &mut close => break,

            (head, tail) = ring.filled() => {
                let n = head - tail;
                *last = n;
                probe_above_match!(crate::probes::serial_task_read!(|| n););
                match n {
                    0 => {
                        log_before_probe!(crate::log("the UART was closed"););
                        probe_in_zero_arm!(crate::probes::serial_task_read!(|| 0););
                        log_after_probe!(crate::log("the UART was closed"););
                        break;
                    }
                    n => {
                        probe_in_n_arm!(crate::probes::serial_task_read!(|| n););
                        total += n;
                    }
                }
            }
        }
    }
    total
}
