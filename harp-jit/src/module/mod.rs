//! Modules: functions and data that refer to each other by name, and become one object.
//!
//! The module works like cranelift-module's and uses its declarations, ids, linkage and data descriptions. It
//! does not use the trait for back ends, which needs a target that Cranelift knows.
//!
//! A name is declared first, in any order, and defined later, or imported from other objects. To compile on
//! several threads, use [`Module::compile`] and [`Module::define_compiled`]. A
//! [kernel](Module::compile_kernel) is compiled against a module and includes a copy of the definitions that
//! it needs. Its builder refers to the module: [`KernelBuilder::call`], [`KernelBuilder::data`].
//!
//! [`KernelBuilder::call`]: crate::KernelBuilder::call
//! [`KernelBuilder::data`]: crate::KernelBuilder::data
//!
//! Functions are compiled independently, with one exception: whether a function checks the stack's limit
//! depends on its callees. A function whose definition is known, and which takes little stack together with
//! all its callees, needs no check, and neither do its callers on its account. So defining callees before
//! their callers gives better code. It does not affect correctness: in any order of definitions, each cycle
//! of calls has a function that checks.

use std::collections::BTreeMap;

use cranelift_codegen::ir::{ExternalName, Function};
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage, ModuleDeclarations, ModuleRelocTarget,
};
use harp_isa::ArchId;
use hashbrown::HashSet;

use crate::analysis::FunctionFacts;
use crate::builder::KernelSource;
use crate::compiler::Compiler;
use crate::error::CompileError;
use crate::function::{CompiledFunction, Linked};
use crate::groups::Grouping;
use crate::kernel::Kernel;
use crate::options::CompileOptions;
use crate::pipeline::{canonical, compile};
use crate::source::SourceMap;
use crate::symbols::{PlainNames, Symbols};
use crate::unit::Unit;

mod calls;
mod data;
mod declare;
mod error;
mod kernels;
mod link;

use calls::{CallFacts, Member};
use data::Data;
pub use declare::DataAccess;
pub use error::ModuleError;
pub use link::CompiledModule;

/// Functions and data under construction.
///
/// ```
/// use harp_jit::prelude::*;
/// use harp_jit::{Linkage, Module, ir::{AbiParam, Function}};
///
/// let mut module = Module::new("harp32".parse()?, CompileOptions::default());
/// let mut signature = module.make_signature();
/// signature.params.push(AbiParam::new(types::I32));
/// let func = Function::with_name_signature(Default::default(), signature.clone());
/// let id = module.declare_function("f", Linkage::Export, &signature)?;
/// // A function without blocks is no function yet.
/// assert!(module.define_function(id, &func).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Module {
    compiler: Compiler,
    declarations: ModuleDeclarations,
    functions: BTreeMap<FuncId, CompiledFunction>,
    data: BTreeMap<DataId, Data>,
    /// The facts found by the analysis of calls.
    calls: CallFacts,
}

impl Module {
    /// An empty module for `arch`. All its functions are compiled with `options`.
    pub fn new(arch: ArchId, options: CompileOptions) -> Module {
        Module {
            compiler: Compiler::new(arch, options),
            declarations: ModuleDeclarations::default(),
            functions: BTreeMap::new(),
            data: BTreeMap::new(),
            calls: CallFacts::default(),
        }
    }

    /// The machine that the module is for.
    pub fn arch(&self) -> ArchId {
        self.compiler.arch()
    }

    /// The options that its functions are compiled with.
    pub fn options(&self) -> &CompileOptions {
        self.compiler.options()
    }

