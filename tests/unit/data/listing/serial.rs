// A program in small for test_listing_real: an async fn whose body is inlined into a poll, and a block of inline assembly.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

struct Read(u64);

impl Future for Read {
    type Output = (u64, u64);
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<(u64, u64)> {
        self.0 += 1;
        if self.0 % 2 == 1 { Poll::Pending } else { Poll::Ready((self.0, 2)) }
    }
}

#[inline(always)]
fn is_enabled() -> bool {
    let enabled: u64;
    unsafe { std::arch::asm!("xor rax, rax", out("rax") enabled, options(nomem, nostack)) }
    enabled != 0
}

async fn serial_task(last: &mut u64) -> u64 {
    let mut total = 0;
    for start in 0..8 {
        let (head, tail) = Read(start * 2).await;
        let n = head.wrapping_sub(tail);
        *last = n;
        match n {
            0 => if is_enabled() { println!("nothing") },
            n => { if is_enabled() { println!("{n}") } total += n }
        }
    }
    total
}

fn clone(_: *const ()) -> RawWaker {
    RawWaker::new(std::ptr::null(), &TABLE)
}
fn nothing(_: *const ()) {}
static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);

#[inline(never)]
fn block_on(mut future: Pin<Box<dyn Future<Output = u64> + '_>>) -> u64 {
    let waker = unsafe { Waker::from_raw(clone(std::ptr::null())) };
    loop {
        if let Poll::Ready(total) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return total;
        }
    }
}

fn main() {
    let mut last = 0;
    println!("{}", block_on(Box::pin(serial_task(&mut last))));
}
