//! The translation of functions: blocks, phis, calls and the ends of blocks.
//!
//! A block of SPIR-V becomes one of CLIF, whose parameters are the scalars of its phis. The code of a function is put into
//! its callers, since unoptimized modules have small functions that take pointers to variables; only recursive functions
//! are called, and those that would make the kernel too large.

use std::ops::Range;
use std::rc::Rc;

use cranelift_codegen::ir::{self, Block, InstBuilder, Type, types};
use cranelift_frontend::FunctionBuilder;
use hashbrown::HashMap;
use rspirv::spirv::{FunctionParameterAttribute, Op};
use smallvec::SmallVec;

use crate::constants::Scalar;
use crate::error::{Result, SpirvErrorKind};
use crate::escape::Variables;
use crate::module::{self, Function, SpirvModule};
use crate::prologue::{GLOBAL_ID, Prologue};
use crate::reader::{Id, Instruction, is_terminator};
use crate::tails::{MAX_NESTED, Tails};
use crate::types::Kind;
use crate::unit::Unit;
use crate::values::{Def, Parts, Val};

mod terminators;
mod variables;

use terminators::ordered;

/// The most values for which there is room at first. A function may be refused at its first instruction.
const MAX_RESERVED: usize = 1 << 12;

/// The translation of one function of CLIF.
pub(crate) struct Translator<'f, 'u, 'm> {
    pub(crate) unit: &'u mut Unit<'m>,
    pub(crate) module: &'m SpirvModule,
    pub(crate) b: FunctionBuilder<'f>,
    pub(crate) prologue: Prologue,
    /// The function whose instructions are translated.
    pub(crate) frame: Frame,
    /// What variables of the module stand for in this function.
    pub(crate) globals: HashMap<Id, Def>,
    /// The words of the argument block with the sizes of buffers, by their addresses.
    pub(crate) sizes: HashMap<ir::Value, u32>,
    /// How many functions the current one was put into.
    depth: usize,
    /// The index of the instruction that is translated, for errors.
    pub(crate) at: usize,
}

/// A function, each time that its code is used.
#[derive(Default)]
pub(crate) struct Frame {
    values: HashMap<Id, Def>,
    blocks: HashMap<Id, Target>,
    variables: Rc<Variables>,
    tails: Rc<Tails>,
    /// The block that is translated.
    label: Id,
    /// Where a return goes to, unless it is one.
    exit: Option<Block>,
    /// Whether all that the function does is one call.
    is_call: bool,
}

/// A block that can be branched to.
#[derive(Clone)]
struct Target {
    block: Block,
    /// The indices of its phis, which it begins with.
    phis: Range<usize>,
}

