//! Random kernels on machines whose lanes share registers. Each lane must have written itself what it reads there, which
//! is proved of their code, too.

use std::ops::Range;

use harp_tests::generate::Kind;
use harp_tests::machines::{SHARED, parsed};
use harp_tests::random::{Proof, Selection};

use super::run_some;

/// Kernels of an ordinary run, of each kind and machine.
const KERNELS: Range<u64> = 0..12;

#[test]
fn kernels_do_the_same_with_shared_registers() {
    for arch in parsed(SHARED) {
        for kind in [Kind::Functions, Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs] {
            let prove = if kind == Kind::Functions { Proof::No } else { Proof::Counted };
            let arch = Some(arch);
            run_some(KERNELS, Selection { kind, arch, prove, ..Selection::default() });
        }
    }
}
