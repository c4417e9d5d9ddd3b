//! Generators and oracles that the fuzz targets call, each with a short seeded run in `cargo test`.

use std::any::Any;

pub mod asm;
pub mod builder;
pub mod divergent;
pub mod functions;
pub mod hof;
pub mod isa;
pub mod kernels;
pub mod machine;
mod reduce;

/// SplitMix64 (Steele, Lea, Flood 2014, figure 15), so that a seed means the same everywhere.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    });
    words.flatten().take(count).collect()
}

/// What `check` says about each seed. Several threads share the seeds; each has a `check` of its own.
fn in_threads<T: Send, C: FnMut(u64) -> T>(
    seeds: &[u64],
    threads: usize,
    check: impl Fn() -> C + Sync,
) -> Vec<T> {
    let share = seeds.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let check = &check;
        let threads: Vec<_> = seeds
            .chunks(share)
            .map(|share| {
                scope.spawn(move || {
                    let mut check = check();
                    share.iter().map(|&seed| check(seed)).collect::<Vec<_>>()
                })
            })
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("panics are caught"));
        results.flatten().collect()
    })
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)")
}

/// Runs `check` on all files of `fuzz/regressions/<target>`: seeds, and inputs that once failed. How
/// many there are.
#[cfg(test)]
fn replay(target: &str, mut check: impl FnMut(&[u8])) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/regressions");
    let Ok(files) = std::fs::read_dir(format!("{folder}/{target}")) else {
        return 0;
    };
    let mut paths: Vec<_> =
        files.map(|file| file.expect("the folder can be read").path()).collect();
    paths.sort();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        // Whose output is captured, and shown if the check fails.
        println!("{}", path.display());
        check(&bytes);
    }
    paths.len()
}
