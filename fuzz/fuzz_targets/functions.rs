//! `cargo +nightly fuzz run functions`: see `harp_tests::fuzzing::functions`.
#![no_main]

use harp_tests::fuzzing::functions::{check, targets_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&turn, rest)) = bytes.split_first() else { return };
    if let Err(failure) = check(rest, &targets_of(turn.into(), None)) {
        panic!("{failure}");
    }
});
