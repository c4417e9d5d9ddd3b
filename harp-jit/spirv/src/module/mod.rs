//! A module as it is parsed: everything but the bodies of functions, which are looked at when a kernel is built.

use harp_jit::SourcePlace;
use hashbrown::HashMap;
use rspirv::spirv::{AddressingModel, Decoration, ExecutionModel, Op, StorageClass};
use smallvec::SmallVec;

use crate::constants::{Constants, Scalar};
use crate::decorations::Decorations;
use crate::error::{InstructionPlace, Result, SpirvError, SpirvErrorKind};
use crate::fold;
use crate::reader::{Code, Declares, Id, Instruction, declares, is_terminator, op_name};
use crate::sets::InstructionSet;
use crate::types::{Kind, Types};

mod interface;
mod modes;
mod reach;
mod resources;

pub use interface::{EntryParam, EntryParamKind, EntryPoint, SpecConstant};
pub(crate) use interface::{Target, words};

/// How a module addresses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressing {
    /// Pointers have no size.
    Logical,
    /// Pointers are integers of so many bytes.
    Physical(u8),
}

/// A variable outside of functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    /// The type of its contents.
    pub(crate) ty: Id,
    pub(crate) class: StorageClass,
    pub(crate) initializer: Option<Id>,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) id: Id,
    pub(crate) result: Id,
    /// The parameters with their types.
    pub(crate) params: Vec<(Id, Id)>,
    /// The blocks in order; none if the function is imported.
    pub(crate) blocks: Vec<Block>,
    /// The functions that it calls, in the order of the calls.
    pub(crate) callees: Vec<Id>,
    /// Whether it asks how long the array at the end of a buffer is.
    pub(crate) asks_for_lengths: bool,
    /// The index of its first instruction.
    pub(crate) at: usize,
}

impl Function {
    /// The number of instructions in its blocks.
    pub(crate) fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.end - block.start).sum()
    }
}

/// A block: its instructions are those with the indices from `start` to the terminator, which is the last one before
/// `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) label: Id,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A SPIR-V module: kernels, and the functions and data that they use.
///
/// ```
/// use harp_spirv::SpirvModule;
///
/// let error = SpirvModule::parse(b"kernel void f(void) {}").unwrap_err();
/// assert!(error.to_string().starts_with("this is no SPIR-V module: it does not begin with the magic number"));
/// ```
#[derive(Clone, Debug)]
pub struct SpirvModule {
    pub(crate) code: Code,
    pub(crate) addressing: Addressing,
    pub(crate) decorations: Decorations,
    pub(crate) types: Types,
    pub(crate) constants: Constants,
    pub(crate) sets: HashMap<Id, InstructionSet>,
    pub(crate) globals: HashMap<Id, Global>,
    pub(crate) functions: HashMap<Id, Function>,
    pub(crate) entry_points: Vec<EntryPoint>,
    pub(crate) spec_constants: Vec<SpecConstant>,
    /// Whether functions keep their variables in memory, also those that need none.
    pub(crate) keeps_variables: bool,
    /// Whether launches of its kernels may add something to the positions of work-items.
    pub(crate) takes_offset: bool,
}

impl SpirvModule {
    /// Reads a module: its declarations, types, constants and the outlines of its functions.
    ///
    /// # Errors
    ///
    /// The first instruction that is malformed, or of a kind that is not supported anywhere in a module. What functions
    /// do is checked when a kernel is built.
    pub fn parse(bytes: &[u8]) -> std::result::Result<SpirvModule, SpirvError> {
        SpirvModule::load(bytes, &[])
    }

    /// Reads a module, and gives specialization constants values: `SpecId` and the bits of the value, of which as many
    /// count as the constant's type has.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and if the module has no such specialization constant.
    pub fn parse_specialized(
        bytes: &[u8],
        values: &[(u32, u64)],
    ) -> std::result::Result<SpirvModule, SpirvError> {
        let module = SpirvModule::load(bytes, values)?;
        for &(id, _) in values {
            if !module.spec_constants.iter().any(|constant| constant.id == id) {
                return Err(SpirvError { kind: SpirvErrorKind::NoSpecConstant { id }, at: None });
            }
        }
        Ok(module)
    }

