//! Kernels of random cases as modules of SPIR-V: written, and read back by harp-spirv.
//!
//! The writer is for tests of the reader. It makes modules as compilers of OpenCL C do: physical addressing, control flow
//! of any shape, phis, instructions of OpenCL.std. It knows all that generators of kernels make, and refuses the rest:
//! functions that are called from outside, since a module's entry points are launched.
//!
//! Values have the types that they have in CLIF, and truth values are those of SPIR-V besides. Addresses are integers,
//! which become pointers where memory is accessed. What CLIF defines and SPIR-V does not is made of several instructions:
//! amounts of shifts are masked, for example. A trap is an `OpUnreachable`, which harp-spirv makes a trap of, and what
//! traps in CLIF by itself (divisions, conversions) has a branch to one before it. An indirect call is a switch over all
//! functions of the signature, since SPIR-V has no addresses of functions. Atomic accesses that SPIR-V does not have
//! (those of less than 32 bits, with the bytes the other way round, or nand) are plain ones, as nobody else accesses the
//! memory of a work-item.

use std::fmt;

use cranelift_codegen::ir::TrapCode;
use harp_jit::{ArchId, CompileOptions, ModuleError};
use harp_spirv::{SpirvError, SpirvModule};
use thiserror::Error;

use harp_oracle::functions::name;
use harp_oracle::{Case, Code, Compiled, Effect, Ending, ItemTrap, Start, Stop};

mod calls;
mod function;
mod integers;
mod memory;
mod module;
mod numbers;

use module::Writer;

/// The trap of an `OpUnreachable`.
const UNREACHABLE: TrapCode = TrapCode::unwrap_user(130);

/// What a case has that is not written as SPIR-V.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}, as SPIR-V")]
pub struct Unwritable(String);

impl Unwritable {
    fn new(what: impl fmt::Display) -> Unwritable {
        Unwritable(what.to_string())
    }
}

type Result<T> = std::result::Result<T, Unwritable>;

/// Why there is no kernel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RoundTripError {
    /// The case is not written.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// What was written is not read.
    #[error("reading the SPIR-V: {0}")]
    Read(#[from] SpirvError),
    /// What was read does not compile.
    #[error(transparent)]
    Compile(#[from] ModuleError),
}

/// A kernel with all that it calls, as the bytes of a module of SPIR-V. Its entry point has the kernel's name, and takes
/// the arguments of the launch.
///
/// # Errors
///
/// If it is no kernel, or has what generators do not make.
pub fn write(case: &Case) -> Result<Vec<u8>> {
    match &case.start {
        Start::Launch { args, .. } => Writer::new(case).module(args),
        Start::Call(_) => Err(Unwritable::new("a call")),
    }
}

/// Writes a kernel, reads it back, and compiles it.
///
/// # Errors
///
/// If one of the three fails.
pub fn compile(
    case: &Case,
    arch: ArchId,
    options: &CompileOptions,
) -> std::result::Result<Compiled, RoundTripError> {
    let module = SpirvModule::parse(&write(case)?)?;
    let kernel = module.kernel(&name(&case.functions[0]), arch)?;
    let kernel = kernel.compile(options)?;
    let stats = vec![kernel.stats()];
    Ok(Compiled { code: Code::Kernel(Box::new(kernel)), stats })
}

/// What the module of a case with this effect does: it traps by an `OpUnreachable`, or by an access.
pub fn expected(effect: &Effect) -> Effect {
    let mut effect = effect.clone();
    if let Ending::Traps(traps) = &mut effect.ending {
        for ItemTrap { stop, .. } in traps {
            if *stop != Stop::BadAddress {
                *stop = Stop::Code(UNREACHABLE);
            }
        }
    }
    effect
}
