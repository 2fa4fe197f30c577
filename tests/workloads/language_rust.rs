// SPDX-License-Identifier: Apache-2.0
// What is hard of Rust's stacks, a thread each: panics that are caught, deep recursion of generic
// functions through trait objects, futures that are polled by hand, and sorting and formatting of
// the library. Runs for as many seconds as its argument says. Rust 1.56 or later, no crate.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::future::Future;
use std::panic::{catch_unwind, panic_any};
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// A value that the compiler cannot know (std::hint has one from Rust 1.66 on).
fn black_box<T>(x: T) -> T {
    unsafe {
        let same = std::ptr::read_volatile(&x);
        std::mem::forget(x);
        same
    }
}

/* ---- panics, with something to drop in every frame ---- */

struct Held(Vec<u64>);

impl Drop for Held {
    #[inline(never)]
    fn drop(&mut self) {
        self.0[0] = self.0.iter().fold(1, |a, b| a.wrapping_mul(31).wrapping_add(*b));
        black_box(&self.0);
    }
}

#[inline(never)]
fn panic_at(depth: u64) -> u64 {
    let held = Held(vec![depth; 64]);
    if depth == 0 {
        panic_any(7u64);
    }
    let below = panic_at(depth - 1);
    below.wrapping_add(held.0[1])
}

#[inline(never)]
fn panics_are_caught(turn: u64) {
    let caught = catch_unwind(|| panic_at(black_box(turn % 20)));
    black_box(caught.is_err());
}

/* ---- generic functions, through trait objects ---- */

trait Shape {
    fn dive(&self, depth: u32, seed: u64) -> u64;
}

struct Flat<T>(T);
struct Nested<T>(T);

impl<T: Into<u64> + Copy> Shape for Flat<T> {
    #[inline(never)]
    fn dive(&self, depth: u32, seed: u64) -> u64 {
        let start = seed ^ self.0.into();
        let sum = (0..2000u64).fold(start, |a, b| black_box(a.wrapping_mul(25214903917).wrapping_add(b)));
        if depth == 0 {
            return sum;
        }
        let next: Box<dyn Shape> = if depth % 2 == 0 {
            Box::new(Flat(depth as u8))
        } else {
            Box::new(Nested((depth, sum as f64)))
        };
        next.dive(depth - 1, sum).rotate_left(7) ^ black_box(sum)
    }
}

impl Shape for Nested<(u32, f64)> {
    #[inline(never)]
    fn dive(&self, depth: u32, seed: u64) -> u64 {
        let mut room = [0u64; 96];
        for (i, word) in room.iter_mut().enumerate() {
            *word = seed.rotate_left(i as u32) ^ (self.0 .1.sqrt() as u64);
        }
        if depth == 0 {
            return black_box(&room)[3];
        }
        Flat(depth).dive(depth - 1, black_box(&room)[5]).wrapping_add(room[7])
    }
}

/* ---- futures, polled by hand ---- */

fn waker() -> Waker {
    fn clone(_: *const ()) -> RawWaker {
        RawWaker::new(std::ptr::null(), &TABLE)
    }
    fn nothing(_: *const ()) {}
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}

struct Yield(bool);

impl Future for Yield {
    type Output = ();
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        Poll::Pending
    }
}

#[inline(never)]
fn digest(mut x: u64) -> u64 {
    for i in 0..3000 {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i));
    }
    x
}

fn step(depth: u32, x: u64) -> Pin<Box<dyn Future<Output = u64>>> {
    Box::pin(async move {
        let a = digest(x);
        Yield(false).await;
        let b = if depth > 0 { step(depth - 1, a).await } else { a };
        Yield(false).await;
        digest(b) ^ a
    })
}

#[inline(never)]
fn futures_are_polled(turn: u64) {
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    let mut future = step(12, turn);
    loop {
        if let Poll::Ready(sum) = future.as_mut().poll(&mut context) {
            black_box(sum);
            return;
        }
    }
}

/* ---- the library ---- */

#[inline(never)]
fn library_is_busy(turn: u64) {
    let mut words: Vec<String> = (0..400u64).map(|i| format!("{:x}-{:.3}", digest(i ^ turn) >> 40, i as f64 / 7.0)).collect();
    words.sort_by(|a, b| b.cmp(a));
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut tree = BTreeMap::new();
    for word in &words {
        *counts.entry(&word[..3]).or_insert(0) += 1;
        tree.insert(word.as_bytes().iter().rev().copied().collect::<Vec<u8>>(), word.len());
    }
    let mut out = String::new();
    for (key, count) in &tree {
        write!(out, "{:?}{:>5}", key, count).unwrap();
    }
    black_box((out, counts.len()));
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    std::panic::set_hook(Box::new(|_| {}));
    let works: [fn(u64); 4] = [
        panics_are_caught,
        |turn| {
            black_box(Flat(turn as u32).dive(60, turn));
        },
        futures_are_polled,
        library_is_busy,
    ];
    let threads: Vec<_> = works
        .iter()
        .map(|&work| {
            thread::spawn(move || {
                let mut turn = 0;
                while Instant::now() < end {
                    work(turn);
                    turn += 1;
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
}
