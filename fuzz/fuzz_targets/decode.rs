//! `cargo +nightly fuzz run decode`: see `harp_tests::fuzzing::isa`.
#![no_main]

use harp_tests::fuzzing::isa::{CodeBytes, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: CodeBytes| {
    check(&case);
});
