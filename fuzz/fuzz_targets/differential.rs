//! `cargo +nightly fuzz run differential`: see `harp_tests::fuzzing::kernels`.
#![no_main]

use std::cell::RefCell;

use harp_tests::fuzzing::kernels::{Machines, check};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MACHINES: RefCell<Machines> = RefCell::new(Machines::new());
}

fuzz_target!(|bytes: &[u8]| {
    let checked = MACHINES.with_borrow_mut(|machines| check(bytes, machines));
    if let Err(failure) = checked {
        panic!("{failure}");
    }
});
