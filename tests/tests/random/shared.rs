//! Random kernels on machines whose lanes share registers.

use std::ops::Range;

use harp_tests::generate::Kind;
use harp_tests::random::Selection;

use super::run_some;

/// Kernels of an ordinary run, of each kind and machine.
const KERNELS: Range<u64> = 0..12;

/// Few shared registers and many, without shared predicates, with 1 to 64 lanes, without extension X, of both words and
/// encodings.
const MACHINES: [&str; 7] = [
    "4w24/12/32/16+x+s8/4",
    "4w16/8/4/2+x+s16/8",
    "8w32/32/16/16+x+s2/1",
    "4b16/16/16/8+x+s8",
    "8b8/8/64/2+s24/8",
    "4w8/8/8/4+s1",
    "8w16/8/1/4+x+s4/4",
];

#[test]
fn kernels_do_the_same_with_shared_registers() {
    for arch in MACHINES {
        for kind in [Kind::Functions, Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs] {
            let arch = Some(arch.parse().unwrap());
            run_some(KERNELS, Selection { kind, arch, ..Selection::default() });
        }
    }
}
