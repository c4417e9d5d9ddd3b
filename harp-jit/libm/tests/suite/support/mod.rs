//! What tests and the table of errors share: runs on the emulator, references, samples, errors in ulps.
#![allow(dead_code, reason = "each program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

pub(crate) mod exact;
pub(crate) mod host;
pub(crate) mod machine;
pub(crate) mod samples;
pub(crate) mod ulps;
pub(crate) mod wide;

use harp_libm::{Float, Math, Operand};

use ulps::Wide;
use wide::Reference;

/// Up to three arguments, or up to two results; integers and floats of both formats fit exactly.
pub(crate) type Numbers<const N: usize> = [f64; N];

/// The results that a function should have.
pub(crate) fn expected(
    math: Math,
    float: Float,
    args: Numbers<3>,
    reference: &mut Reference,
) -> [Wide; 2] {
    if let Some(exact) = exact::exact(math, float, args) {
        return exact.map(Wide::from);
    }
    let host = host::double(math, args).expect("a function that is not exact");
    let is_special = |x: f64| x == 0.0 || !x.is_finite();
    // Integers, zeros, infinities and NaNs are the host's.
    let mut wide = host.map(Wide::from);
    let is_edge = args[..math.parameters().len()].iter().any(|&x| is_special(x));
    if float == Float::F64 && !is_edge {
        let approximations = math.results().iter().filter(|&&operand| operand == Operand::Float);
        if !host[..approximations.count()].iter().any(|&x| is_special(x)) {
            let results = reference.results(math, args);
            for (index, operand) in math.results().iter().enumerate() {
                if *operand == Operand::Float {
                    wide[index] = results[index];
                }
            }
        }
    }
    wide
}
