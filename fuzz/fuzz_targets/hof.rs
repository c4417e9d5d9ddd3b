//! `cargo +nightly fuzz run hof`: see `harp_tests::fuzzing::hof`.
#![no_main]

use harp_tests::fuzzing::hof::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
