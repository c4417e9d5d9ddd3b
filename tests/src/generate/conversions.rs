//! Conversions of floats to integers that trap.

use std::rc::Rc;

use cranelift_codegen::ir::{Type, types};
use harp_isa::ArchId;
use harp_jit::BuildError;

use super::Family;
use super::directed::{Operands, case};
use super::operations::Build;
use crate::oracle::Case;

/// Cases of one work-item in ten that converts NaN, or a number at an end of the integer's range.
/// Some of the numbers still fit.
///
/// # Errors
///
/// If the builder refuses one, which is a defect.
pub fn conversions(arch: ArchId) -> Result<Vec<Case>, BuildError> {
    let family = Family::of(arch);
    let mut cases = Vec::new();
    for &ty in family.floats() {
        for &to in family.ints() {
            let (least, most) = (f64::from(to.bits() - 1).exp2(), f64::from(to.bits()).exp2());
            let signed: Build = Rc::new(move |b, [x, _, _]| b.ins().fcvt_to_sint(to, x));
            let unsigned: Build = Rc::new(move |b, [x, _, _]| b.ins().fcvt_to_uint(to, x));
            let below = -least * (1.0 + 2.0 * f64::EPSILON);
            for (build, numbers) in [
                (&signed, [f64::NAN, f64::INFINITY, least, -least - 0.5, -least - 1.0, below]),
                (&unsigned, [f64::NAN, f64::NEG_INFINITY, most, -0.5, -1.0, most * 2.0]),
            ] {
                for number in numbers {
                    let mut operands: [Operands; 10] = [[bits(ty, 1.5), 0, 0]; 10];
                    operands[6][0] = bits(ty, number);
                    cases.push(case(arch, ty, to, &[Rc::clone(build)], &operands)?);
                }
            }
        }
    }
    Ok(cases)
}

fn bits(ty: Type, number: f64) -> u64 {
    match ty {
        types::F32 => (number as f32).to_bits().into(),
        _ => number.to_bits(),
    }
}
