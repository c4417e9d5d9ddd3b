//! Compiling for HARP, as it is measured.

use std::slice;

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Execution, ModuleError, OptLevel};

use crate::functions::module;

/// Compiles a function for one lane, optimized and without checks, up to the bytes of the object that
/// linkers take; how many bytes of code there are. Fails if it does not compile.
pub fn code_bytes(func: &Function, arch: ArchId) -> Result<usize, ModuleError> {
    let options = CompileOptions {
        opt_level: OptLevel::Speed,
        execution: Execution::SingleLane,
        verify_input: false,
        verify: false,
        stack_bytes: 1 << 20,
        ..CompileOptions::default()
    };
    let compiled = module(slice::from_ref(func), arch, &options)?.finish()?;
    Ok(compiled.functions().iter().map(|function| function.code().len()).sum())
}

/// How many instructions a function has.
pub fn instructions(func: &Function) -> usize {
    func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum()
}
