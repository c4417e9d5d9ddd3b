//! The context in which a function is compiled.

use std::sync::Arc;

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;

use crate::abi::EntryKind;
use crate::analysis::Params;
use crate::builder::KernelSource;
use crate::error::CompileError;
use crate::function::CompiledFunction;
use crate::groups::Grouping;
use crate::isel;
use crate::legalize::LargeCode;
use crate::lock;
use crate::options::CompileOptions;
use crate::source::SourceMap;
use crate::symbols::{Called, PlainNames, Symbols};

/// Resolves the library routines that functions call.
pub(crate) trait Routines {
    /// The routines among the functions with these names, each once, in the order of their names.
    ///
    /// # Errors
    ///
    /// If a routine does not compile: a defect, or a machine whose code cannot be that long.
    fn routines(
        &self,
        names: &mut dyn Iterator<Item = &str>,
    ) -> Result<Vec<Arc<CompiledFunction>>, CompileError>;

    /// Whether it is a routine to which work-groups mean nothing, or takes or releases the lock. One that does not compile is
    /// refused elsewhere.
    fn is_free_of_groups(&self, name: &str) -> bool {
        lock::is_of_lock(name)
            || self.routines(&mut std::iter::once(name)).is_ok_and(|found| {
                let is_free = |routine: &Arc<CompiledFunction>| {
                    routine.name == name
                        && routine.grouping == Grouping::Indifferent
                        && routine.references().next().is_none()
                };
                found.iter().any(is_free)
            })
    }
}

/// The context of a function.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    /// The linker's name of the function.
    pub(crate) name: &'a str,
    pub(crate) arch: ArchId,
    pub(crate) entry: EntryKind,
    pub(crate) sources: &'a SourceMap,
    pub(crate) symbols: &'a dyn Symbols,
    /// The library routines; none for a routine, which does not use others.
    pub(crate) library: Option<&'a dyn Routines>,
    pub(crate) options: &'a CompileOptions,
    /// The index of the argument with the address of the counters, if the function counts its branches.
    pub(crate) counters: Option<u32>,
    /// The kernel, if the function is one.
    pub(crate) kernel: Option<&'a KernelSource>,
}

impl<'a> Unit<'a> {
    /// A context in which no names are known, without a library and without counters. The name may begin with
    /// CLIF's `%`.
    pub(crate) fn new(
        name: &'a str,
        arch: ArchId,
        sources: &'a SourceMap,
        options: &'a CompileOptions,
    ) -> Unit<'a> {
        Unit {
            name: name.strip_prefix('%').unwrap_or(name),
            arch,
            entry: EntryKind::Function,
            sources,
            symbols: &PlainNames,
            library: None,
            options,
            counters: None,
            kernel: None,
        }
    }

    /// The context of a kernel.
    pub(crate) fn of_kernel(source: &'a KernelSource, options: &'a CompileOptions) -> Unit<'a> {
        Unit {
            name: source.name(),
            entry: EntryKind::Kernel,
            kernel: Some(source),
            counters: options.count_branches.then_some(source.argument_words()),
            ..Unit::new(source.name(), source.arch(), source.sources(), options)
        }
    }

    /// The inputs of instruction selection.
    pub(crate) fn target(self) -> isel::Target<'a> {
        let Unit { name, arch, entry, symbols, options, .. } = self;
        isel::Target { name, arch, entry, execution: options.execution, symbols }
    }

    /// Runs the verifier on a stage's result, if `verify` is on.
    pub(crate) fn verify(self, func: &Function, stage: &'static str) -> Result<(), CompileError> {
        if !self.options.verify {
            return Ok(());
        }
        cranelift_codegen::verify_function(func, &self.options.flags()).map_err(|errors| {
            let message = format!("`{}`: {errors}", self.name);
            CompileError::Internal { stage, message }
        })
    }

    pub(crate) fn large_code(&self) -> LargeCode {
        if self.library.is_some() { LargeCode::Library } else { LargeCode::InPlace }
    }

    /// What is known about its callees.
    pub(crate) fn callees(&self) -> Called<'_> {
        Called { symbols: self.symbols, arch: self.arch }
    }

    /// What is known about its parameters.
    pub(crate) fn params(&self) -> Params<'_> {
        match (self.entry, self.symbols.facts(self.name)) {
            (EntryKind::Kernel, _) => Params::Uniform,
            (EntryKind::Function, Some(facts)) => Params::Widths(&facts.params),
            (EntryKind::Function, None) => Params::Divergent,
        }
    }
}
