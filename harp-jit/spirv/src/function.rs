//! The translation of functions: blocks, phis, calls and the ends of blocks.
//!
//! A block of SPIR-V becomes one of CLIF, whose parameters are the scalars of its phis. The code of a function is put into
//! its callers, since unoptimized modules have small functions that take pointers to variables; only recursive functions
//! are called, and those that would make the kernel too large.

use cranelift_codegen::ir::{
    self, Block, BlockArg, InstBuilder, StackSlotData, StackSlotKind, TrapCode, Type, types,
};
use cranelift_frontend::{FunctionBuilder, Switch};
use hashbrown::{HashMap, HashSet};
use rspirv::spirv::{Op, StorageClass};

use crate::constants::Scalar;
use crate::error::{Result, SpirvErrorKind};
use crate::module::{self, Function, SpirvModule};
use crate::prologue::Prologue;
use crate::reader::{Id, Instruction, is_terminator};
use crate::types::Kind;
use crate::unit::Unit;
use crate::values::{BuiltinPlace, Def, Parts, Place, Val};

/// The trap of an `OpUnreachable` that is reached: `user130`.
const UNREACHABLE: TrapCode = TrapCode::unwrap_user(130);

/// The most calls inside of each other whose code is put into the callers.
const MAX_NESTED: usize = 128;

/// The most bytes of a variable in a work-item's stack.
const MAX_SLOT_BYTES: u64 = 1 << 20;

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
    promoted: std::rc::Rc<HashSet<Id>>,
    /// The block that is translated.
    label: Id,
    /// Where a return goes to, unless it is one.
    exit: Option<Block>,
}

