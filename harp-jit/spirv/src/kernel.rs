//! Kernels: a module's entry points as what harp-jit compiles.

use cranelift_codegen::ir::{self, AbiParam, InstBuilder, Signature, SourceLoc, UserFuncName};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use harp_jit::{
    ArchId, CallConv, CompileError, CompileOptions, DataAccess, Kernel, KernelParts, KernelSource,
    Linkage, Module, ModuleError, Param, Triple, frontend_config,
};
use hashbrown::{HashMap, HashSet};
use rspirv::spirv::StorageClass;

use crate::error::{Result, SpirvError, SpirvErrorKind};
use crate::escape;
use crate::function::Translator;
use crate::module::{
    Addressing, EntryParam, EntryParamKind, EntryPoint, Function, SpirvModule, Target, words,
};
use crate::prologue::{GLOBAL_ID, Item, Prologue};
use crate::reader::Id;
use crate::types::Kind;
use crate::unit::{Definition, Unit, word_type};
use crate::values::{Buffers, Def, Parts, Val};

/// The largest stacks that kernels get without being asked.
const MOST_STACK_BYTES: u32 = 1 << 20;

/// A kernel of a SPIR-V module for a machine.
#[derive(Debug)]
pub struct SpirvKernel {
    source: KernelSource,
    /// The declarations of what the kernel needs; nothing is compiled in it.
    declarations: Module,
    definitions: Vec<Definition>,
    entry: EntryPoint,
}

impl SpirvKernel {
    /// The entry point that it was made of.
    pub fn entry_point(&self) -> &EntryPoint {
        &self.entry
    }

    /// The kernel without the functions and data that it needs; see [`module`](Self::module).
    pub fn source(&self) -> &KernelSource {
        &self.source
    }

    /// A module with the functions and data that the kernel needs, compiled with `options`. A profile is the kernel's
    /// alone: with one, they are compiled without.
    ///
    /// # Errors
    ///
    /// If one of them does not compile.
    pub fn module(&self, options: &CompileOptions) -> std::result::Result<Module, ModuleError> {
        let mut module = self.declared(options.clone())?;
        let unprofiled = options.profile.as_ref().map(|_| options.without_profile());
        let compiler = unprofiled.map(|options| self.declared(options)).transpose()?;
        for definition in &self.definitions {
            let (id, body) = match definition {
                Definition::Data { id, contents } => {
                    module.define_data(*id, contents)?;
                    continue;
                }
                Definition::Function { id, body } => (*id, &**body),
                &Definition::Math { id, math, float, fma } => {
                    module.define_shared_function(id, harp_libm::built(math, float, fma))?;
                    continue;
                }
            };
            let compiler = compiler.as_ref().unwrap_or(&module);
            let compiled = compiler.compile(id, body, self.source.sources())?;
            module.define_compiled(id, compiled)?;
        }
        Ok(module)
    }

    /// A module in which nothing is defined yet.
    fn declared(&self, options: CompileOptions) -> std::result::Result<Module, ModuleError> {
        let mut module = Module::new(self.source.arch(), options);
        let local = Linkage::Local;
        // In the same order, names have the same ids.
        let declarations = self.declarations.declarations();
        for (id, declared) in declarations.get_functions() {
            module.declare_function(&declared.linkage_name(id), local, &declared.signature)?;
        }
        for (id, declared) in declarations.get_data_objects() {
            let writes = declared.writable;
            let access = if writes { DataAccess::ReadWrite } else { DataAccess::ReadOnly };
            module.declare_data(&declared.linkage_name(id), local, access)?;
        }
        Ok(module)
    }

    /// Compiles the kernel with the functions and data that it needs. Where their variables and spilled values do not fit
    /// stacks of [`CompileOptions::stack_bytes`], stacks are larger.
    ///
    /// # Errors
    ///
    /// If something in it is not supported on the machine, or too large for it.
    pub fn compile(&self, options: &CompileOptions) -> std::result::Result<Kernel, ModuleError> {
        let mut larger = None;
        loop {
            let options = larger.as_ref().unwrap_or(options);
            let result =
                self.module(options).and_then(|module| module.compile_kernel(&self.source));
            let Err(ModuleError::Compile(CompileError::StackFrame { given, .. })) = &result else {
                return result;
            };
            let Some(stack_bytes) = larger_stack(options.stack_bytes, *given) else {
                return result;
            };
            larger = Some(CompileOptions { stack_bytes, ..options.clone() });
        }
    }
}

/// The size of stacks for a frame of so many bytes and what it calls, if that is larger than `bytes`, and not too large.
fn larger_stack(bytes: u32, frame: u64) -> Option<u32> {
    let larger = frame.checked_mul(2)?.checked_next_power_of_two()?;
    u32::try_from(larger).ok().filter(|larger| (bytes + 1..=MOST_STACK_BYTES).contains(larger))
}