    /// Finds out which arguments and results are uniform, for functions that will be defined and kernels that
    /// will be compiled. Without this, they are taken to differ from lane to lane. With it, two kinds are
    /// taken to be uniform unless they depend on the lane: arguments of [local](Linkage::Local) functions
    /// whose address is not taken, if all call sites in these functions and kernels pass uniform ones; and
    /// results of any of the functions that are computed from uniform arguments.
    ///
    /// The analysis replaces the one before, and does not change code compiled already. Functions that are
    /// defined already may call anything, so nothing is assumed about the arguments of functions that they
    /// refer to.
    ///
    /// # Errors
    ///
    /// If one of the functions or kernels does not compile, as far as the analysis finds out.
    pub fn analyze_calls(
        &mut self,
        functions: &[(FuncId, &Function)],
        kernels: &[&KernelSource],
    ) -> Result<(), ModuleError> {
        self.calls = CallFacts::default();
        let mut referred: HashSet<&str> = HashSet::new();
        referred.extend(self.functions.values().flat_map(CompiledFunction::references));
        referred.extend(self.data.values().flat_map(Data::references));
        let mut members = Vec::new();
        let no_sources = SourceMap::new();
        for &(id, func) in functions {
            let (name, declaration) = self.function_declaration(id)?;
            let unit = self.unit(&name, &no_sources);
            members.push(Member {
                canonical: canonical(func, unit)?,
                given: func.clone(),
                private: !is_global(declaration.linkage) && !referred.contains(name.as_str()),
                name: Some(name),
            });
        }
        for kernel in kernels {
            let unit = self.compiler.kernel_unit(kernel)?;
            let unit = Unit { symbols: self, counters: None, ..unit };
            let func = kernel.finished().map_err(CompileError::from)?;
            let canonical = canonical(func, unit)?;
            members.push(Member { name: None, given: func.clone(), canonical, private: false });
        }
        self.calls = calls::analyse(members, self, self.arch());
        Ok(())
    }

    fn unit<'a>(&'a self, name: &'a str, sources: &'a SourceMap) -> Unit<'a> {
        Unit { symbols: self, ..self.compiler.function_unit(name, sources) }
    }

    /// The name of a declared function that is to have this body, if it was neither declared nor analysed otherwise.
    fn name_of_body(&self, id: FuncId, func: &Function) -> Result<String, ModuleError> {
        let (name, declaration) = self.function_declaration(id)?;
        if declaration.signature != func.signature {
            return Err(ModuleError::Signature {
                name,
                declared: declaration.signature.to_string(),
                given: func.signature.to_string(),
            });
        }
        if self.calls.contradicts(&name, func) {
            return Err(ModuleError::Analyzed { name, what: "has another body now" });
        }
        Ok(name)
    }

    /// Compiles a declared function without defining it; several threads can do so at once.
    ///
    /// `sources` are the places that the function's source locations stand for.
    ///
    /// # Errors
    ///
    /// If the function does not compile, or was declared differently.
    pub fn compile(
        &self,
        id: FuncId,
        func: &Function,
        sources: &SourceMap,
    ) -> Result<CompiledFunction, ModuleError> {
        let name = self.name_of_body(id, func)?;
        Ok(compile(func, self.unit(&name, sources))?)
    }

    /// Compiles and defines a declared function.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile) and [`define_compiled`](Self::define_compiled).
    pub fn define_function(&mut self, id: FuncId, func: &Function) -> Result<(), ModuleError> {
        let compiled = self.compile(id, func, &SourceMap::new())?;
        self.define_compiled(id, compiled)
    }

    /// Defines a declared function with a result of [`compile`](Self::compile).
    ///
    /// # Errors
    ///
    /// If the function is imported or defined already.
    pub fn define_compiled(
        &mut self,
        id: FuncId,
        compiled: CompiledFunction,
    ) -> Result<(), ModuleError> {
        let (name, declaration) = self.function_declaration(id)?;
        check_definition(&name, declaration.linkage, self.functions.contains_key(&id))?;
        if compiled.name != name {
            return Err(ModuleError::Undeclared { id: compiled.name });
        }
        self.functions.insert(id, compiled);
        Ok(())
    }

    /// Compiles and defines a declared function that many modules have, such as those of a mathematical library: it is
    /// compiled once in a process for each machine and set of options, of which a profile is left out. Nothing that
    /// [`analyze_calls`](Self::analyze_calls) finds out is used for it.
    ///
    /// # Errors
    ///
    /// As [`define_function`](Self::define_function), and if the function refers to others, or to data.
    pub fn define_shared_function(
        &mut self,
        id: FuncId,
        func: &'static Function,
    ) -> Result<(), ModuleError> {
        let name = self.name_of_body(id, func)?;
        if let Some(first) = func.params.user_named_funcs().values().next() {
            let refers_to = self.user_name(first.namespace, first.index);
            return Err(ModuleError::NotShared { name, refers_to });
        }
        let compiled = self.compiler.shared(&name, func)?;
        self.define_compiled(id, CompiledFunction::clone(&compiled))
    }

    /// Defines a declared datum.
    ///
    /// # Errors
    ///
    /// If the datum is imported or defined already, or does not fit an object.
    pub fn define_data(
        &mut self,
        id: DataId,
        description: &DataDescription,
    ) -> Result<(), ModuleError> {
        let (name, declaration) = self.data_declaration(id)?;
        check_definition(&name, declaration.linkage, self.data.contains_key(&id))?;
        let data = Data::new(&name, description, self.arch(), |target| match *target {
            ModuleRelocTarget::User { namespace, index } => self.user_name(namespace, index),
            ref other => other.to_string(),
        })?;
        if let Some(name) = data.references().find(|name| self.calls.is_closed(name)) {
            let what = "is referred to by a datum now";
            return Err(ModuleError::Analyzed { name: name.to_owned(), what });
        }
        self.data.insert(id, data);
        Ok(())
    }

    /// Compiles a kernel that may refer to the module's declarations. The result includes a copy of the
    /// definitions that the kernel needs; undefined names are left to the linker.
    ///
    /// # Errors
    ///
    /// If the kernel does not compile, or has the same name as one of the definitions that it needs.
    pub fn compile_kernel(&self, source: &KernelSource) -> Result<Kernel, ModuleError> {
        let unit = Unit { symbols: self, ..self.compiler.kernel_unit(source)? };
        let func = source.finished().map_err(CompileError::from)?;
        let entry = compile(func, unit)?;
        let needed = self.needed(&entry);
        if needed.contains(source.name()) {
            return Err(ModuleError::Duplicate { name: source.name().to_owned() });
        }
        let functions = self.functions.iter().filter(|(_, f)| needed.contains(f.name.as_str()));
        let mut functions: Vec<_> = functions.map(|(&id, f)| (f, self.linked(id))).collect();
        let routines = self.compiler.routines(&mut needed.iter().copied())?;
        functions.extend(routines.iter().map(|routine| (&**routine, Linked::Local)));
        Ok(Kernel::new(source, &entry, &functions, self.data_chunks(Some(&needed))?)?)
    }
}