    /// The module with the variables of functions in memory, as it says, but for pointers. So checked launches find what is read
    /// of a variable before it is written. Otherwise variables need memory only where it is not known which of their parts are
    /// accessed.
    pub fn with_variables_in_memory(self) -> SpirvModule {
        SpirvModule { keeps_variables: true, ..self }
    }

    /// The module with kernels that can be launched with a global offset (OpenCL's `global_work_offset`): it is added to
    /// `get_global_id`, and is what `get_global_offset` gives. Otherwise it is 0, and nothing is added. Shaders have no such
    /// offset.
    pub fn with_global_offset(self) -> SpirvModule {
        let takes_offset = matches!(self.addressing, Addressing::Physical(_));
        SpirvModule { takes_offset, ..self }
    }

    /// The kernels of the module, in the order of its entry points.
    pub fn entry_points(&self) -> &[EntryPoint] {
        &self.entry_points
    }

    /// The constants that can be given other values when a module is read.
    pub fn spec_constants(&self) -> &[SpecConstant] {
        &self.spec_constants
    }

    fn load(bytes: &[u8], values: &[(u32, u64)]) -> std::result::Result<SpirvModule, SpirvError> {
        let code = Code::read(bytes).map_err(|(kind, word)| {
            let instruction = "an instruction".to_owned();
            let at = word.map(|word| InstructionPlace {
                instruction,
                id: None,
                name: None,
                word,
                source: None,
            });
            SpirvError { kind, at: at.map(Box::new) }
        })?;
        let addressing = addressing(&code);
        let mut module = SpirvModule {
            addressing,
            decorations: Decorations::default(),
            types: Types::new(match addressing {
                Addressing::Logical => None,
                Addressing::Physical(bytes) => Some(bytes),
            }),
            code,
            constants: Constants::default(),
            sets: HashMap::new(),
            globals: HashMap::new(),
            functions: HashMap::new(),
            entry_points: Vec::new(),
            spec_constants: Vec::new(),
            keeps_variables: false,
            takes_offset: false,
        };
        let (mut entry_points, mut modes) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < module.code.len() {
            let op = module.code.get(at).op;
            match op {
                Op::EntryPoint => entry_points.push(at),
                Op::ExecutionMode | Op::ExecutionModeId => modes.push(at),
                _ if module.is_local_size(at) => modes.push(at),
                _ => {}
            }
            let next = match op {
                Op::Function => module.function(at),
                _ => module.declaration(at, values).map(|()| at + 1),
            };
            at = next.map_err(|kind| module.error(kind, at))?;
        }
        module.find_entry_points(&entry_points, &modes)?;
        Ok(module)
    }

    /// An error at the instruction with an index.
    pub(crate) fn error(&self, kind: SpirvErrorKind, at: usize) -> SpirvError {
        SpirvError { kind, at: Some(Box::new(self.place(at))) }
    }

    fn place(&self, at: usize) -> InstructionPlace {
        let Instruction { op, id, .. } = self.code.get(at);
        InstructionPlace {
            instruction: op_name(op),
            id: (id != 0).then_some(id),
            name: self.decorations.name(id).map(str::to_owned),
            word: self.code.word_of(at),
            source: self.code.place(at),
        }
    }

    /// Where an instruction comes from: its source place, or, without one, its offset in the module.
    pub(crate) fn source_place(&self, at: usize) -> SourcePlace {
        let unknown = || SourcePlace {
            file: "SPIR-V word".into(),
            line: self.code.word_of(at) as u32,
            column: 1,
        };
        self.code.place(at).unwrap_or_else(unknown)
    }

