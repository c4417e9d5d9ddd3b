//! `cargo +nightly fuzz run builder`: see `harp_tests::fuzzing::builder`.
#![no_main]

use harp_tests::fuzzing::builder::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
