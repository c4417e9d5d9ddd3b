//! `cargo +nightly fuzz run spirv`: see `harp_tests::fuzzing::spirv`.
#![no_main]

use harp_tests::fuzzing::spirv::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