    /// Takes in an instruction outside of functions.
    fn declaration(&mut self, at: usize, values: &[(u32, u64)]) -> Result<()> {
        let inst = self.code.get(at);
        match inst.op {
            Op::ExtInstImport => {
                let (name, _) = inst.string(0)?;
                let set = match name.as_str() {
                    "OpenCL.std" => InstructionSet::OpenCl,
                    "GLSL.std.450" => InstructionSet::Glsl,
                    _ => {
                        let what = format!("the instruction set `{name}`");
                        return Err(SpirvErrorKind::unsupported(what));
                    }
                };
                self.sets.insert(inst.id, set);
                Ok(())
            }
            Op::Variable => self.global(at),
            Op::TypeForwardPointer => self.types.declare_pointer(inst, &self.decorations),
            op if declares(op) == Declares::Type => {
                let constants = &self.constants;
                self.types.define(inst, &self.decorations, |types, id| constants.length(id, types))
            }
            op if declares(op) == Declares::Constant => {
                let spec = self.decorations.number(inst.id, Decoration::SpecId);
                let given = spec.and_then(|spec| values.iter().find(|(id, _)| *id == spec));
                let given = given.map(|&(_, value)| value);
                match inst.op {
                    Op::SpecConstantOp => {
                        let scalars = fold::evaluate(inst, &self.types, &self.constants);
                        self.constants.define_result(inst, &self.types, scalars)?;
                    }
                    _ => self.constants.define(inst, &self.types, given)?,
                }
                if let Some(id) = spec
                    && let Scalar::Bits(bits) = self.constants.scalar(inst.id, &self.types)?
                    && let Some(ty) = self.param_type(inst.ty)?
                {
                    let name = self.decorations.name(inst.id).map(str::to_owned);
                    self.spec_constants.push(SpecConstant { id, name, ty, bits });
                }
                Ok(())
            }
            op if is_ignored(op) => self.decorations.take(inst),
            op if is_terminator(op) || inst.id != 0 => {
                Err(SpirvErrorKind::malformed("an instruction outside of functions"))
            }
            op => Err(SpirvErrorKind::unsupported(op_name(op))),
        }
    }

    fn global(&mut self, at: usize) -> Result<()> {
        let inst = self.code.get(at);
        let (class, ty) = self.types.pointer(inst.ty)?;
        let initializer = inst.operands.get(1).copied();
        if let Some(initializer) = initializer
            && self.constants.ty(initializer)? != ty
        {
            return Err(SpirvErrorKind::malformed("the initializer is of another type"));
        }
        if self.constants.contains(inst.id) {
            return Err(SpirvErrorKind::malformed("this id is defined twice"));
        }
        self.constants.define_variable(inst.id, inst.ty);
        self.globals.insert(inst.id, Global { ty, class, initializer });
        Ok(())
    }

    /// Whether a variable is data of the module. LLVM may leave the initial values of a work-item's variables in a private
    /// variable of the module, which has the class of those in functions then.
    pub(crate) fn is_data(&self, variable: &Global) -> bool {
        match variable.class {
            StorageClass::UniformConstant | StorageClass::CrossWorkgroup => true,
            StorageClass::Function => {
                self.addressing != Addressing::Logical && variable.initializer.is_some()
            }
            _ => false,
        }
    }

