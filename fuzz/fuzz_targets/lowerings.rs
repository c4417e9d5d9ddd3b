//! `cargo +nightly fuzz run lowerings`: see `harp_tests::random`.
#![no_main]

use harp_tests::generate::Kind;
use harp_tests::random::fuzz;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzz(Kind::Lowerings, bytes);
});
