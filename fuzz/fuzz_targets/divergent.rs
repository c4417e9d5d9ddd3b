//! `cargo +nightly fuzz run divergent`: see `harp_tests::fuzzing::divergent`.
#![no_main]

use std::cell::RefCell;

use harp_tests::fuzzing::divergent::{Machines, Selection, check, targets_of};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MACHINES: RefCell<Machines> = RefCell::new(Machines::default());
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&turn, rest)) = bytes.split_first() else { return };
    let selection = Selection { prove: true, ..Selection::default() };
    let targets = targets_of(turn.into(), selection);
    let checked = MACHINES.with_borrow_mut(|machines| check(rest, &targets, machines));
    match checked {
        Ok(reached) => {
            assert!(reached.refused.is_empty(), "{:?}", reached.refused);
            let mut unproved = reached.unproved.iter();
            if let Some(refuted) = unproved.find(|one| !one.is_too_long()) {
                panic!("{refuted}");
            }
        }
        Err(failure) => panic!("{failure}"),
    }
});