/// A block that can be branched to.
#[derive(Clone)]
struct Target {
    block: Block,
    /// The indices of its phis.
    phis: Vec<usize>,
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
        let promoted = self.unit.promoted(function);
        let params = function.params.iter().map(|&(id, _)| id);
        let values = params.zip(args).collect();
        let inner = Frame { values, blocks: HashMap::new(), promoted, label: 0, exit };
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
                self.bind_phis(target, &phis)?;
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
            let mut phis = Vec::new();
            for at in block.start..block.end {
                self.at = at;
                let inst = self.module.code.get(at);
                if inst.op != Op::Phi {
                    break;
                }
                for (_, ty) in self.module.types.leaves(inst.ty, None, self.unit.word)? {
                    self.b.append_block_param(target, ty);
                }
                phis.push(at);
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

    fn bind_phis(&mut self, block: Block, phis: &[usize]) -> Result<()> {
        let mut params = self.b.block_params(block).to_vec().into_iter();
        for &at in phis {
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
            let place = self.module.source_place(at);
            let number = self.unit.sources.intern(place);
            self.b.set_srcloc(number);
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
            Def::Place(_) | Def::Builtin(_) | Def::Marker => {
                let given = "a pointer to a variable without an address".to_owned();
                Err(SpirvErrorKind::Mismatch { id, given, expected: "a value".to_owned() })
            }
        }
    }

    /// The value of an id that must be of a type.
    pub(crate) fn value_of(&mut self, id: Id, ty: Id) -> Result<Val> {
        let value = self.value(id)?;
        if value.ty != ty {
            return Err(self.mismatch(id, value.ty, self.module.types.describe(ty)));
        }
        Ok(value)
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
    pub(crate) fn leaf_types(&self, ty: Id) -> Result<Vec<Type>> {
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

    /// The address of a variable of the module.
    fn global_address(&mut self, variable: Id) -> Result<ir::Value> {
        match self.global(variable)? {
            Def::Value(Val { parts, .. }) if parts.len() == 1 => Ok(parts[0]),
            _ => {
                Err(SpirvErrorKind::unsupported(format!("the address of the variable %{variable}")))
            }
        }
    }

    /// What a variable of the module stands for here.
    fn global(&mut self, id: Id) -> Result<Def> {
        if let Some(def) = self.globals.get(&id) {
            return Ok(def.clone());
        }
        let module = self.module;
        let global = module.globals[&id];
        let pointer = module.constants.ty(id)?;
        let address = match global.class {
            StorageClass::Input => {
                let Some(builtin) = module.decorations.builtin(id) else {
                    return Err(SpirvErrorKind::unsupported(format!("the input %{id}")));
                };
                let place = BuiltinPlace { ty: global.ty, builtin, component: None };
                return Ok(Def::Builtin(place));
            }
            StorageClass::Workgroup => {
                let offset = self.unit.group_offset(id)?;
                let word = self.unit.word;
                let memory = self.prologue_word("harp_group_memory");
                if offset == 0 {
                    memory
                } else {
                    let func = &mut *self.b.func;
                    self.prologue.insert(func, |at| {
                        let offset = at.ins().iconst(word, i64::from(offset));
                        at.ins().iadd(memory, offset)
                    })
                }
            }
            StorageClass::UniformConstant | StorageClass::CrossWorkgroup => {
                let data = self.unit.data(id)?;
                let word = self.unit.word;
                let symbol = self.unit.declarations.declare_data_in_func(data, self.b.func)?;
                let func = &mut *self.b.func;
                self.prologue.insert(func, |at| at.ins().symbol_value(word, symbol))
            }
            class => {
                return Err(SpirvErrorKind::unsupported(format!(
                    "the variable %{id} in {class:?}"
                )));
            }
        };
        let def = Def::Value(Val::scalar(pointer, address));
        self.globals.insert(id, def.clone());
        Ok(def)
    }

    /// A word that an intrinsic without arguments gives, computed at the function's start.
    pub(crate) fn prologue_word(&mut self, name: &'static str) -> ir::Value {
        self.prologue.item(self.b.func, crate::prologue::Item::Word(name))
    }

    /// A variable of the function.
    fn variable(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (class, ty) = self.module.types.pointer(inst.ty)?;
        if class != StorageClass::Function {
            return Err(SpirvErrorKind::malformed("a variable of a function in another class"));
        }
        let initial = match inst.operands.get(1) {
            Some(&id) => Some(self.value_of(id, ty)?),
            None => None,
        };
        if self.frame.promoted.contains(&inst.id) {
            let place = self.place(ty)?;
            if let Some(initial) = initial {
                self.assign(place, &initial)?;
            }
            return self.define(inst.id, Def::Place(place));
        }
        let pointer = self.slot(inst.ty, ty)?;
        if let Some(initial) = initial {
            self.store(&pointer, &initial, None)?;
        }
        self.define(inst.id, Def::Value(pointer))
    }

    /// A new variable that is no memory.
    pub(crate) fn place(&mut self, ty: Id) -> Result<Place> {
        let leaves = self.leaf_types(ty)?;
        let mut first = None;
        for leaf in leaves {
            let variable = self.b.declare_var(leaf);
            first.get_or_insert(variable);
        }
        let first = first.ok_or_else(|| SpirvErrorKind::malformed("a variable of no scalars"))?;
        Ok(Place::new(ty, first))
    }

    /// A pointer to new memory in the stack.
    pub(crate) fn slot(&mut self, pointer: Id, ty: Id) -> Result<Val> {
        let found = self.module.types.get(ty)?;
        if found.size == 0 {
            let what = format!("a variable of {}", self.module.types.describe(ty));
            return Err(SpirvErrorKind::unsupported(what));
        }
        if found.size > MAX_SLOT_BYTES {
            let (given, limit) = (found.size, MAX_SLOT_BYTES);
            return Err(SpirvErrorKind::TooMany { what: "bytes of a variable", given, limit });
        }
        // Vectors are accessed by components, which are at most 8 bytes long.
        let align = found.align.min(8).trailing_zeros() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, found.size as u32, align);
        let slot = self.b.create_sized_stack_slot(data);
        let word = self.unit.word;
        let address = self.b.ins().stack_addr(word, slot, 0);
        Ok(Val::scalar(pointer, address))
    }

    fn call(&mut self, inst: Instruction<'_>) -> Result<()> {
        let callee = inst.word(0)?;
        let module = self.module;
        let undefined = SpirvErrorKind::Undefined { id: callee, role: "a function" };
        let function = module.functions.get(&callee).ok_or(undefined)?;
        let args = inst.rest(1);
        if args.len() != function.params.len() || inst.ty != function.result {
            return Err(SpirvErrorKind::malformed(format!("%{callee} has another type")));
        }
        let is_void = matches!(module.types.kind(function.result)?, Kind::Void);
        if !self.unit.inline(function)? {
            let mut values = vec![self.prologue.argument_block];
            for (&arg, &(_, ty)) in args.iter().zip(&function.params) {
                values.extend(self.value_of(arg, ty)?.parts);
            }
            let id = self.unit.function(function)?;
            let callee = self.unit.declarations.declare_func_in_func(id, self.b.func)?;
            let call = self.b.ins().call(callee, &values);
            let results = Parts::from_slice(self.b.inst_results(call));
            return self.define(inst.id, Def::Value(Val::new(inst.ty, results)));
        }
        let mut defs = Vec::with_capacity(args.len());
        for (&arg, &(_, ty)) in args.iter().zip(&function.params) {
            defs.push(match self.def(arg)? {
                Def::Value(_) => Def::Value(self.value_of(arg, ty)?),
                other => other,
            });
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

    fn terminator(&mut self, inst: Instruction<'_>) -> Result<()> {
        match inst.op {
            Op::Branch => {
                let (block, args) = self.edge(inst.word(0)?)?;
                self.b.ins().jump(block, &args);
            }
            Op::BranchConditional => {
                let condition = self.condition(inst.word(0)?)?;
                let (yes, yes_args) = self.edge(inst.word(1)?)?;
                let (no, no_args) = self.edge(inst.word(2)?)?;
                self.b.ins().brif(condition, yes, &yes_args, no, &no_args);
            }
            Op::Switch => self.switch(inst)?,
            Op::Return | Op::Kill | Op::TerminateInvocation => self.leave(&[]),
            Op::ReturnValue => {
                let value = self.value(inst.word(0)?)?;
                self.check_result(&value)?;
                self.leave(&value.parts);
            }
            _ => {
                self.b.ins().trap(UNREACHABLE);
            }
        }
        Ok(())
    }

    /// Checks that a returned value has the scalars that the caller expects.
    fn check_result(&self, value: &Val) -> Result<()> {
        let given = value.parts.iter().map(|&part| self.b.func.dfg.value_type(part));
        let fits = match self.frame.exit {
            Some(exit) => {
                let params = self.b.func.dfg.block_params(exit).iter();
                given.eq(params.map(|&param| self.b.func.dfg.value_type(param)))
            }
            None => given.eq(self.b.func.signature.returns.iter().map(|result| result.value_type)),
        };
        let wrong = || SpirvErrorKind::malformed("the returned value is of another type");
        fits.then_some(()).ok_or_else(wrong)
    }

    fn leave(&mut self, results: &[ir::Value]) {
        match self.frame.exit {
            None => {
                let returns = self.b.func.signature.returns.len();
                let results = if results.len() == returns { results } else { &[] };
                if results.len() == returns {
                    self.b.ins().return_(results);
                } else {
                    self.b.ins().trap(UNREACHABLE);
                }
            }
            Some(exit) => {
                if self.b.block_params(exit).len() == results.len() {
                    let args: Vec<BlockArg> = results.iter().map(|&part| part.into()).collect();
                    self.b.ins().jump(exit, &args);
                } else {
                    self.b.ins().trap(UNREACHABLE);
                }
            }
        }
    }

    /// The block that a label stands for, and the arguments for its phis.
    fn edge(&mut self, label: Id) -> Result<(Block, Vec<BlockArg>)> {
        let undefined = SpirvErrorKind::Undefined { id: label, role: "the target of a branch" };
        let target = self.frame.blocks.get(&label).cloned().ok_or(undefined)?;
        let mut args = Vec::new();
        for at in target.phis {
            let phi = self.module.code.get(at);
            let pairs = phi.operands.as_chunks::<2>().0;
            let from = pairs.iter().find(|[_, parent]| *parent == self.frame.label);
            let &[value, _] = from.ok_or_else(|| {
                SpirvErrorKind::malformed(format!("%{} has no value for this branch", phi.id))
            })?;
            let value = self.value_of(value, phi.ty)?;
            args.extend(value.parts.into_iter().map(BlockArg::from));
        }
        Ok((target.block, args))
    }

    fn switch(&mut self, inst: Instruction<'_>) -> Result<()> {
        let selector = self.integer(inst.word(0)?)?;
        let ty = self.b.func.dfg.value_type(selector);
        let words = self.module.case_words(inst);
        let selector =
            if ty.bits() < 32 { self.b.ins().uextend(types::I32, selector) } else { selector };
        let mask = u64::MAX >> (64 - ty.bits());
        let cases = inst.rest(2);
        if !cases.len().is_multiple_of(words + 1) {
            return Err(SpirvErrorKind::malformed("the last case has no label"));
        }
        let mut blocks: HashMap<Id, Block> = HashMap::new();
        let mut between = Vec::new();
        let mut switch = Switch::new();
        let mut seen = HashSet::new();
        let mut block_of = |this: &mut Self, label: Id| -> Result<Block> {
            if let Some(&block) = blocks.get(&label) {
                return Ok(block);
            }
            let (target, args) = this.edge(label)?;
            let block = if args.is_empty() {
                target
            } else {
                let block = this.b.create_block();
                between.push((block, target, args));
                block
            };
            blocks.insert(label, block);
            Ok(block)
        };
        let otherwise = block_of(self, inst.word(1)?)?;
        for case in cases.chunks_exact(words + 1) {
            let high = if words == 2 { u64::from(case[1]) << 32 } else { 0 };
            let value = (high | u64::from(case[0])) & mask;
            if !seen.insert(value) {
                return Err(SpirvErrorKind::malformed(format!("two cases for {value}")));
            }
            let block = block_of(self, case[words])?;
            switch.set_entry(value.into(), block);
        }
        switch.emit(&mut self.b, selector, otherwise);
        for (block, target, args) in between {
            self.b.switch_to_block(block);
            self.b.ins().jump(target, &args);
        }
        Ok(())
    }
}

/// The blocks that are reached, each behind those that dominate it: in reverse post-order. In the module they may be in
/// another order.
fn ordered<'m>(module: &SpirvModule, function: &'m Function) -> Vec<&'m module::Block> {
    let numbers: HashMap<Id, usize> =
        function.blocks.iter().enumerate().map(|(number, block)| (block.label, number)).collect();
    let successors = |number: usize| {
        let labels = module.successors(&function.blocks[number]).into_iter().rev();
        labels.filter_map(|label| numbers.get(&label).copied()).collect::<Vec<_>>()
    };
    let mut seen = vec![false; function.blocks.len()];
    let mut order = Vec::new();
    let mut stack = vec![(0, successors(0))];
    seen[0] = true;
    while let Some((number, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                stack.push((next, successors(next)));
            }
            Some(_) => {}
            None => {
                order.push(&function.blocks[*number]);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
