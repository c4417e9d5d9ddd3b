//! The interface for compiling functions and kernels.

use std::sync::Arc;

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;

use crate::builder::KernelSource;
use crate::divergence::decide::DivergenceReport;
use crate::error::CompileError;
use crate::function::{CompiledFunction, Linked};
use crate::kernel::Kernel;
use crate::library::Library;
use crate::options::CompileOptions;
use crate::pipeline::{self, Selected, compile, select};
use crate::source::SourceMap;
use crate::times::Clock;
use crate::unit::{Routines, Unit};

/// Compiles for one machine with one set of options.
///
/// A compiler does not change its inputs, and several threads may use it at once. A library routine is compiled when a
/// function first needs it, once in a process for each machine and set of options. Functions and data
/// that refer to each other are put together by a [`Module`](crate::Module), which has a compiler of its own.
///
/// ```
/// use harp_jit::Compiler;
/// use harp_jit::prelude::*;
///
/// let compiler = Compiler::new("harp32".parse()?, CompileOptions::default());
/// let mut source = KernelSource::new("nothing", compiler.arch());
/// let mut b = KernelBuilder::new(&mut source);
/// b.return_();
/// b.finalize()?;
/// assert!(!compiler.compile_kernel(&source)?.code().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Compiler {
    arch: ArchId,
    options: CompileOptions,
    library: Arc<Library>,
}

/// The intermediate forms of a function on its way to machine code, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileStages {
    /// The CLIF that instructions are selected from: optimized, with values of at most a word and explicit
    /// control flow.
    pub clif: String,
    /// The machine's instructions before registers are allocated.
    pub vcode: String,
}

impl Compiler {
    /// A compiler for `arch`.
    pub fn new(arch: ArchId, options: CompileOptions) -> Compiler {
        Compiler { arch, library: Library::of(arch, &options), options }
    }

    /// The machine.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The options.
    pub fn options(&self) -> &CompileOptions {
        &self.options
    }

    /// Compiles a kernel. Functions that it calls are left to the linker; to include them from a module, see
    /// [`Module::compile_kernel`](crate::Module::compile_kernel).
    ///
    /// # Errors
    ///
    /// If the kernel was built wrongly or for another machine, is not valid CLIF, contains something that is
    /// not supported, or is too large for the machine.
    pub fn compile_kernel(&self, source: &KernelSource) -> Result<Kernel, CompileError> {
        let unit = self.kernel_unit(source)?;
        let entry = compile(source.finished()?, unit)?;
        let routines = self.routines(&mut entry.references())?;
        let routines: Vec<_> = routines.iter().map(|routine| (&**routine, Linked::Local)).collect();
        Kernel::new(source, &entry, &routines, Vec::new())
    }

    /// Compiles one function on its own. Its names are those of CLIF text: `%f` is `f`. Library routines that
    /// it refers to come with the module that the function is added to.
    ///
    /// # Errors
    ///
    /// As [`compile_kernel`](Self::compile_kernel).
    pub fn compile_function(&self, func: &Function) -> Result<CompiledFunction, CompileError> {
        let name = func.name.to_string();
        compile(func, self.function_unit(&name, &SourceMap::new()))
    }

    /// Explains how the divergence of a kernel's branches would be managed, why, and what the alternatives
    /// would cost. On machines whose lanes share registers it also says of each value where it would be, and why it is not
    /// shared.
    ///
    /// # Errors
    ///
    /// As [`compile_kernel`](Self::compile_kernel), as far as these stages detect them.
    pub fn explain_kernel(&self, source: &KernelSource) -> Result<DivergenceReport, CompileError> {
        let unit = self.kernel_unit(source)?;
        pipeline::explain(source.finished()?, unit)
    }

    /// Does the same for a function. `sources` are the places that its source locations stand for.
    ///
    /// # Errors
    ///
    /// As [`compile_function`](Self::compile_function), as far as these stages detect them.
    pub fn explain_function(
        &self,
        func: &Function,
        sources: &SourceMap,
    ) -> Result<DivergenceReport, CompileError> {
        let name = func.name.to_string();
        let unit = self.function_unit(&name, sources);
        pipeline::explain(func, unit)
    }

    /// Compiles one function as [`compile_function`](Self::compile_function) does, up to instruction
    /// selection. `sources` are the places that its source locations stand for.
    ///
    /// # Errors
    ///
    /// As [`compile_function`](Self::compile_function).
    pub fn stages(
        &self,
        func: &Function,
        sources: &SourceMap,
    ) -> Result<CompileStages, CompileError> {
        let name = func.name.to_string();
        stages(func, self.function_unit(&name, sources))
    }

    /// Does the same with a kernel.
    ///
    /// # Errors
    ///
    /// As [`compile_kernel`](Self::compile_kernel).
    pub fn kernel_stages(&self, source: &KernelSource) -> Result<CompileStages, CompileError> {
        stages(source.finished()?, self.kernel_unit(source)?)
    }

    /// The library routines among the functions with these names.
    pub(crate) fn routines(
        &self,
        names: &mut dyn Iterator<Item = &str>,
    ) -> Result<Vec<Arc<CompiledFunction>>, CompileError> {
        self.library.routines(names)
    }

    /// Whether it is a library routine to which work-groups mean nothing, or takes or releases the lock.
    pub(crate) fn is_free_of_groups(&self, name: &str) -> bool {
        self.library.is_free_of_groups(name)
    }

    /// A function that refers to nothing but library routines, compiled as `name` once in a process, without a profile.
    pub(crate) fn shared(
        &self,
        name: &str,
        function: &'static Function,
    ) -> Result<Arc<CompiledFunction>, CompileError> {
        self.library.shared(name, function)
    }

    /// The unit of a function without a module around it.
    pub(crate) fn function_unit<'a>(&'a self, name: &'a str, sources: &'a SourceMap) -> Unit<'a> {
        let unit = Unit::new(name, self.arch, sources, &self.options);
        Unit { library: Some(&*self.library), ..unit }
    }

    /// The unit of a kernel without a module around it.
    pub(crate) fn kernel_unit<'a>(
        &'a self,
        source: &'a KernelSource,
    ) -> Result<Unit<'a>, CompileError> {
        if source.arch() != self.arch {
            let (kernel, given, wanted) = (source.name().to_owned(), source.arch(), self.arch);
            return Err(CompileError::Machine { kernel, given, wanted });
        }
        Ok(Unit { library: Some(&*self.library), ..Unit::of_kernel(source, &self.options) })
    }
}

impl KernelSource {
    /// Compiles this kernel alone. To compile several, use [`Compiler::compile_kernel`].
    ///
    /// # Errors
    ///
    /// As [`Compiler::compile_kernel`].
    pub fn compile(&self, options: &CompileOptions) -> Result<Kernel, CompileError> {
        Compiler::new(self.arch(), options.clone()).compile_kernel(self)
    }

    /// Explains this kernel alone, as [`Compiler::explain_kernel`] does.
    ///
    /// # Errors
    ///
    /// As [`Compiler::explain_kernel`].
    pub fn explain(&self, options: &CompileOptions) -> Result<DivergenceReport, CompileError> {
        Compiler::new(self.arch(), options.clone()).explain_kernel(self)
    }
}

/// The forms of a function on its way to machine code.
fn stages(func: &Function, unit: Unit<'_>) -> Result<CompileStages, CompileError> {
    let Selected { func, vcode, .. } = select(func, unit, &Clock::new())?;
    Ok(CompileStages { clif: func.display().to_string(), vcode: vcode.to_string() })
}
