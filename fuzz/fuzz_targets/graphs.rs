//! `cargo +nightly fuzz run graphs`: see `harp_tests::fuzzing::divergent`.
#![no_main]

use std::cell::RefCell;

use harp_tests::fuzzing::divergent::{Kernels, Machines, fuzz};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MACHINES: RefCell<Machines> = RefCell::new(Machines::default());
}

fuzz_target!(|bytes: &[u8]| {
    MACHINES.with_borrow_mut(|machines| fuzz(Kernels::Graphs, bytes, machines));
});
