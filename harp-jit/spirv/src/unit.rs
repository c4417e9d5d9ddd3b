//! What the functions of a kernel share while they are translated: declarations, data, memory of work-groups, places.

use std::rc::Rc;

use cranelift_codegen::ir::{self, AbiParam, Signature, SourceLoc};
use harp_jit::{
    ArchId, CompileOptions, DataAccess, DataDescription, DataId, FuncId, GroupArray, Linkage,
    Module, PrintSite, SourceMap,
};
use harp_libm::{Float, Fma, Math};
use hashbrown::HashMap;
use rspirv::spirv::{Decoration, StorageClass};

use crate::constants::Scalar;
use crate::error::{Result, SpirvErrorKind};
use crate::escape::Variables;
use crate::module::{Function, Global, SpirvModule};
use crate::reader::Id;
use crate::tails::{Tails, tails};

/// The most instructions of functions whose code is put into their callers: beyond, functions are called.
const MAX_INLINED: usize = 1 << 16;

/// The largest alignment of a variable, in bytes.
const MAX_ALIGN: u64 = 1 << 12;

/// A definition of the kernel's module.
#[derive(Clone, Debug)]
pub(crate) enum Definition {
    Function {
        id: FuncId,
        body: Box<ir::Function>,
    },
    /// A function of harp-libm.
    Math {
        id: FuncId,
        math: Math,
        float: Float,
        fma: Fma,
    },
    Data {
        id: DataId,
        contents: DataDescription,
    },
}

/// The shared state.
pub(crate) struct Unit<'m> {
    pub(crate) module: &'m SpirvModule,
    pub(crate) arch: ArchId,
    /// The type of a word.
    pub(crate) word: ir::Type,
    /// The declarations; nothing is compiled in it.
    pub(crate) declarations: Module,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) sources: SourceMap,
    /// The numbers of source lines among those places.
    lines: HashMap<u32, SourceLoc>,
    pub(crate) prints: Vec<PrintSite>,
    /// Whether anything about work-groups is read from the argument block.
    pub(crate) uses_groups: bool,
    pub(crate) group_arrays: Vec<GroupArray>,
    /// Words of the argument block that the kernel's arguments take.
    pub(crate) argument_words: u32,
    group_offsets: HashMap<Id, u32>,
    /// Where the blocks among them are.
    group_blocks: Option<u32>,
    scratch: Option<u32>,
    data: HashMap<Id, DataId>,
    functions: HashMap<Id, FuncId>,
    /// Declared functions whose bodies are not translated yet.
    pub(crate) pending: Vec<Id>,
    math: HashMap<(Math, Float), FuncId>,
    variables: HashMap<Id, Rc<Variables>>,
    tails: HashMap<Id, Rc<Tails>>,
    recursive: HashMap<Id, bool>,
    inlined: usize,
}

