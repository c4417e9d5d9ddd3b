//! What users compile functions and kernels by, alone or in a module.

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;

use crate::builder::KernelSource;
use crate::compile::{Selected, compile, legal, select};
use crate::divergence::decide::DivergenceReport;
use crate::error::CompileError;
use crate::function::{CompiledFunction, Linked};
use crate::kernel::Kernel;
use crate::library::Library;
use crate::managed;
use crate::options::CompileOptions;
use crate::source::SourceMap;
use crate::symbols::{PlainNames, Symbols};
use crate::times::Clock;
use crate::unit::{Routines, Unit};

impl KernelSource {
    /// Compiles the kernel for its machine. Functions that it calls are left to the linker; to get
    /// them from a module see [`Module::compile_kernel`](crate::Module::compile_kernel).
    ///
    /// # Errors
    ///
    /// If the kernel was built wrongly, is no valid CLIF, holds something that is not supported, or
    /// is too large for the machine.
    pub fn compile(&self, options: &CompileOptions) -> Result<Kernel, CompileError> {
        let library = Library::new(self.arch(), options);
        let entry = compile_kernel(self, options, &PlainNames, &library)?;
        let routines = library.routines(&mut entry.references())?;
        let routines: Vec<_> = routines.iter().map(|routine| (&**routine, Linked::Local)).collect();
        Kernel::new(self, &entry, &routines, Vec::new())
    }

    /// Says how compilation with `options` would manage the divergence of the kernel's branches, why,
    /// and what the alternatives would cost.
    ///
    /// # Errors
    ///
    /// As [`compile`](KernelSource::compile), as far as these stages find out.
    pub fn explain(&self, options: &CompileOptions) -> Result<DivergenceReport, CompileError> {
        let library = Library::new(self.arch(), options);
        let unit = Unit::of_kernel(self, &PlainNames, &library, options);
        managed::explain(legal(self.finished()?, unit, &Clock::new())?, unit)
    }
}

/// Says how [`compile_function`] with the same arguments would manage the divergence of branches, why,
/// and what the alternatives would cost. `sources` are the places that source locations stand for.
///
/// # Errors
///
/// As [`compile_function`], as far as these stages find out.
pub fn explain_function(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
    sources: &SourceMap,
) -> Result<DivergenceReport, CompileError> {
    let (name, library) = (func.name.to_string(), Library::new(arch, options));
    let unit = Unit::of_function(&name, sources, &library, options);
    managed::explain(legal(func, unit, &Clock::new())?, unit)
}

/// A kernel without the functions that it calls.
pub(crate) fn compile_kernel(
    source: &KernelSource,
    options: &CompileOptions,
    symbols: &dyn Symbols,
    library: &dyn Routines,
) -> Result<CompiledFunction, CompileError> {
    compile(source.finished()?, Unit::of_kernel(source, symbols, library, options))
}

/// Compiles one function on its own. Names in it mean what they are in CLIF text: `%f` is `f`.
///
/// Nothing else is looked at or changed, so functions can be compiled on several threads. Library routines
/// that the function refers to come with the module that it is put into.
///
/// # Errors
///
/// As [`KernelSource::compile`].
pub fn compile_function(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
) -> Result<CompiledFunction, CompileError> {
    let (name, library) = (func.name.to_string(), Library::new(arch, options));
    compile(func, Unit::of_function(&name, &SourceMap::new(), &library, options))
}

/// What a function is on its way to machine code, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileStages {
    /// The CLIF that instructions are selected from: optimized, of words only, all control flow explicit.
    pub clif: String,
    /// The machine's instructions before registers are allocated.
    pub vcode: String,
}

/// Compiles one function as [`compile_function`] does, as far as the selection of instructions.
/// `sources` are the places that its source locations stand for.
///
/// # Errors
///
/// As [`KernelSource::compile`].
pub fn compile_stages(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
    sources: &SourceMap,
) -> Result<CompileStages, CompileError> {
    let (name, library) = (func.name.to_string(), Library::new(arch, options));
    let unit = Unit::of_function(&name, sources, &library, options);
    let Selected { func, vcode, .. } = select(func, unit, &Clock::new())?;
    Ok(CompileStages { clif: func.display().to_string(), vcode: vcode.to_string() })
}