impl SpirvModule {
    /// Makes a kernel of an entry point.
    ///
    /// ```no_run
    /// use harp_jit::CompileOptions;
    /// use harp_spirv::SpirvModule;
    ///
    /// let module = SpirvModule::parse(&std::fs::read("saxpy.spv")?)?;
    /// let kernel = module.kernel("saxpy", "4w32/16/32/16+x".parse()?)?;
    /// let kernel = kernel.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no such entry point, the machine has words of another size than the module's addresses, or something
    /// in the functions is malformed or not supported: then the error has the instruction.
    pub fn kernel(&self, name: &str, arch: ArchId) -> std::result::Result<SpirvKernel, SpirvError> {
        let plain = |kind| SpirvError { kind, at: None };
        let entry = EntryPoint::find(self, name).map_err(plain)?;
        if let Addressing::Physical(addresses) = self.addressing
            && addresses != arch.word().bytes()
        {
            return Err(plain(SpirvErrorKind::AddressSize { addresses, arch }));
        }
        if let Some(problem) = entry.problem(self, arch.lanes().into()) {
            return Err(self.error(problem, self.functions[&entry.function].at));
        }
        let params: Vec<Param> =
            entry.params().iter().flat_map(EntryParam::launch_params).collect();
        let mut unit = Unit::new(self, arch, words(&params, arch.word()));
        let func = translate(&mut unit, name, |t| t.entry_point(entry))?;
        while let Some(id) = unit.pending.pop() {
            let function = &self.functions[&id];
            let name = unit.function_name(id);
            let signature =
                unit.signature(function).map_err(|kind| self.error(kind, function.at))?;
            let body = translate_function(&mut unit, &name, signature, |t, params| {
                t.called(function, params)
            })?;
            let id = unit.function(function).map_err(|kind| self.error(kind, function.at))?;
            unit.definitions.push(Definition::Function { id, body: Box::new(body) });
        }
        let Unit { declarations, definitions, sources, prints, uses_groups, group_arrays, .. } =
            unit;
        let parts = KernelParts { params, sources, group_arrays, uses_groups, prints };
        let source = KernelSource::from_parts(func, arch, parts)
            .map_err(|error| plain(SpirvErrorKind::Build(error)))?;
        Ok(SpirvKernel { source, declarations, definitions, entry: entry.clone() })
    }
}

/// Builds a kernel's function.
fn translate<'m>(
    unit: &mut Unit<'m>,
    name: &str,
    build: impl FnOnce(&mut Translator<'_, '_, 'm>) -> Result<()>,
) -> std::result::Result<ir::Function, SpirvError> {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(unit.word));
    translate_function(unit, name, signature, |t, _| build(t))
}

/// Builds a function whose first parameter is the address of the argument block; `build` gets the others.
fn translate_function<'m>(
    unit: &mut Unit<'m>,
    name: &str,
    signature: Signature,
    build: impl FnOnce(&mut Translator<'_, '_, 'm>, &[ir::Value]) -> Result<()>,
) -> std::result::Result<ir::Function, SpirvError> {
    let (module, arch) = (unit.module, unit.arch);
    let mut func = ir::Function::with_name_signature(UserFuncName::testcase(name), signature);
    func.params.ensure_base_srcloc(SourceLoc::new(0));
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.ensure_inserted_block();
    let params = b.block_params(entry).to_vec();
    let prologue = Prologue::new(entry, arch, word_type(arch), params[0]);
    let mut translator = Translator::new(unit, b, prologue);
    build(&mut translator, &params[1..]).map_err(|kind| module.error(kind, translator.at))?;
    let mut b = translator.b;
    b.seal_all_blocks();
    let config = frontend_config(&Triple::from(arch)).map_err(|_| {
        let kind = SpirvErrorKind::unsupported(format!("the machine {arch}"));
        SpirvError { kind, at: None }
    })?;
    b.finalize(config);
    Ok(func)
}

impl<'m> Translator<'_, '_, 'm> {
    /// The body of a function that others call.
    fn called(&mut self, function: &'m Function, params: &[ir::Value]) -> Result<()> {
        let mut params = params.iter().copied();
        if let Some(position) = params.next() {
            self.prologue.give(Item::Word(GLOBAL_ID[0]), position);
        }
        let mut args = Vec::new();
        for &(_, ty) in &function.params {
            let count = self.module.types.get(ty)?.leaves as usize;
            args.push(Def::Value(Val::new(ty, params.by_ref().take(count).collect())));
        }
        self.body(function, args, None)
    }