impl Symbols for Module {
    fn name(&self, func: &Function, name: &ExternalName) -> String {
        match name {
            ExternalName::User(reference) => match func.params.user_named_funcs().get(*reference) {
                Some(name) => self.user_name(name.namespace, name.index),
                None => PlainNames.name(func, name),
            },
            _ => PlainNames.name(func, name),
        }
    }

    fn unchecked_stack(&self, name: &str) -> Option<u64> {
        let Some(FuncOrDataId::Func(id)) = self.definition(name) else { return None };
        self.functions.get(&id)?.unchecked_stack()
    }

    fn facts(&self, name: &str) -> Option<&FunctionFacts> {
        self.calls.facts(name)
    }

    fn may_gather(&self, name: &str) -> bool {
        let Some(FuncOrDataId::Func(id)) = self.definition(name) else { return true };
        self.functions.get(&id).is_none_or(|function| function.may_gather)
    }

    fn is_free_of_groups(&self, name: &str) -> bool {
        let mut known = HashSet::new();
        let mut todo = vec![name];
        while let Some(name) = todo.pop() {
            if !known.insert(name) || self.compiler.is_free_of_groups(name) {
                continue;
            }
            match self.definition(name) {
                Some(FuncOrDataId::Func(id)) => match self.functions.get(&id) {
                    Some(function) if function.grouping == Grouping::Indifferent => {
                        todo.extend(function.references());
                    }
                    _ => return false,
                },
                Some(FuncOrDataId::Data(id)) => match self.data.get(&id) {
                    Some(data) => todo.extend(data.references()),
                    None => return false,
                },
                None => return false,
            }
        }
        true
    }
}

fn is_global(linkage: Linkage) -> bool {
    linkage != Linkage::Local
}

fn check_definition(name: &str, linkage: Linkage, defined: bool) -> Result<(), ModuleError> {
    if !linkage.is_definable() {
        return Err(ModuleError::Imported { name: name.to_owned() });
    }
    if defined {
        return Err(ModuleError::Duplicate { name: name.to_owned() });
    }
    Ok(())
}
