//! The report's own task in miniature: it carries bytes between a UART and one client.
//!
//! Every turn of the loop makes its futures anew, some of them terminated from the start because there is nothing for
//! them to do, then waits for the first. The arm under test is the one that reads from the UART.

use crate::placement::{
    log_after_probe, log_before_probe, probe_above_match, probe_in_n_arm, probe_in_zero_arm,
};
use crate::uart::{Uart, BYTES};
use futures::future::{Fuse, FutureExt};
use std::ops::Range;
use tokio::sync::{mpsc, oneshot};

/// Runs the task until it returns and says how many of the UART's bytes have reached the client.
pub async fn run() -> usize {
    let uart = Uart::default();
    let (_keep_open, close) = oneshot::channel();
    let (to_client, mut client) = mpsc::channel(BYTES);
    let (_client_is_silent, from_client) = mpsc::channel(1);
    serial_task(&uart, to_client, from_client, close).await;

    let mut read = 0;
    while let Ok(bytes) = client.try_recv() {
        read += bytes.len();
    }
    read
}

/// Carries bytes both ways until the UART or the client is gone, or `close` says so.
async fn serial_task(
    uart: &Uart,
    to_client: mpsc::Sender<Vec<u8>>,
    mut from_client: mpsc::Receiver<Vec<u8>>,
    mut close: oneshot::Receiver<()>,
) {
    let mut output = [0u8; 1024];
    let mut cur_output: Option<Range<usize>> = None;
    let mut cur_input: Option<(Vec<u8>, usize)> = None;

    loop {
        // What was read goes to the client before more is read.
        let (uart_read, ws_send) = match cur_output.clone() {
            None => (uart.read(&mut output).fuse(), Fuse::terminated()),
            Some(range) => (
                Fuse::terminated(),
                to_client.send(output[range].to_vec()).fuse(),
            ),
        };
        let uart_write = match &cur_input {
            None => Fuse::terminated(),
            Some((bytes, consumed)) => uart.write(&bytes[*consumed..]).fuse(),
        };
        let recv = from_client.recv().fuse();

        tokio::select! {
            biased;

            _ = &mut close => break,

            written = uart_write => {
                match written {
                    Some(0) | None => break,
                    Some(n) => {
                        let (bytes, consumed) = cur_input.as_mut().unwrap();
                        *consumed += n;
                        if *consumed == bytes.len() {
                            cur_input = None;
                        }
                    }
                }
            }

            _ = ws_send => {
                cur_output = None;
            }

            nread = uart_read => {
                probe_above_match!(crate::probes::serial_task_read!(|| nread.unwrap_or(0)););
                match nread {
                    Some(0) | None => {
                        log_before_probe!(crate::log("the UART was closed"););
                        probe_in_zero_arm!(crate::probes::serial_task_read!(|| 0););
                        log_after_probe!(crate::log("the UART was closed"););
                        break;
                    }
                    Some(n) => {
                        probe_in_n_arm!(crate::probes::serial_task_read!(|| n););
                        cur_output = Some(0..n);
                    }
                }
            }

            bytes = recv => {
                match bytes {
                    Some(bytes) => cur_input = Some((bytes, 0)),
                    None => break,
                }
            }
        }
    }
}
