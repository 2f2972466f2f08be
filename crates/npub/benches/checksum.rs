//! How near the checksum comes to the limit of its algorithm.
//!
//! The yardstick is the bare dependency chain: the same exclusive-or and multiplication, as often, on a value in a
//! register, without a memory access. No implementation that follows the algorithm byte by byte can be faster. After
//! Criterion's own figures, both run alternately and the ratio of their best times is printed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use npub::layout::fnv;

const BYTES: usize = 256 * 1024;
const ROUNDS: usize = 300;

/// As many links of the chain as there are bytes. The operand comes out of a black box once, so that it is neither
/// known at compile time nor loaded in the loop.
fn chain(links: usize) -> u32 {
    let operand = black_box(0x5A_u32);
    let mut hash = fnv::OFFSET_BASIS;
    for _ in 0..links {
        hash = (hash ^ operand).wrapping_mul(fnv::PRIME);
    }
    hash
}

fn payload() -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn main() {
    let payload = payload();
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("fnv1a");
    group.throughput(Throughput::Bytes(BYTES as u64));
    group.bench_function("checksum", |bench| bench.iter(|| npub::checksum(black_box(&payload))));
    group.bench_function("chain limit", |bench| bench.iter(|| chain(black_box(BYTES))));
    group.finish();
    criterion.final_summary();

    // The best of many alternating rounds: what disturbs a round only ever makes it slower.
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        best.0 = best.0.min(time(|| npub::checksum(black_box(&payload))));
        best.1 = best.1.min(time(|| chain(black_box(BYTES))));
    }
    let per_byte = |time: Duration| time.as_secs_f64() * 1e9 / BYTES as f64;
    println!(
        "checksum {:.3} ns/byte, chain limit {:.3} ns/byte, ratio {:.3}",
        per_byte(best.0),
        per_byte(best.1),
        best.0.as_secs_f64() / best.1.as_secs_f64()
    );
}
