//! A UART with nothing behind it: what a guest would have sent is made up here.
//!
//! Both shapes of the task read the same `BYTES` bytes in pieces of `PIECE`, after which the guest has closed its end.
//! A piece is always ready, so that every run is the same.

pub const BYTES: usize = 96;
const PIECE: usize = 8;

#[cfg(feature = "report")]
pub use buffered::Uart;
#[cfg(not(feature = "report"))]
pub use ring::Ring;

/// For the report's task: reads fill a buffer, and a history behind a lock remembers what was read.
#[cfg(feature = "report")]
mod buffered {
    use super::{BYTES, PIECE};
    use std::sync::Mutex;
    use tokio::sync::RwLock;

    #[derive(Default)]
    pub struct Uart {
        sent: Mutex<usize>,
        history: RwLock<Vec<u8>>,
    }

    impl Uart {
        /// Reads what the guest has sent, at most a buffer full; `None` when it has closed its end.
        pub async fn read(&self, buffer: &mut [u8]) -> Option<usize> {
            let n = self.next_piece(buffer).await?;
            self.history.write().await.extend_from_slice(&buffer[..n]);
            Some(n)
        }

        /// Writes to the guest, which takes a piece at a time; `None` when it has closed its end.
        pub async fn write(&self, bytes: &[u8]) -> Option<usize> {
            let history = self.history.read().await;
            if history.len() < BYTES {
                Some(bytes.len().min(PIECE))
            } else {
                None
            }
        }

        async fn next_piece(&self, buffer: &mut [u8]) -> Option<usize> {
            let mut sent = self.sent.lock().unwrap();
            let n = PIECE.min(BYTES - *sent).min(buffer.len());
            if n == 0 {
                return None;
            }
            for (i, byte) in buffer[..n].iter_mut().enumerate() {
                *byte = b' ' + (*sent + i) as u8 % 95;
            }
            *sent += n;
            Some(n)
        }
    }
}

/// For the subtraction's task: it is told where the new bytes end and begin.
#[cfg(not(feature = "report"))]
mod ring {
    use super::{BYTES, PIECE};
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// Positions in the stream of bytes; they never wrap.
    #[derive(Default)]
    pub struct Ring {
        head: usize,
        tail: usize,
    }

    impl Ring {
        /// Yields `(head, tail)`: the bytes between the two are new, and when there are none the guest has closed its end.
        pub fn filled(&mut self) -> Filled<'_> {
            Filled(self)
        }
    }

    pub struct Filled<'a>(&'a mut Ring);

    impl Future for Filled<'_> {
        type Output = (usize, usize);

        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            let ring = &mut *self.0;
            ring.tail = ring.head;
            ring.head = (ring.head + PIECE).min(BYTES);
            Poll::Ready((ring.head, ring.tail))
        }
    }
}
