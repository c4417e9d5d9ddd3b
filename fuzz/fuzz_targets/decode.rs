//! `cargo +nightly fuzz run decode`: see `harp_tests::fuzzing::isa`.
#![no_main]

use harp_tests::fuzzing::isa::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