impl<'m> Translator<'_, '_, 'm> {
    pub(crate) fn new<'f, 'u>(
        unit: &'u mut Unit<'m>,
        b: FunctionBuilder<'f>,
        prologue: Prologue,
    ) -> Translator<'f, 'u, 'm> {
        let module = unit.module;
        let (frame, globals) = (Frame::default(), HashMap::new());
        let sizes = HashMap::new();
        Translator { unit, module, b, prologue, frame, globals, sizes, depth: 0, at: 0 }
    }

    /// Translates a function at the current place; returns go to `exit`, if there is one.
    pub(crate) fn body(
        &mut self,
        function: &'m Function,
        args: Vec<Def>,
        exit: Option<Block>,
    ) -> Result<()> {
        if function.blocks.is_empty() {
            let name = self.module.decorations.name(function.id).unwrap_or("?");
            let what = format!("the function `{name}`, which is imported,");
            return Err(SpirvErrorKind::unsupported(what));
        }
        let (variables, tails) = (self.unit.variables(function), self.unit.tails(function));
        let params = function.params.iter().map(|&(id, _)| id);
        let mut values = HashMap::with_capacity(function.len().min(MAX_RESERVED));
        values.extend(params.zip(args));
        let is_call = matches!(&function.blocks[..], [block] if block.end - block.start <= 2);
        let (blocks, label) = (HashMap::new(), 0);
        let inner = Frame { values, blocks, variables, tails, label, exit, is_call };
        let outer = std::mem::replace(&mut self.frame, inner);
        let outer_at = self.at;
        self.depth += 1;
        if self.depth > MAX_NESTED {
            let (given, limit) = (self.depth as u64, MAX_NESTED as u64);
            return Err(SpirvErrorKind::TooMany {
                what: "calls inside of each other",
                given,
                limit,
            });
        }
        let blocks = ordered(self.module, function);
        self.outline(&blocks)?;
        for (number, block) in blocks.into_iter().enumerate() {
            if number > 0 {
                let Target { block: target, phis } = self.frame.blocks[&block.label].clone();
                self.b.switch_to_block(target);
                self.bind_phis(target, phis)?;
            }
            self.frame.label = block.label;
            self.block(block)?;
        }
        self.depth -= 1;
        self.frame = outer;
        self.at = outer_at;
        Ok(())
    }

    /// Makes the blocks of a function. Its first one goes on in the current block, as no branch leads there.
    fn outline(&mut self, blocks: &[&module::Block]) -> Result<()> {
        for (number, block) in blocks.iter().enumerate() {
            let target = self.b.create_block();
            // Translators of LLVM's code put some merge instructions first.
            let is_merge = |&at: &usize| {
                matches!(self.module.code.get(at).op, Op::LoopMerge | Op::SelectionMerge)
            };
            let start = block.start + (block.start..block.end).take_while(is_merge).count();
            let mut phis = start..start;
            for at in start..block.end {
                self.at = at;
                let inst = self.module.code.get(at);
                if inst.op != Op::Phi {
                    break;
                }
                for (_, ty) in self.module.types.leaves(inst.ty, None, self.unit.word)? {
                    self.b.append_block_param(target, ty);
                }
                phis.end = at + 1;
            }
            if number == 0 {
                if !phis.is_empty() {
                    return Err(SpirvErrorKind::malformed("a phi in a function's first block"));
                }
                continue;
            }
            if self.frame.blocks.insert(block.label, Target { block: target, phis }).is_some() {
                return Err(SpirvErrorKind::malformed("a label is defined twice"));
            }
        }
        Ok(())
    }

    fn bind_phis(&mut self, block: Block, phis: Range<usize>) -> Result<()> {
        let mut params = Parts::from_slice(self.b.block_params(block)).into_iter();
        for at in phis {
            self.at = at;
            let inst = self.module.code.get(at);
            let count = self.module.types.get(inst.ty)?.leaves as usize;
            let parts: Parts = params.by_ref().take(count).collect();
            self.define(inst.id, Def::Value(Val::new(inst.ty, parts)))?;
        }
        Ok(())
    }

    fn block(&mut self, block: &module::Block) -> Result<()> {
        for at in block.start..block.end {
            self.at = at;
            let inst = self.module.code.get(at);
            let location = self.unit.location(at);
            self.b.set_srcloc(location);
            match inst.op {
                Op::Phi if self.frame.values.contains_key(&inst.id) => {}
                Op::Phi => {
                    return Err(SpirvErrorKind::malformed("a phi behind other instructions"));
                }
                op if is_terminator(op) => self.terminator(inst)?,
                Op::Variable => self.variable(inst)?,
                Op::FunctionCall => self.call(inst)?,
                _ => self.instruction(inst)?,
            }
        }
        Ok(())
    }

    /// Gives an id its meaning.
    pub(crate) fn define(&mut self, id: Id, def: Def) -> Result<()> {
        if self.frame.values.insert(id, def).is_some() || self.module.constants.contains(id) {
            return Err(SpirvErrorKind::malformed("this id is defined twice"));
        }
        Ok(())
    }

    /// Gives the result of an instruction its value.
    pub(crate) fn set(&mut self, inst: Instruction<'_>, parts: Parts) -> Result<()> {
        debug_assert_eq!(
            Ok(parts.len() as u64),
            self.module.types.get(inst.ty).map(|ty| ty.leaves)
        );
        self.define(inst.id, Def::Value(Val::new(inst.ty, parts)))
    }

    /// What an id stands for.
    pub(crate) fn def(&mut self, id: Id) -> Result<Def> {
        if let Some(def) = self.frame.values.get(&id) {
            return Ok(def.clone());
        }
        if self.module.globals.contains_key(&id) {
            return self.global(id);
        }
        if self.module.constants.contains(id) {
            return Ok(Def::Value(self.constant(id)?));
        }
        Err(SpirvErrorKind::Undefined { id, role: "an operand" })
    }

    /// The value of an id.
    pub(crate) fn value(&mut self, id: Id) -> Result<Val> {
        match self.def(id)? {
            Def::Value(value) => Ok(value),
            Def::LoadedBuiltin(place) => self.load_builtin(place),
            Def::Place(_) | Def::Builtin(_) | Def::Buffers(_) | Def::Marker => {
                let given = "a pointer to a variable without an address".to_owned();
                Err(SpirvErrorKind::Mismatch { id, given, expected: "a value".to_owned() })
            }
        }
    }

    /// The value of an id that must be of a type. Translators do not always keep signs apart, or what pointers are to.
    pub(crate) fn value_of(&mut self, id: Id, ty: Id) -> Result<Val> {
        let value = self.value(id)?;
        if !self.module.types.are_alike(value.ty, ty) {
            return Err(self.mismatch(id, value.ty, self.module.types.describe(ty)));
        }
        Ok(Val { ty, ..value })
    }

    /// The single scalar of an id whose type is as `is` says.
    pub(crate) fn scalar(
        &mut self,
        id: Id,
        expected: &str,
        is: impl Fn(&Kind) -> bool,
    ) -> Result<ir::Value> {
        let value = self.value(id)?;
        match (value.parts.as_slice(), is(self.module.types.kind(value.ty)?)) {
            (&[part], true) => Ok(part),
            _ => Err(self.mismatch(id, value.ty, expected.to_owned())),
        }
    }

    /// The value of an integer scalar.
    pub(crate) fn integer(&mut self, id: Id) -> Result<ir::Value> {
        self.scalar(id, "an integer", |kind| matches!(kind, Kind::Int { .. }))
    }

    pub(crate) fn condition(&mut self, id: Id) -> Result<ir::Value> {
        self.scalar(id, "a truth value", |kind| matches!(kind, Kind::Bool))
    }

    pub(crate) fn mismatch(&self, id: Id, given: Id, expected: String) -> SpirvErrorKind {
        SpirvErrorKind::Mismatch { id, given: self.module.types.describe(given), expected }
    }

    /// The scalars of a type.
    pub(crate) fn leaf_types(&self, ty: Id) -> Result<SmallVec<[Type; 4]>> {
        let leaves = self.module.types.leaves(ty, None, self.unit.word)?;
        Ok(leaves.into_iter().map(|(_, ty)| ty).collect())
    }

    /// A value whose bits are all zero.
    pub(crate) fn zero(&mut self, ty: Id) -> Result<Val> {
        let leaves = self.leaf_types(ty)?;
        Ok(Val::new(ty, leaves.into_iter().map(|ty| self.bits(ty, 0)).collect()))
    }

    /// A scalar with these bits.
    pub(crate) fn bits(&mut self, ty: Type, bits: u64) -> ir::Value {
        match ty {
            types::F32 => self.b.ins().f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            types::F64 => self.b.ins().f64const(ir::immediates::Ieee64::with_bits(bits)),
            _ => {
                let unused = 64 - ty.bits();
                self.b.ins().iconst(ty, (bits << unused >> unused).cast_signed())
            }
        }
    }

    /// The value of a constant.
    fn constant(&mut self, id: Id) -> Result<Val> {
        let module = self.module;
        let ty = module.constants.ty(id)?;
        let leaves = self.leaf_types(ty)?;
        let scalars = module.constants.scalars(id, &module.types)?;
        let mut parts = Parts::new();
        for (ty, scalar) in leaves.into_iter().zip(scalars) {
            parts.push(match scalar {
                Scalar::Bits(bits) => self.bits(ty, bits),
                Scalar::Address { variable, offset } => {
                    let address = self.global_address(variable)?;
                    self.b.ins().iadd_imm_s(address, offset)
                }
            });
        }
        Ok(Val::new(ty, parts))
    }

    fn call(&mut self, inst: Instruction<'_>) -> Result<()> {
        let callee = inst.word(0)?;
        let module = self.module;
        let undefined = SpirvErrorKind::Undefined { id: callee, role: "a function" };
        let function = module.functions.get(&callee).ok_or(undefined)?;
        let args = inst.rest(1);
        if function.blocks.is_empty() && self.imported(inst)? {
            return Ok(());
        }
        if args.len() != function.params.len() || inst.ty != function.result {
            return Err(SpirvErrorKind::malformed(format!("%{callee} has another type")));
        }
        let is_void = matches!(module.types.kind(function.result)?, Kind::Void);
        let mut defs = Vec::with_capacity(args.len());
        for index in 0..args.len() {
            defs.push(self.passed(function, args, index)?);
        }
        if !self.unit.inline(function)? {
            let position = self.prologue_word(GLOBAL_ID[0]);
            let mut values = vec![self.prologue.argument_block, position];
            for ((def, &arg), &(_, ty)) in defs.into_iter().zip(args).zip(&function.params) {
                values.extend(match def {
                    Def::Value(value) => value.parts,
                    _ => self.value_of(arg, ty)?.parts,
                });
            }
            let id = self.unit.function(function)?;
            let callee = self.unit.declarations.declare_func_in_func(id, self.b.func)?;
            let call = self.b.ins().call(callee, &values);
            let results = Parts::from_slice(self.b.inst_results(call));
            return self.define(inst.id, Def::Value(Val::new(inst.ty, results)));
        }
        let exit = self.b.create_block();
        if !is_void {
            for ty in self.leaf_types(function.result)? {
                self.b.append_block_param(exit, ty);
            }
        }
        self.body(function, defs, Some(exit))?;
        self.b.switch_to_block(exit);
        let results = Parts::from_slice(self.b.block_params(exit));
        self.define(inst.id, Def::Value(Val::new(inst.ty, results)))
    }

    /// What a parameter of a function stands for that is called with `args`. Where it is a pointer to something that is passed by value,
    /// the function gets a copy, as it may change it.
    fn passed(&mut self, function: &Function, args: &[Id], index: usize) -> Result<Def> {
        let (arg, (param, ty)) = (args[index], function.params[index]);
        let from = match self.def(arg)? {
            Def::Value(_) => self.value_of(arg, ty)?,
            other => return Ok(other),
        };
        let module = self.module;
        let by_value = FunctionParameterAttribute::ByVal as u32;
        if !module.decorations.has_attribute(param, by_value) {
            return Ok(Def::Value(from));
        }
        // Translators of LLVM's code make entries of kernels that only hand on what they got.
        let is_own = || module.decorations.has_attribute(arg, by_value);
        let is_given_once = || args.iter().filter(|&&other| other == arg).count() == 1;
        if self.frame.is_call && is_own() && is_given_once() {
            return Ok(Def::Value(from));
        }
        let (_, to) = module.types.pointer(ty)?;
        let variables = self.unit.variables(function);
        let align = self.unit.stack_alignment(&variables, param, to)?;
        let copy = self.slot(param, ty, to, align)?;
        let found = module.types.get(to)?;
        self.copy(copy.parts[0], from.parts[0], found.size, found.align)?;
        Ok(Def::Value(copy))
    }
}
