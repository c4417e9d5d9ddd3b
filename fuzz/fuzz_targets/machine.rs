//! `cargo +nightly fuzz run machine`: see `harp_tests::fuzzing::machine`.
#![no_main]

use harp_tests::fuzzing::machine::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
