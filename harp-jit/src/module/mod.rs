//! Modules: functions and data that refer to each other by name, and become one object.
//!
//! The manner is cranelift-module's, whose declarations, ids, linkage and data descriptions are used
//! here. Its trait for back ends is not: that asks for a target which Cranelift knows.
//!
//! A name is declared first, in any order, and defined later, or imported from other objects. What is
//! compiled on several threads goes through [`Module::compile`] and [`Module::define_compiled`]. A
//! [kernel](Module::compile_kernel) is compiled against a module and takes along what it needs of it.
//!
//! Functions are compiled on their own, with one exception: whether a function looks at the stack's
//! limit depends on what is known about those that it calls. A function that is defined, and that with
//! all it calls takes little of the stack, needs no look, nor do its callers for its sake. So defining
//! callees before their callers gives better code; it never decides about right and wrong, since in any
//! order of definitions each cycle of calls has a function that looks.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, GlobalValue, GlobalValueData, Signature,
    UserExternalName,
};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{
    DataDescription, DataId, FuncId, FuncOrDataId, Linkage, ModuleDeclarations, ModuleRelocTarget,
};
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Object, Permissions};
use hashbrown::HashSet;

use crate::analysis::FunctionFacts;
use crate::builder::KernelSource;
use crate::compile::{canonical, compile, compile_kernel};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, FunctionCode, Linked};
use crate::kernel::Kernel;
use crate::library::Library;
use crate::options::CompileOptions;
use crate::source::SourceMap;
use crate::symbols::{PlainNames, Symbols};
use crate::unit::{EntryKind, Unit};

mod calls;
mod data;
mod error;

use calls::{CallFacts, Member};
use data::Data;
pub use error::ModuleError;

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
    arch: ArchId,
    options: CompileOptions,
    library: Library,
    declarations: ModuleDeclarations,
    functions: BTreeMap<FuncId, CompiledFunction>,
    data: BTreeMap<DataId, Data>,
    /// What was found out about functions that call each other.
    calls: CallFacts,
}

/// A finished module.
#[derive(Clone, Debug)]
pub struct CompiledModule {
    object: Object,
    functions: Vec<FunctionCode>,
    stack_bytes: u32,
}

impl CompiledModule {
    /// The functions and data, to link with others.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The functions in the order of their declarations, then the library routines that they need.
    pub fn functions(&self) -> &[FunctionCode] {
        &self.functions
    }

    /// The function with this linker's name.
    pub fn function(&self, name: &str) -> Option<&FunctionCode> {
        self.functions.iter().find(|function| function.name() == name)
    }

    /// The size of the stack that each lane must have, and the alignment of this stack.
    pub fn stack_bytes(&self) -> u32 {
        self.stack_bytes
    }
}

impl Module {
    /// An empty module for `arch`. All its functions are compiled with `options`.
    pub fn new(arch: ArchId, options: CompileOptions) -> Module {
        Module {
            arch,
            library: Library::new(arch, &options),
            options,
            declarations: ModuleDeclarations::default(),
            functions: BTreeMap::new(),
            data: BTreeMap::new(),
            calls: CallFacts::default(),
        }
    }

    /// The machine that it is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The options of its functions.
    pub fn options(&self) -> &CompileOptions {
        &self.options
    }

    /// What was declared.
    pub fn declarations(&self) -> &ModuleDeclarations {
        &self.declarations
    }

    /// A signature without parameters and results, of the convention `fast`.
    pub fn make_signature(&self) -> Signature {
        Signature::new(CallConv::Fast)
    }

    /// Declares a function; with a name that is known, again.
    ///
    /// # Errors
    ///
    /// If the name is known as something else, or cannot be a name.
    pub fn declare_function(
        &mut self,
        name: &str,
        linkage: Linkage,
        signature: &Signature,
    ) -> Result<FuncId, ModuleError> {
        check_name(name)?;
        let declared = self.declarations.declare_function(name, linkage, signature);
        declared.map(|(id, _)| id).map_err(|error| declaration_error(name, error))
    }

