//! The functions of a file, compiled for one machine, and programs that call one of them.

use std::collections::BTreeMap;

use harp_isa::ArchId;
use harp_jit::text::{TextFile, TextFunction};
use harp_jit::{
    CompileError, CompileOptions, CompiledFunction, CompiledModule, Linkage, Module, ModuleError,
};

use super::constructs;
use super::libcalls;
use harp_runtime::Program;

/// Why a function cannot be called.
#[derive(Clone, Debug)]
pub(super) enum Missing {
    /// The function, or one that it calls, uses something that the machine does not have.
    Unsupported { function: String, reason: String },
    /// The function must be available but is not, for the given reason.
    Failed(String),
}

/// The compiled functions of a file, and what they need.
pub(super) struct Linked<'a> {
    file: &'a TextFile,
    arch: ArchId,
    options: CompileOptions,
    compiled: BTreeMap<String, Result<CompiledFunction, Missing>>,
    programs: BTreeMap<String, Result<Program, Missing>>,
}

impl<'a> Linked<'a> {
    pub(super) fn new(file: &'a TextFile, arch: ArchId, options: CompileOptions) -> Linked<'a> {
        Linked { file, arch, options, compiled: BTreeMap::new(), programs: BTreeMap::new() }
    }

    /// A program that calls the function.
    pub(super) fn program(&mut self, function: &TextFunction) -> Result<&Program, Missing> {
        if !self.programs.contains_key(&function.name) {
            let program = self.link(function);
            self.programs.insert(function.name.clone(), program);
        }
        self.programs[&function.name].as_ref().map_err(Missing::clone)
    }

    fn link(&mut self, function: &TextFunction) -> Result<Program, Missing> {
        let module = self.module(function)?;
        Program::new(&module, &function.name, &function.func.signature)
            .map_err(|error| Missing::Failed(causes(&error)))
    }

    /// The function with all functions and data that it reaches.
    fn module(&mut self, function: &TextFunction) -> Result<CompiledModule, Missing> {
        let failed = |error: ModuleError| Missing::Failed(error.to_string());
        let mut module = Module::new(self.arch, self.options.clone());
        self.file.define_data(&mut module).map_err(failed)?;
        let mut todo = vec![(self.file, function)];
        let mut done = Vec::new();
        while let Some((file, function)) = todo.pop() {
            if done.contains(&function.name) {
                continue;
            }
            done.push(function.name.clone());
            let compiled = self.compiled(file, function)?;
            let next = compiled.references().filter_map(|name| self.definition(name));
            todo.extend(next.collect::<Vec<_>>());
            let signature = &function.func.signature;
            let id = module.declare_function(&function.name, Linkage::Export, signature);
            module.define_compiled(id.map_err(failed)?, compiled).map_err(failed)?;
        }
        module.finish().map_err(failed)
    }

    /// The function of this name, in the file or in the library.
    fn definition(&self, name: &str) -> Option<(&'a TextFile, &'a TextFunction)> {
        let own = self.file.function(name).map(|function| (self.file, function));
        own.or_else(|| libcalls::routine(name))
    }

    fn compiled(
        &mut self,
        file: &TextFile,
        function: &TextFunction,
    ) -> Result<CompiledFunction, Missing> {
        if let Some(known) = self.compiled.get(&function.name) {
            return known.clone();
        }
        let compiled = file.compile(function, self.arch, &self.options);
        let compiled = compiled.map_err(|error| self.missing(function, &error));
        self.compiled.insert(function.name.clone(), compiled.clone());
        compiled
    }

    fn missing(&self, function: &TextFunction, error: &ModuleError) -> Missing {
        match error {
            ModuleError::Compile(CompileError::Unsupported { what, inst, .. })
                if constructs::may_skip(&function.func, self.arch) =>
            {
                Missing::Unsupported {
                    function: function.name.clone(),
                    reason: format!("{what}: `{inst}`"),
                }
            }
            ModuleError::Compile(CompileError::UnsupportedDeclaration {
                what,
                declaration,
                ..
            }) if constructs::may_skip(&function.func, self.arch) => Missing::Unsupported {
                function: function.name.clone(),
                reason: format!("{what}: `{declaration}`"),
            },
            error => Missing::Failed(format!("%{}: {error}", function.name)),
        }
    }
}

/// An error with all its causes, on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
