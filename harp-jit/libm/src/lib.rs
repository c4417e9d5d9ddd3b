//! The mathematical functions of OpenCL.std as CLIF, for machines that have none.
//!
//! [`Math`] lists the functions. [`build`] makes one a function of its own, to be declared in a module and called;
//! [`expand`] appends its code to a block, which is better for functions of a few instructions
//! ([`Math::is_small`]). Both compute in a format, a [`Float`], without help of a wider one: `f32` functions do not
//! use `f64`, which machines with words of 4 bytes do not have. (The compiler computes `f64` on integers there, so
//! that `f64` functions work, but take a few hundred times as many instructions.)
//!
//! Results are within the limits of OpenCL's full profile ([`Math::accuracy`]), subnormal numbers included, as far as
//! samples tell, and exact where C99 and OpenCL prescribe them. The example `ulps` prints the largest errors found.
//! They are the same on all machines with a fused multiply-add ([`Fma::Fast`]), and on all others, but may differ between
//! these in the last bits.
//!
//! Functions have no branches, but for what few arguments need: the reduction of large angles, the reflection of the
//! gamma function, and the divisions of `fmod`, `remainder` and `remquo` beyond the first one. A warp takes these only
//! if one of its lanes does. Where results of both sides of a case distinction cost little, both are computed and one
//! is selected.
//!
//! Each module names the sources of its algorithms. The constants are computed by `coefficients.py`.
//!
//! ```
//! use harp_libm::{Float, Fma, Math, build};
//!
//! let sincos = Math::from_name("sincos").expect("OpenCL.std has it");
//! let function = build(sincos, Float::F32, Fma::Fast);
//! assert_eq!(function.signature.returns.len(), 2);
//! ```
#![forbid(unsafe_code)]

use std::sync::OnceLock;

use cranelift_codegen::ir::{Function, InstBuilder, Type, UserFuncName, Value};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use target_lexicon::PointerWidth;
use thiserror::Error;

use code::Code;

mod code;
mod constants;
mod error_function;
mod exponential;
mod format;
mod functions;
mod gamma;
mod inverse;
mod logarithm;
mod pair;
mod power;
mod reduction;
mod remainder;
mod roots;
mod rounding;
mod table;
mod trigonometric;

pub use table::{Accuracy, Float, Math, Operand};

/// How the machine computes a product and a sum of a format with one rounding, CLIF's `fma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fma {
    /// With an instruction: machines with extension X, but for `f64` only those with words of 8 bytes.
    Fast,
    /// In hundreds of instructions: functions do without it, as far as they can.
    Slow,
}

/// Arguments that do not fit a function's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` takes arguments of types {expected:?}, given {given:?}", math.name())]
pub struct ArgumentError {
    /// The function.
    pub math: Math,
    /// The types of its parameters.
    pub expected: Vec<Type>,
    /// The types of the arguments.
    pub given: Vec<Type>,
}

/// What cranelift-frontend wants to know of a target. The functions use no addresses.
const FRONTEND: TargetFrontendConfig = TargetFrontendConfig {
    default_call_conv: CallConv::Fast,
    pointer_width: PointerWidth::U32,
    page_size_align_log2: 12,
};

/// A function that computes `math` in `float`, named after it.
pub fn build(math: Math, float: Float, fma: Fma) -> Function {
    let name = UserFuncName::testcase(math.name());
    let mut function = Function::with_name_signature(name, math.signature(float));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let args = builder.block_params(entry).to_vec();
    let results =
        expand(&mut builder, math, float, fma, &args).expect("the arguments are the parameters");
    builder.ins().return_(&results);
    builder.finalize(FRONTEND);
    function
}

/// What [`build`] makes, once for all that ask for it.
pub fn built(math: Math, float: Float, fma: Fma) -> &'static Function {
    static BUILT: [OnceLock<Function>; Math::ALL.len() * 4] =
        [const { OnceLock::new() }; Math::ALL.len() * 4];
    let index = (math as usize * 2 + float as usize) * 2 + fma as usize;
    BUILT[index].get_or_init(|| build(math, float, fma))
}

/// Appends code that computes `math` in `float` to the current block and returns the results: one, or two where
/// OpenCL has an out-pointer.
///
/// Another block may be the current one afterwards; blocks that are made are sealed.
///
/// # Errors
///
/// If the arguments are not as the function's parameters.
pub fn expand(
    builder: &mut FunctionBuilder<'_>,
    math: Math,
    float: Float,
    fma: Fma,
    args: &[Value],
) -> Result<Vec<Value>, ArgumentError> {
    let expected: Vec<Type> = math.parameters().iter().map(|operand| operand.ty(float)).collect();
    let given: Vec<Type> = args.iter().map(|&arg| builder.func.dfg.value_type(arg)).collect();
    if expected != given {
        return Err(ArgumentError { math, expected, given });
    }
    let code = Code::new(builder, float, fma);
    Ok(functions::append(&code, math, args))
}