    /// Declares a function without a name, which is local.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn declare_anonymous_function(
        &mut self,
        signature: &Signature,
    ) -> Result<FuncId, ModuleError> {
        let declared = self.declarations.declare_anonymous_function(signature);
        declared.map_err(|error| declaration_error("", error))
    }

    /// Declares a datum; with a name that is known, again.
    ///
    /// # Errors
    ///
    /// If the name is known as something else, or cannot be a name.
    pub fn declare_data(
        &mut self,
        name: &str,
        linkage: Linkage,
        access: DataAccess,
    ) -> Result<DataId, ModuleError> {
        check_name(name)?;
        let writable = access == DataAccess::ReadWrite;
        let declared = self.declarations.declare_data(name, linkage, writable, false);
        declared.map(|(id, _)| id).map_err(|error| declaration_error(name, error))
    }

    /// Declares a datum without a name, which is local.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn declare_anonymous_data(&mut self, access: DataAccess) -> Result<DataId, ModuleError> {
        let writable = access == DataAccess::ReadWrite;
        let declared = self.declarations.declare_anonymous_data(writable, false);
        declared.map_err(|error| declaration_error("", error))
    }

    /// Makes a declared function known in `func`, to call it or take its address.
    ///
    /// # Errors
    ///
    /// If the id is not this module's.
    pub fn declare_func_in_func(
        &self,
        id: FuncId,
        func: &mut Function,
    ) -> Result<FuncRef, ModuleError> {
        let (_, declaration) = self.function_declaration(id)?;
        let signature = func.import_signature(declaration.signature.clone());
        let colocated = declaration.linkage.is_final();
        let name = func.declare_imported_user_function(UserExternalName::new(0, id.as_u32()));
        Ok(func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            colocated,
            patchable: false,
        }))
    }

    /// Makes a declared datum known in `func`, to ask for its address by `symbol_value`.
    ///
    /// # Errors
    ///
    /// If the id is not this module's.
    pub fn declare_data_in_func(
        &self,
        id: DataId,
        func: &mut Function,
    ) -> Result<GlobalValue, ModuleError> {
        let (_, declaration) = self.data_declaration(id)?;
        let colocated = declaration.linkage.is_final();
        let name = func.declare_imported_user_function(UserExternalName::new(1, id.as_u32()));
        Ok(func.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: 0.into(),
            colocated,
            tls: false,
        }))
    }

    /// Makes a declared function known in a datum, to write its address there.
    pub fn declare_func_in_data(&self, id: FuncId, data: &mut DataDescription) -> FuncRef {
        data.import_function(ModuleRelocTarget::from(id))
    }

    /// Makes a declared datum known in a datum, to write its address there.
    pub fn declare_data_in_data(&self, id: DataId, data: &mut DataDescription) -> GlobalValue {
        data.import_global_value(ModuleRelocTarget::from(id))
    }

    /// Finds out which arguments and results are uniform, of functions that will be defined and kernels that
    /// will be compiled. All that is not said to depend on the lane is taken to be uniform then, instead of
    /// to differ: arguments of [local](Linkage::Local) functions whose address nobody takes, if all calls
    /// that these functions and kernels make pass uniform ones, and results of any of the functions that are
    /// made of uniform arguments.
    ///
    /// It replaces what was found out before, and changes nothing in what is compiled already. A function
    /// that is defined already may call whatever it likes, so nothing is taken for granted of the arguments
    /// of those that it refers to.
    ///
    /// # Errors
    ///
    /// If one of them does not compile, as far as it takes to find out.
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
            let unit = self.unit(&name, EntryKind::Function, &no_sources);
            members.push(Member {
                canonical: canonical(func, unit)?,
                given: func.clone(),
                private: !is_global(declaration.linkage) && !referred.contains(name.as_str()),
                name: Some(name),
            });
        }
        for kernel in kernels {
            let unit = self.unit(kernel.name(), EntryKind::Kernel, kernel.sources());
            let func = kernel.finished().map_err(CompileError::from)?;
            let canonical = canonical(func, unit)?;
            members.push(Member { name: None, given: func.clone(), canonical, private: false });
        }
        self.calls = calls::analyse(members, self, self.arch);
        Ok(())
    }

    fn unit<'a>(&'a self, name: &'a str, entry: EntryKind, sources: &'a SourceMap) -> Unit<'a> {
        let unit = Unit::new(name, entry, sources, &self.library, &self.options);
        Unit { symbols: self, ..unit }
    }

    /// Compiles a declared function without defining it: for several threads at once.
    ///
    /// `sources` are the places that the function's source locations stand for.
    ///
    /// # Errors
    ///
    /// If the function does not compile, or was declared otherwise.
    pub fn compile(
        &self,
        id: FuncId,
        func: &Function,
        sources: &SourceMap,
    ) -> Result<CompiledFunction, ModuleError> {
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
        Ok(compile(func, self.unit(&name, EntryKind::Function, sources))?)
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

    /// Defines a declared function by what [`compile`](Self::compile) made.
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

    /// Defines a declared datum.
    ///
    /// # Errors
    ///
    /// If the datum is imported or defined already, or cannot be in an object.
    pub fn define_data(
        &mut self,
        id: DataId,
        description: &DataDescription,
    ) -> Result<(), ModuleError> {
        let (name, declaration) = self.data_declaration(id)?;
        check_definition(&name, declaration.linkage, self.data.contains_key(&id))?;
        let data = Data::new(&name, description, self.arch, |target| match *target {
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

    /// Compiles a kernel that may refer to what the module declares. It takes along a copy of the
    /// definitions that it needs; what is not defined is left to the linker.
    ///
    /// # Errors
    ///
    /// If the kernel does not compile, or its name is one of those that it needs.
    pub fn compile_kernel(&self, source: &KernelSource) -> Result<Kernel, ModuleError> {
        let entry = compile_kernel(source, &self.options, self, &self.library)?;
        let needed = self.needed(&entry);
        if needed.contains(source.name()) {
            return Err(ModuleError::Duplicate { name: source.name().to_owned() });
        }
        let functions = self.functions.iter().filter(|(_, f)| needed.contains(f.name.as_str()));
        let mut functions: Vec<_> = functions.map(|(&id, f)| (f, self.linked(id))).collect();
        let routines = self.library.routines(needed.iter().copied())?;
        functions.extend(routines.iter().map(|routine| (&**routine, Linked::Local)));
        Ok(Kernel::new(source, &entry, &functions, self.data_chunks(Some(&needed))?)?)
    }

    /// The module's object.
    ///
    /// # Errors
    ///
    /// If something is declared as the module's own, but not defined; if a function is too large
    /// for its own jumps; or if a library routine does not compile.
    pub fn finish(self) -> Result<CompiledModule, ModuleError> {
        let functions = self.declarations.get_functions();
        let functions = functions
            .filter(|(id, d)| d.linkage.requires_definition() && !self.functions.contains_key(id))
            .map(|(id, d)| d.linkage_name(id).into_owned());
        let data = self.declarations.get_data_objects();
        let data = data
            .filter(|(id, d)| d.linkage.requires_definition() && !self.data.contains_key(id))
            .map(|(id, d)| d.linkage_name(id).into_owned());
        let names: Vec<String> = functions.chain(data).collect();
        if !names.is_empty() {
            return Err(ModuleError::Undefined { names });
        }
        let references = self.functions.values().flat_map(CompiledFunction::references);
        let routines = self.library.routines(references)?;
        let all: Vec<&CompiledFunction> =
            self.functions.values().chain(routines.iter().map(|routine| &**routine)).collect();
        let placed = function::place(&all, self.arch).map_err(|error| error.explain("module"))?;
        let mut chunks = Vec::new();
        let linked = self.functions.keys().map(|&id| self.linked(id));
        for (code, linked) in placed.iter().zip(linked.chain(iter::repeat(Linked::Local))) {
            chunks.extend(code.chunks(linked));
        }
        chunks.extend(self.data_chunks(None)?);
        Ok(CompiledModule {
            object: function::object(self.arch, chunks),
            functions: placed,
            stack_bytes: self.options.stack_bytes,
        })
    }

    /// The names that are reached from a kernel through definitions.
    fn needed<'a>(&'a self, entry: &'a CompiledFunction) -> HashSet<&'a str> {
        let mut needed = HashSet::new();
        let mut todo: Vec<&str> = entry.references().collect();
        while let Some(name) = todo.pop() {
            if !needed.insert(name) {
                continue;
            }
            match self.definition(name) {
                Some(FuncOrDataId::Func(id)) => {
                    todo.extend(
                        self.functions.get(&id).into_iter().flat_map(CompiledFunction::references),
                    );
                }
                Some(FuncOrDataId::Data(id)) => {
                    todo.extend(self.data.get(&id).into_iter().flat_map(Data::references));
                }
                None => {}
            }
        }
        needed
    }

    /// What has this linker's name.
    fn definition(&self, name: &str) -> Option<FuncOrDataId> {
        if let Some(found) = self.declarations.get_name(name) {
            return Some(found);
        }
        let functions = self.declarations.get_functions();
        let mut functions = functions.filter(|(_, d)| d.name.is_none());
        if let Some((id, _)) = functions.find(|(id, d)| d.linkage_name(*id) == name) {
            return Some(FuncOrDataId::Func(id));
        }
        let data = self.declarations.get_data_objects();
        let mut data = data.filter(|(_, d)| d.name.is_none());
        data.find(|(id, d)| d.linkage_name(*id) == name).map(|(id, _)| FuncOrDataId::Data(id))
    }

    /// Data that is only read comes first, so that what is written lies at the end of an image.
    fn data_chunks(&self, needed: Option<&HashSet<&str>>) -> Result<Vec<Chunk>, ModuleError> {
        let labels = self.inner_labels()?;
        let [mut read_only, mut writable] = [Vec::new(), Vec::new()];
        for (&id, data) in &self.data {
            let declaration = self.declarations.get_data_decl(id);
            let name = declaration.linkage_name(id);
            if needed.is_some_and(|needed| !needed.contains(name.as_ref())) {
                continue;
            }
            let (permissions, chunks) = match declaration.writable {
                true => (Permissions::READ | Permissions::WRITE, &mut writable),
                false => (Permissions::READ, &mut read_only),
            };
            let global = is_global(declaration.linkage);
            let labels: Vec<i64> = labels.get(&id).into_iter().flatten().copied().collect();
            let label = |name: &str, offset| self.place_name(name, offset);
            chunks.extend(data.chunks(&name, permissions, global, self.arch, &labels, label));
        }
        read_only.append(&mut writable);
        Ok(read_only)
    }

    /// The places in data of which other data holds the addresses.
    fn inner_labels(&self) -> Result<BTreeMap<DataId, BTreeSet<i64>>, ModuleError> {
        let mut labels: BTreeMap<DataId, BTreeSet<i64>> = BTreeMap::new();
        for address in self.data.values().flat_map(Data::inner_addresses) {
            let fail = |what, limit| {
                let (name, given) = (address.target.clone(), address.offset);
                Err(ModuleError::Data { name, what, given, limit })
            };
            let found = match self.definition(&address.target) {
                Some(FuncOrDataId::Data(id)) => self.data.get(&id).map(|data| (id, data)),
                _ => None,
            };
            match found {
                None => return fail("the address of a place in what is defined elsewhere", 0),
                Some((_, data)) if !data.has_place(address.offset) => {
                    return fail(
                        "the address of a place that is outside or in an address",
                        data.len(),
                    );
                }
                Some((id, _)) => labels.entry(id).or_default().insert(address.offset),
            };
        }
        Ok(labels)
    }

    /// The linker's name of a place in a datum, which is nobody else's.
    fn place_name(&self, name: &str, offset: i64) -> String {
        if offset == 0 {
            return name.to_owned();
        }
        let mut label = format!("{name}.{offset}");
        while self.declarations.get_name(&label).is_some() {
            label.push('.');
        }
        label
    }

    fn linked(&self, id: FuncId) -> Linked {
        match is_global(self.declarations.get_function_decl(id).linkage) {
            true => Linked::Global,
            false => Linked::Local,
        }
    }

    fn function_declaration(
        &self,
        id: FuncId,
    ) -> Result<(String, &cranelift_module::FunctionDeclaration), ModuleError> {
        if id.as_u32() as usize >= self.declarations.get_functions().count() {
            return Err(ModuleError::Undeclared { id: id.to_string() });
        }
        let declaration = self.declarations.get_function_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration))
    }

    fn data_declaration(
        &self,
        id: DataId,
    ) -> Result<(String, &cranelift_module::DataDeclaration), ModuleError> {
        if id.as_u32() as usize >= self.declarations.get_data_objects().count() {
            return Err(ModuleError::Undeclared { id: id.to_string() });
        }
        let declaration = self.declarations.get_data_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration))
    }

    /// The linker's name of what CLIF calls `u<namespace>:<index>`.
    fn user_name(&self, namespace: u32, index: u32) -> String {
        let declared = match namespace {
            0 => self.function_declaration(FuncId::from_u32(index)).map(|(name, _)| name),
            _ => self.data_declaration(DataId::from_u32(index)).map(|(name, _)| name),
        };
        match declared {
            Ok(name) if namespace < 2 => name,
            _ => format!("u{namespace}:{index}"),
        }
    }
}

/// What code may do with a datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataAccess {
    /// Load only.
    ReadOnly,
    /// Load and store. In launches every launch begins with the initial contents.
    ReadWrite,
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
}

fn is_global(linkage: Linkage) -> bool {
    linkage != Linkage::Local
}

fn check_name(name: &str) -> Result<(), ModuleError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.contains('\0') {
        "it holds a zero byte"
    } else if name.starts_with("runtime.") {
        "the runtime library's begin like that"
    } else {
        return Ok(());
    };
    Err(ModuleError::Name { name: name.to_owned(), reason })
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

fn declaration_error(name: &str, error: cranelift_module::ModuleError) -> ModuleError {
    let signatures = match error {
        cranelift_module::ModuleError::IncompatibleSignature(_, first, second) => {
            Some((first.to_string(), second.to_string()))
        }
        _ => None,
    };
    ModuleError::Declaration { name: name.to_owned(), signatures }
}