    /// The body of a kernel.
    fn entry_point(&mut self, entry: &EntryPoint) -> Result<()> {
        let module = self.module;
        let function = &module.functions[&entry.function];
        self.at = function.at;
        if !matches!(module.types.kind(function.result)?, Kind::Void) {
            return Err(SpirvErrorKind::malformed("a kernel that returns something"));
        }
        let own = module.used_globals(entry.function, |global| {
            matches!(global.class, StorageClass::Private | StorageClass::PushConstant)
        });
        let promoted = escape::promoted_globals(module, entry.function, &own);
        let mut args = vec![None; function.params.len()];
        let mut arrays: HashMap<Id, Buffers> = HashMap::new();
        let mut first = 0;
        for (param, targets) in entry.params().iter().zip(&entry.targets) {
            let launch = param.launch_params();
            let count = words(&launch, self.unit.arch.word());
            let parts = self.arguments(&launch, first);
            first += count;
            if let EntryParamKind::SizedBuffer(_) = param.kind {
                // The size is behind the address.
                self.sizes.insert(parts[0], first - 1);
            }
            for &target in targets {
                let parts = parts.clone();
                match target {
                    Target::Param(index) => {
                        args[index] = Some(self.argument(function, index, param, parts)?);
                    }
                    Target::Global(id) => {
                        let def = self.resource(id, &promoted, param, parts)?;
                        self.globals.insert(id, def);
                    }
                    Target::Element(id) => {
                        let (ty, _) = module.types.part(module.globals[&id].ty, 0)?;
                        let none =
                            Buffers { ty, addresses: Parts::new(), constant: param.constant };
                        arrays.entry(id).or_insert(none).addresses.extend(parts);
                    }
                }
            }
        }
        self.globals.extend(arrays.into_iter().map(|(id, buffers)| (id, Def::Buffers(buffers))));
        let private = |id: &Id| module.globals[id].class == StorageClass::Private;
        for id in own.into_iter().filter(private) {
            self.private(id, &promoted)?;
        }
        self.clear_group_memory(entry.function)?;
        self.body(function, args.into_iter().flatten().collect(), None)
    }

    /// The values of launch parameters whose words begin with word `first`.
    fn arguments(&mut self, params: &[Param], first: u32) -> Parts {
        let size = self.unit.arch.word();
        let mut next = first;
        let mut parts = Parts::new();
        for param in params {
            let value = self.prologue.item(self.b.func, Item::Argument(param.ty(), next));
            next += param.ty().words(size);
            parts.push(if param.ty() == harp_jit::ParamType::Group {
                self.unit.uses_groups = true;
                let memory = self.prologue_word("harp_group_memory");
                self.at_start(|at| at.ins().iadd(memory, value))
            } else {
                value
            });
        }
        parts
    }

    /// What a parameter of a kernel stands for: structures by value are pointers to memory of their own.
    fn argument(
        &mut self,
        kernel: &Function,
        index: usize,
        param: &EntryParam,
        parts: Parts,
    ) -> Result<Def> {
        let (id, ty) = kernel.params[index];
        let Kind::Pointer { to, .. } = *self.module.types.kind(ty)? else {
            return Ok(Def::Value(Val::new(ty, parts)));
        };
        if !matches!(param.kind, EntryParamKind::Fields(_)) {
            return Ok(Def::Value(Val { constant: param.constant, ..Val::new(ty, parts) }));
        }
        let variables = self.unit.variables(kernel);
        let pointer = self.slot(id, ty, to, self.unit.stack_alignment(&variables, id, to)?)?;
        self.store(&pointer, &Val::new(to, parts), None)?;
        Ok(Def::Value(pointer))
    }

    /// What a variable that the launch provides stands for.
    fn resource(
        &mut self,
        id: Id,
        promoted: &HashSet<Id>,
        param: &EntryParam,
        parts: Parts,
    ) -> Result<Def> {
        let pointer = self.module.constants.ty(id)?;
        let global = self.module.globals[&id];
        if global.class != StorageClass::PushConstant {
            return Ok(Def::Value(Val { constant: param.constant, ..Val::new(pointer, parts) }));
        }
        let value = Val::new(global.ty, parts);
        if promoted.contains(&id) {
            let place = self.place(global.ty)?;
            self.assign(place, &value)?;
            return Ok(Def::Place(place));
        }
        let pointer = self.hidden_slot(id, pointer, global.ty)?;
        self.store(&pointer, &value, None)?;
        Ok(Def::Value(pointer))
    }

    /// Makes a variable that each work-item has.
    fn private(&mut self, id: Id, promoted: &HashSet<Id>) -> Result<()> {
        let (pointer, global) = (self.module.constants.ty(id)?, self.module.globals[&id]);
        let def = if promoted.contains(&id) {
            Def::Place(self.place(global.ty)?)
        } else {
            Def::Value(self.hidden_slot(id, pointer, global.ty)?)
        };
        if let Some(initial) = global.initializer {
            self.store_id(&def, initial, global.ty, None)?;
        }
        self.globals.insert(id, def);
        Ok(())
    }
}
