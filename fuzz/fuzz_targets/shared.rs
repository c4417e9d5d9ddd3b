//! `cargo +nightly fuzz run shared`: see `harp_tests::fuzzing::machine`, on machines with shared registers.
#![no_main]

use harp_tests::fuzzing::machine::check_shared;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_shared(bytes);
});