    /// The labels that the end of a block leads to.
    pub(crate) fn successors(&self, block: &Block) -> SmallVec<[Id; 2]> {
        let inst = self.code.get(block.end - 1);
        match inst.op {
            Op::Branch => inst.operands[..1].into(),
            Op::BranchConditional => inst.operands[1..3].into(),
            Op::Switch => {
                let cases = inst.rest(2).chunks_exact(self.case_words(inst) + 1);
                let labels = cases.filter_map(|case| case.last().copied());
                inst.operands[1..2].iter().copied().chain(labels).collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// The numbers of a function's blocks, and the successors of each.
    pub(crate) fn numbered(
        &self,
        function: &Function,
    ) -> (HashMap<Id, usize>, Vec<SmallVec<[usize; 2]>>) {
        let labels = function.blocks.iter().map(|block| block.label);
        let numbers: HashMap<Id, usize> = labels.zip(0..).collect();
        let number = |label| numbers.get(&label).copied();
        let succs = function.blocks.iter().map(|block| self.successors(block));
        let succs = succs.map(|labels| labels.into_iter().filter_map(number).collect()).collect();
        (numbers, succs)
    }

    /// Words of a number in the cases of a switch.
    pub(crate) fn case_words(&self, switch: Instruction<'_>) -> usize {
        let selector = switch.operands[0];
        let kind = self.code.result_type(selector).and_then(|ty| self.types.kind(ty).ok());
        if matches!(kind, Some(Kind::Int { bits: 64, .. })) { 2 } else { 1 }
    }

    /// Takes in the outline of a function, and returns the index of the instruction behind it.
    fn function(&mut self, start: usize) -> Result<usize> {
        let inst = self.code.get(start);
        let Kind::Function { result, params } = self.types.kind(inst.word(1)?)? else {
            return Err(SpirvErrorKind::malformed("the function's type is no function type"));
        };
        if *result != inst.ty {
            return Err(SpirvErrorKind::malformed("the function's type has another result"));
        }
        let mut function = Function {
            id: inst.id,
            result: *result,
            params: Vec::new(),
            blocks: Vec::new(),
            callees: Vec::new(),
            asks_for_lengths: false,
            at: start,
        };
        let expected = params.clone();
        let mut at = start + 1;
        let mut open: Option<Block> = None;
        loop {
            if at >= self.code.len() {
                return Err(SpirvErrorKind::malformed("the function has no end"));
            }
            let inst = self.code.get(at);
            match (inst.op, &mut open) {
                (Op::FunctionEnd, None) => break,
                (Op::FunctionParameter, None) if function.blocks.is_empty() => {
                    function.params.push((inst.id, inst.ty));
                }
                (Op::Label, None) => {
                    open = Some(Block { label: inst.id, start: at + 1, end: at + 1 });
                }
                (Op::FunctionEnd | Op::Function | Op::FunctionParameter | Op::Label, _) => {
                    return Err(SpirvErrorKind::malformed("a block or function does not end"));
                }
                (op, Some(block)) if is_terminator(op) => {
                    block.end = at + 1;
                    function.blocks.push(*block);
                    open = None;
                }
                (_, None) => {
                    return Err(SpirvErrorKind::malformed("an instruction outside of blocks"));
                }
                (Op::FunctionCall, Some(_)) => function.callees.push(inst.operands[0]),
                (Op::ArrayLength, Some(_)) => function.asks_for_lengths = true,
                (_, Some(_)) => {}
            }
            at += 1;
        }
        if !function.params.iter().map(|&(_, ty)| ty).eq(expected.iter().copied()) {
            return Err(SpirvErrorKind::malformed("the parameters are not those of the type"));
        }
        if self.functions.insert(function.id, function).is_some() {
            return Err(SpirvErrorKind::malformed("this id is defined twice"));
        }
        Ok(at + 1)
    }

    /// Finds what the kernels of the entry points take. The indices are those of the entry points, and of what says how they run.
    fn find_entry_points(
        &mut self,
        entry_points: &[usize],
        modes: &[usize],
    ) -> std::result::Result<(), SpirvError> {
        for &at in entry_points {
            let entry = self.entry_point(self.code.get(at)).map_err(|kind| self.error(kind, at))?;
            self.entry_points.push(entry);
        }
        for &at in modes {
            self.take_mode(at).map_err(|kind| self.error(kind, at))?;
        }
        Ok(())
    }

    fn entry_point(&self, inst: Instruction<'_>) -> Result<EntryPoint> {
        let model = inst.enumerant(0, "execution model", ExecutionModel::from_u32)?;
        let function = inst.word(1)?;
        let (name, _) = inst.string(2)?;
        if !self.functions.contains_key(&function) {
            let role = "the function of an entry point";
            return Err(SpirvErrorKind::Undefined { id: function, role });
        }
        Ok(EntryPoint::new(self, function, name, model))
    }
}

/// The addressing model of a module; physical addresses of 4 bytes are as good as any if it says nothing.
fn addressing(code: &Code) -> Addressing {
    let mut insts = (0..code.len()).map(|at| code.get(at));
    let model = insts.find(|inst| inst.op == Op::MemoryModel);
    match model.and_then(|inst| AddressingModel::from_u32(*inst.operands.first()?)) {
        Some(AddressingModel::Physical64) => Addressing::Physical(8),
        Some(AddressingModel::Physical32) => Addressing::Physical(4),
        _ => Addressing::Logical,
    }
}

/// Whether an instruction outside of functions has no effect beyond names and decorations.
fn is_ignored(op: Op) -> bool {
    matches!(
        op,
        Op::Nop
            | Op::Capability
            | Op::Extension
            | Op::MemoryModel
            | Op::EntryPoint
            | Op::ExecutionMode
            | Op::ExecutionModeId
            | Op::Source
            | Op::SourceContinued
            | Op::SourceExtension
            | Op::ModuleProcessed
            | Op::Name
            | Op::MemberName
            | Op::Decorate
            | Op::DecorateId
            | Op::DecorateString
            | Op::MemberDecorate
            | Op::MemberDecorateString
            | Op::DecorationGroup
            | Op::GroupDecorate
            | Op::GroupMemberDecorate
            | Op::AliasDomainDeclINTEL
            | Op::AliasScopeDeclINTEL
            | Op::AliasScopeListDeclINTEL
    )
}
