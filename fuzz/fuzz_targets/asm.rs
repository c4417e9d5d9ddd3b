//! `cargo +nightly fuzz run asm`: see `harp_tests::fuzzing::asm`.
#![no_main]

use harp_tests::fuzzing::asm::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
});