impl<'m> Unit<'m> {
    pub(crate) fn new(module: &'m SpirvModule, arch: ArchId, argument_words: u32) -> Unit<'m> {
        Unit {
            module,
            arch,
            word: word_type(arch),
            declarations: Module::new(arch, CompileOptions::default()),
            definitions: Vec::new(),
            sources: SourceMap::new(),
            lines: HashMap::new(),
            prints: Vec::new(),
            uses_groups: false,
            group_arrays: Vec::new(),
            argument_words,
            group_offsets: HashMap::new(),
            group_blocks: None,
            scratch: None,
            data: HashMap::new(),
            functions: HashMap::new(),
            pending: Vec::new(),
            math: HashMap::new(),
            variables: HashMap::new(),
            tails: HashMap::new(),
            recursive: HashMap::new(),
            inlined: 0,
        }
    }

    /// Whether the machine computes a product and a sum with one rounding.
    pub(crate) fn fma(&self) -> Fma {
        if self.arch.has_extension() { Fma::Fast } else { Fma::Slow }
    }

    /// The number of an instruction's place.
    pub(crate) fn location(&mut self, at: usize) -> SourceLoc {
        let module = self.module;
        let Some(line) = module.code.line_of(at) else {
            return self.sources.intern(module.source_place(at));
        };
        let sources = &mut self.sources;
        *self.lines.entry(line).or_insert_with(|| sources.intern(module.source_place(at)))
    }

    /// The alignment of a variable of type `ty`: that of the type, or a larger one that the variable is decorated with.
    pub(crate) fn alignment(&self, variable: Id, ty: Id) -> Result<u64> {
        let natural = self.module.types.get(ty)?.align;
        let own = self.module.decorations.number(variable, Decoration::Alignment).unwrap_or(1);
        if !own.is_power_of_two() {
            return Err(SpirvErrorKind::malformed(format!("an alignment to {own} bytes")));
        }
        let (given, limit) = (u64::from(own), MAX_ALIGN);
        if given > limit {
            let what = "bytes that a variable is aligned to";
            return Err(SpirvErrorKind::TooMany { what, given, limit });
        }
        Ok(natural.max(given))
    }

    /// The alignment in the stack of a function's variable or parameter: a word's at most, which is all that accesses want,
    /// unless the address may be seen as a number.
    pub(crate) fn stack_alignment(&self, variables: &Variables, id: Id, ty: Id) -> Result<u64> {
        let align = self.alignment(id, ty)?;
        let word = self.word.bytes().into();
        Ok(if variables.observed.contains(&id) { align } else { align.min(word) })
    }

    /// The offset of a variable in the memory of the work-group.
    pub(crate) fn group_offset(&mut self, variable: Id) -> Result<u32> {
        if let Some(&offset) = self.group_offsets.get(&variable) {
            return Ok(offset);
        }
        let ty = self.module.globals[&variable].ty;
        if self.module.decorations.has(ty, Decoration::Block) {
            return self.group_blocks();
        }
        let (size, align) = (self.module.types.get(ty)?.size, self.alignment(variable, ty)?);
        // clang writes the kernel before it.
        let name = self.module.decorations.name(variable);
        let name = name.map(|name| name.split_once('.').map_or(name, |(_, own)| own));
        let offset = self.group_array(name, size, align)?;
        self.group_offsets.insert(variable, offset);
        Ok(offset)
    }

    /// The offset of the memory that all blocks of the work-group are (SPV_KHR_workgroup_memory_explicit_layout).
    fn group_blocks(&mut self) -> Result<u32> {
        if let Some(offset) = self.group_blocks {
            return Ok(offset);
        }
        let module = self.module;
        let (mut size, mut align) = (0, 1);
        for global in module.globals.values() {
            let is_block = module.decorations.has(global.ty, Decoration::Block);
            if global.class == StorageClass::Workgroup && is_block {
                let found = module.types.get(global.ty)?;
                (size, align) = (found.size.max(size), found.align.max(align));
            }
        }
        let offset = self.group_array(None, size, align)?;
        self.group_blocks = Some(offset);
        Ok(offset)
    }

    /// The offset of memory in which the work-items of a group exchange a value of 8 bytes each.
    pub(crate) fn scratch(&mut self) -> Result<u32> {
        if let Some(offset) = self.scratch {
            return Ok(offset);
        }
        let items = u64::from(self.arch.lanes()) * u64::from(self.arch.warps());
        let offset = self.group_array(None, items * 8, 8)?;
        self.scratch = Some(offset);
        Ok(offset)
    }

    fn group_array(&mut self, name: Option<&str>, size: u64, align: u64) -> Result<u32> {
        let end = self.group_arrays.last().map_or(0, |array| u64::from(array.bytes.end));
        let start = end.next_multiple_of(align);
        let (given, limit) = (start + size, u64::from(harp_jit::MAX_GROUP_BYTES));
        let Some(end) = u32::try_from(given).ok().filter(|_| given <= limit) else {
            let what = "bytes of memory of a work-group";
            return Err(SpirvErrorKind::TooMany { what, given, limit });
        };
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.group_arrays.push(GroupArray { name, bytes: start as u32..end });
        Ok(start as u32)
    }

    /// The function that computes `math`.
    pub(crate) fn math(&mut self, math: Math, float: Float) -> Result<FuncId> {
        if let Some(&function) = self.math.get(&(math, float)) {
            return Ok(function);
        }
        let name = format!("{}.{}", math.name(), float.ty());
        let signature = math.signature(float);
        let id = self.declarations.declare_function(&name, Linkage::Local, &signature)?;
        self.definitions.push(Definition::Math { id, math, float, fma: self.fma() });
        self.math.insert((math, float), id);
        Ok(id)
    }

    /// The data that a variable of the module is.
    pub(crate) fn data(&mut self, variable: Id) -> Result<DataId> {
        if let Some(&data) = self.data.get(&variable) {
            return Ok(data);
        }
        let module = self.module;
        let Global { ty, class, initializer, .. } = module.globals[&variable];
        let access = match class {
            StorageClass::UniformConstant => DataAccess::ReadOnly,
            _ => DataAccess::ReadWrite,
        };
        let name = format!("{}.{variable}", module.decorations.name(variable).unwrap_or("data"));
        let data = self.declarations.declare_data(&name, Linkage::Local, access)?;
        self.data.insert(variable, data);
        let align = self.alignment(variable, ty)?;
        self.define_data(data, ty, initializer, align)?;
        Ok(data)
    }

    /// Data with the value of a constant.
    pub(crate) fn constant_data(&mut self, constant: Id) -> Result<DataId> {
        if let Some(&data) = self.data.get(&constant) {
            return Ok(data);
        }
        let name = format!("constant.{constant}");
        let data = self.declarations.declare_data(&name, Linkage::Local, DataAccess::ReadOnly)?;
        self.data.insert(constant, data);
        let ty = self.module.constants.ty(constant)?;
        let align = self.module.types.get(ty)?.align;
        self.define_data(data, ty, Some(constant), align)?;
        Ok(data)
    }

    fn define_data(
        &mut self,
        data: DataId,
        ty: Id,
        initializer: Option<Id>,
        align: u64,
    ) -> Result<()> {
        let module = self.module;
        let found = module.types.get(ty)?;
        let mut bytes = vec![0; found.size as usize];
        let mut addresses = Vec::new();
        if let Some(initializer) = initializer {
            let scalars = module.constants.scalars(initializer, &module.types)?;
            let leaves = module.types.all_leaves(ty, self.word)?;
            for (&(at, ty), scalar) in leaves.iter().zip(scalars) {
                let at = at as usize;
                match scalar {
                    Scalar::Bits(bits) => {
                        let own = &bits.to_le_bytes()[..ty.bytes() as usize];
                        bytes[at..at + own.len()].copy_from_slice(own);
                    }
                    Scalar::Address { variable, offset } => addresses.push((at, variable, offset)),
                }
            }
        }
        let mut contents = DataDescription::new();
        contents.define(bytes.into_boxed_slice());
        // What LLVM fills memory with is an array of bytes, of which copies say the alignment of where they go to.
        let usual = found.size.next_power_of_two().min(8);
        contents.set_align(align.max(usual));
        for (at, target, offset) in addresses {
            let target = self.addressable(target)?;
            let target = self.declarations.declare_data_in_data(target, &mut contents);
            contents.write_data_addr(at as u32, target, offset);
        }
        self.definitions.push(Definition::Data { id: data, contents });
        Ok(())
    }

    /// The data of a variable whose address is stored in data.
    fn addressable(&mut self, variable: Id) -> Result<DataId> {
        let global = &self.module.globals[&variable];
        if self.module.is_data(global) {
            return self.data(variable);
        }
        let what = format!("the address of a variable in {:?} as a constant", global.class);
        Err(SpirvErrorKind::unsupported(what))
    }

    /// The function that a SPIR-V function becomes, if it is called.
    pub(crate) fn function(&mut self, function: &Function) -> Result<FuncId> {
        if let Some(&id) = self.functions.get(&function.id) {
            return Ok(id);
        }
        let name = self.function_name(function.id);
        let signature = self.signature(function)?;
        let id = self.declarations.declare_function(&name, Linkage::Local, &signature)?;
        self.functions.insert(function.id, id);
        self.pending.push(function.id);
        Ok(id)
    }

    pub(crate) fn function_name(&self, function: Id) -> String {
        format!("{}.{function}", self.module.decorations.name(function).unwrap_or("function"))
    }

    /// The signature of a function: the address of the argument block, the work-item's position in the first dimension, which
    /// only kernels know by themselves, then the scalars of its parameters.
    pub(crate) fn signature(&self, function: &Function) -> Result<Signature> {
        let mut signature = self.declarations.make_signature();
        signature.params.extend([AbiParam::new(self.word); 2]);
        let types = &self.module.types;
        for &(_, ty) in &function.params {
            let leaves = types.leaves(ty, None, self.word)?;
            signature.params.extend(leaves.iter().map(|&(_, ty)| AbiParam::new(ty)));
        }
        if !matches!(types.kind(function.result)?, crate::types::Kind::Void) {
            let leaves = types.leaves(function.result, None, self.word)?;
            signature.returns.extend(leaves.iter().map(|&(_, ty)| AbiParam::new(ty)));
        }
        Ok(signature)
    }

    /// Whether a function's code is to be put into its caller, which it then is.
    pub(crate) fn inline(&mut self, function: &Function) -> Result<bool> {
        if self.is_recursive(function.id) {
            return Ok(false);
        }
        let given = self.inlined + function.len();
        if given <= MAX_INLINED {
            self.inlined = given;
            return Ok(true);
        }
        if self.module.addressing == crate::module::Addressing::Logical {
            // Its functions use variables that belong to the work-item.
            let (given, limit) = (given as u64, MAX_INLINED as u64);
            let what = "instructions of all functions, where they are called";
            return Err(SpirvErrorKind::TooMany { what, given, limit });
        }
        Ok(false)
    }

    fn is_recursive(&mut self, function: Id) -> bool {
        if let Some(&known) = self.recursive.get(&function) {
            return known;
        }
        let module = self.module;
        let mut callees = module.callees(function);
        let recursive = callees.any(|callee| module.reachable(callee).contains(&function));
        self.recursive.insert(function, recursive);
        recursive
    }

    /// The blocks of a function that leave loops to which they belong.
    pub(crate) fn tails(&mut self, function: &Function) -> Rc<Tails> {
        let module = self.module;
        let entry = self.tails.entry(function.id);
        Rc::clone(entry.or_insert_with(|| Rc::new(tails(module, function))))
    }

    /// What a function does with its variables.
    pub(crate) fn variables(&mut self, function: &Function) -> Rc<Variables> {
        let module = self.module;
        let entry = self.variables.entry(function.id);
        Rc::clone(entry.or_insert_with(|| Rc::new(Variables::of(module, function))))
    }
}

/// The type of a machine's words.
pub(crate) fn word_type(arch: ArchId) -> ir::Type {
    match arch.word() {
        harp_jit::WordSize::Four => ir::types::I32,
        harp_jit::WordSize::Eight => ir::types::I64,
    }
}
