//! Instruction selection: CLIF to VCode by the rules in `*.isle`.
//!
//! Blocks are visited in reverse order and instructions backwards, so the uses of a result are known before
//! the code of its instruction is made. Instructions without uses and side effects are skipped, a truth value
//! is computed in the register file in which it is used, and constants are rematerialized at each use.
//!
//! Assumes legal CLIF (see [`legalize`](crate::legalize)): branches are `jump` and `brif`, traps are
//! unconditional, there is at most one `return`. Instructions without a rule are reported, never guessed.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, Inst, InstructionData, MemFlagsData, Opcode, SourceLoc,
    Type, Value,
};
use harp_isa::{ArchId, Layout, WordSize};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::abi::{EntryKind, word_int};
use crate::analysis::Graph;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;
use crate::options::Execution;
use crate::plan::Plan;
use crate::symbols::{Called, Symbols};
use crate::vcode::{BlockId, Contract, MInst, MOperand, Promises, Reg, Symbol, VBlock, VCode};

mod calls;
mod communication;
mod intrinsics;
mod order;
mod rules;
mod terms;
mod truth;
mod values;

use calls::SlotLayout;
use communication::GroupBlock;
use order::{BlockOrder, Lowered};

/// The inputs of instruction selection besides the function.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The linker's name of the function.
    pub(crate) name: &'a str,
    pub(crate) arch: ArchId,
    pub(crate) entry: EntryKind,
    pub(crate) execution: Execution,
    pub(crate) symbols: &'a dyn Symbols,
}

/// Maps blocks of the function to blocks of VCode.
pub(crate) struct BlockIds(BlockOrder);

impl BlockIds {
    /// The VCode block of `block`, which must be reachable.
    pub(crate) fn of(&self, block: Block) -> BlockId {
        self.0.block(block)
    }
}

/// Selects instructions for `func` over virtual registers, with `split` and `join` as in `plan`. `graph` is that of
/// its blocks.
///
/// # Errors
///
/// If no rule covers an instruction.
pub(crate) fn select(
    func: &Function,
    graph: &Graph,
    plan: &Plan,
    target: Target<'_>,
) -> Result<(VCode, BlockIds), Unsupported> {
    let mut lower = Lower::new(func, target);
    lower.check_types()?;
    lower.check_slots()?;
    let order = BlockOrder::new(func, graph);
    let mut blocks = Vec::new();
    blocks.resize_with(order.len(), VBlock::default);
    for (id, lowered) in order.iter().rev() {
        let block = &mut blocks[id.index()];
        let start = lower.code.len();
        match lowered {
            Lowered::Block(clif) => lower.block(clif, plan, &order, block)?,
            Lowered::Edge { branch, successor } => lower.edge(branch, successor, &order, block),
        }
        block.insts = start..lower.code.len();
    }
    Ok((lower.finish(blocks, plan), BlockIds(order)))
}

/// An instruction with its source location; the code is collected backwards.
type Placed = (MInst, SourceLoc);

struct Lower<'a> {
    func: &'a Function,
    arch: ArchId,
    entry: EntryKind,
    execution: Execution,
    symbols: &'a dyn Symbols,
    symbol_numbers: HashMap<String, Symbol>,
    slots: SlotLayout,
    layout: Layout,
    vcode: VCode,
    /// The general register that uses of a value read, and the predicate that they read or that was computed.
    gprs: SecondaryMap<Value, Option<Reg>>,
    preds: SecondaryMap<Value, Option<Reg>>,
    /// The register with the position in the first dimension of the grid, if it is used.
    global_id_x: Option<Reg>,
    /// What barriers need, if there are any: a work-group keeps its barrier.
    barrier_words: Option<[Reg; 2]>,
    /// The address of the group control block, if the current block reads it.
    group_block: Option<GroupBlock>,
    /// The register by which the warp's scratch word is found, if one is kept for that.
    scratch_address: Option<Reg>,
    /// Values that are read more than once.
    shared: SecondaryMap<Value, bool>,
    /// Block parameters that live in predicates.
    predicate_params: EntitySet<Value>,
    /// Registers that are aliases of other registers, by index.
    aliases: Vec<Option<Reg>>,
    /// The code of the current CLIF instruction, in forward order.
    inst_code: Vec<MInst>,
    /// All code, in reverse order.
    code: Vec<Placed>,
}

/// The values that a function reads more than once.
fn shared(func: &Function) -> SecondaryMap<Value, bool> {
    let (mut read, mut shared) = (SecondaryMap::new(), SecondaryMap::new());
    read.resize(func.dfg.num_values());
    shared.resize(func.dfg.num_values());
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    for value in insts.flat_map(|inst| func.dfg.inst_values(inst)) {
        let value = func.dfg.resolve_aliases(value);
        shared[value] = std::mem::replace(&mut read[value], true);
    }
    shared
}

impl<'a> Lower<'a> {
    fn new(func: &'a Function, target: Target<'a>) -> Self {
        let Target { name, arch, entry, execution, symbols } = target;
        let (frame, slots) = calls::frame_needs(func, arch);
        let own = match entry {
            EntryKind::Kernel => Contract::default(),
            EntryKind::Function => Called { symbols, arch }.contract(name, &func.signature),
        };
        let promises = Promises { own, ..Promises::default() };
        Lower {
            func,
            arch,
            entry,
            execution,
            symbols,
            symbol_numbers: HashMap::new(),
            slots,
            layout: Layout::new(arch),
            vcode: VCode { frame, promises, ..VCode::default() },
            gprs: SecondaryMap::new(),
            preds: SecondaryMap::new(),
            global_id_x: None,
            barrier_words: None,
            group_block: None,
            scratch_address: None,
            shared: shared(func),
            predicate_params: truth::predicate_params(func),
            aliases: Vec::new(),
            inst_code: Vec::new(),
            code: Vec::with_capacity(func.dfg.num_insts()),
        }
    }

    /// Checks that every value fits a register.
    fn check_types(&self) -> Result<(), Unsupported> {
        let word = self.arch.word();
        for block in self.func.layout.blocks() {
            let refuse = |inst: Inst, ty: Type| {
                let what = format!("a value of type {ty} with {}-byte words", word.bytes());
                Err(Unsupported { inst, block, what })
            };
            let first =
                self.func.layout.first_inst(block).expect("the verifier wants a terminator");
            for &param in self.func.dfg.block_params(block) {
                let ty = self.func.dfg.value_type(param);
                if !fits_register(ty, word) {
                    return refuse(first, ty);
                }
            }
            for inst in self.func.layout.block_insts(block) {
                for &result in self.func.dfg.inst_results(inst) {
                    let ty = self.func.dfg.value_type(result);
                    if !fits_register(ty, word) {
                        return refuse(inst, ty);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lowers a CLIF block from its last instruction to the first.
    fn block(
        &mut self,
        clif: Block,
        plan: &Plan,
        order: &BlockOrder,
        block: &mut VBlock,
    ) -> Result<(), Unsupported> {
        let func = self.func;
        let mut inst = func.layout.last_inst(clif);
        while let Some(current) = inst {
            if func.dfg.insts[current].opcode().is_terminator() {
                self.terminator(current, clif, plan, order, block)?;
            } else if self.is_wanted(current) {
                self.inst(current, clif)?;
                self.promise(current);
            }
            self.flush(func.srcloc(current));
            inst = func.layout.prev_inst(current);
        }
        self.params(clif, block)?;
        self.define_group_block();
        if plan.is_join(clif) {
            self.inst_code.insert(0, MInst::Join);
        }
        self.flush(SourceLoc::default());
        Ok(())
    }

    /// Appends the code of one CLIF instruction to the rest.
    fn flush(&mut self, place: SourceLoc) {
        self.code.extend(self.inst_code.drain(..).rev().map(|inst| (inst, place)));
        self.place_group_block(place);
    }

    /// Defines the parameters of a block; those of the entry arrive in registers.
    fn params(&mut self, clif: Block, block: &mut VBlock) -> Result<(), Unsupported> {
        let params = self.func.dfg.block_params(clif);
        if self.func.layout.entry_block() == Some(clif) {
            self.entry_params(clif)?;
        } else {
            block.params = params.iter().map(|&param| self.param(param)).collect();
        }
        for &param in params {
            if self.predicate_params.contains(param) {
                if let (Some(wanted), Some(pred)) = (self.gprs[param], self.preds[param]) {
                    let reg = rules::Context::bool_reg(self, pred);
                    self.alias(wanted, reg);
                }
            } else if let Some(wanted) = self.preds[param] {
                let gpr = self.zero_extended(param);
                self.emit_op(harp_isa::Opcode::Rtop, [MOperand::Def(wanted), MOperand::Use(gpr)]);
            }
        }
        Ok(())
    }

    /// Lowers the last instruction of a block.
    fn terminator(
        &mut self,
        inst: Inst,
        clif: Block,
        plan: &Plan,
        order: &BlockOrder,
        block: &mut VBlock,
    ) -> Result<(), Unsupported> {
        match self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let target = order.block(destination.block(&self.func.dfg.value_lists));
                self.jump(target, &destination);
                block.succs = smallvec![target];
            }
            InstructionData::Brif { arg, .. } => {
                let condition = self.value_pred(arg);
                let (taken, not_taken) = (order.successor(inst, 0), order.successor(inst, 1));
                let split = plan.is_split(inst);
                let site = plan.branch_site(inst);
                self.inst_code.push(MInst::CondBr { condition, taken, not_taken, split, site });
                block.succs = smallvec![taken, not_taken];
            }
            InstructionData::Trap { code, .. } => self.inst_code.push(MInst::Trap { code }),
            InstructionData::MultiAry { opcode: Opcode::Return, ref args } => {
                self.return_(args.as_slice(&self.func.dfg.value_lists));
            }
            InstructionData::Call { opcode: Opcode::ReturnCall, .. }
            | InstructionData::CallIndirect { opcode: Opcode::ReturnCallIndirect, .. } => {
                self.check_address(inst, clif)?;
                self.tail_call(inst, clif)?;
            }
            ref data => {
                let what = format!("the instruction `{}` here", data.opcode());
                return Err(Unsupported { inst, block: clif, what });
            }
        }
        Ok(())
    }

    /// Lowers the block of an edge: the jump and its arguments.
    fn edge(&mut self, branch: Inst, successor: usize, order: &BlockOrder, block: &mut VBlock) {
        let destination = order::successor_call(self.func, branch, successor);
        let target = order.block(destination.block(&self.func.dfg.value_lists));
        self.jump(target, &destination);
        block.succs = smallvec![target];
        self.flush(self.func.srcloc(branch));
    }

    /// The register of a block parameter.
    fn param(&mut self, param: Value) -> Reg {
        if self.predicate_params.contains(param) {
            self.value_pred(param)
        } else {
            self.value_gpr(param)
        }
    }

    fn jump(&mut self, target: BlockId, destination: &BlockCall) {
        let pool = &self.func.dfg.value_lists;
        let params = self.func.dfg.block_params(destination.block(pool));
        let args = destination.args(pool).zip(params).map(|(arg, &param)| match arg {
            BlockArg::Value(value) if self.predicate_params.contains(param) => {
                self.value_pred(value)
            }
            BlockArg::Value(value) => self.value_gpr(value),
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => {
                unreachable!("only `try_call` passes these, and it is not supported")
            }
        });
        let args = args.collect();
        self.inst_code.push(MInst::Jump { target, args });
    }

    /// Whether an instruction has a side effect or a result that is used.
    fn is_wanted(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let used = |&value: &Value| self.gprs[value].is_some() || self.preds[value].is_some();
        dfg.inst_results(inst).iter().any(used) || self.has_effect(inst)
    }

    fn has_effect(&self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let opcode = data.opcode();
        if opcode.is_call() {
            return Intrinsic::of_call(self.func, inst).is_none_or(Intrinsic::has_effect);
        }
        let traps = match data.memflags_data(&self.func.dfg) {
            Some(flags) => flags.trap_code().is_some(),
            None => opcode.can_trap(),
        };
        traps || opcode.can_store() || opcode.other_side_effects()
    }

    /// Lowers an instruction that is not a terminator.
    fn inst(&mut self, inst: Inst, block: Block) -> Result<(), Unsupported> {
        let opcode = self.func.dfg.insts[inst].opcode();
        let refuse = |what: String| Unsupported { inst, block, what };
        self.check_address(inst, block)?;
        if opcode.is_call() {
            return match Intrinsic::of_call(self.func, inst) {
                Some(intrinsic) => self.intrinsic(intrinsic, inst, block),
                None if self.func.dfg.call_signature(inst).is_some() => {
                    self.call(inst);
                    Ok(())
                }
                None => Err(refuse(format!("`{opcode}`"))),
            };
        }
        let arch = self.arch;
        let no_rule = || refuse(format!("`{opcode}` with these operands on {arch}"));
        let result = self.func.dfg.inst_results(inst).first().copied();
        if let (Some(value), Some(address)) = (result, self.place_address(inst)) {
            self.define_gpr(value, address);
            return Ok(());
        }
        if let Some(value) = result {
            let truth = matches!(opcode, Opcode::Icmp | Opcode::Fcmp);
            if truth || self.preds[value].is_some() {
                match rules::constructor_lower_pred(self, inst) {
                    Some(pred) => {
                        self.define_pred(value, pred);
                        return Ok(());
                    }
                    None if truth => return Err(no_rule()),
                    None => {}
                }
            }
        }
        let Some(output) = rules::constructor_lower(self, inst) else {
            return Err(no_rule());
        };
        if let (Some(value), rules::InstOutput(Some(reg))) = (result, output) {
            self.define_gpr(value, reg);
        }
        Ok(())
    }

    /// Checks that an address is a word: CLIF does not say how a narrower one is extended.
    fn check_address(&self, inst: Inst, block: Block) -> Result<(), Unsupported> {
        let address = match self.func.dfg.insts[inst] {
            InstructionData::Load { arg, .. } => arg,
            InstructionData::Store { args, .. } => args[1],
            InstructionData::CallIndirect { .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => self.func.dfg.inst_args(inst)[0],
            InstructionData::NullAry { opcode: Opcode::GetStackPointer }
            | InstructionData::StackAddr { .. }
            | InstructionData::FuncAddr { .. }
            | InstructionData::UnaryGlobalValue { .. } => self.func.dfg.first_result(inst),
            _ => return Ok(()),
        };
        let ty = self.func.dfg.value_type(address);
        if ty == word_int(self.arch.word()) {
            return Ok(());
        }
        let what = format!("an address of type {ty} with {}-byte words", self.arch.word().bytes());
        Err(Unsupported { inst, block, what })
    }

    /// Records what the flags of a memory access promise.
    fn promise(&mut self, inst: Inst) {
        let flags = self.func.dfg.insts[inst].memflags_data(&self.func.dfg);
        if !flags.is_some_and(MemFlagsData::readonly) {
            return;
        }
        for inst in &self.inst_code {
            if let MInst::Op { opcode, operands, .. } = inst
                && opcode.flags().contains(harp_isa::OpcodeFlags::LOAD)
                && let Some(&MOperand::Def(loaded)) = operands.first()
            {
                self.vcode.promises.read_only.insert(loaded);
            }
        }
    }

    fn emit_op(&mut self, opcode: harp_isa::Opcode, operands: impl AsRef<[MOperand]>) {
        let operands = SmallVec::from_slice(operands.as_ref());
        self.inst_code.push(MInst::Op { opcode, guard: None, operands });
    }

    fn alias(&mut self, name: Reg, reg: Reg) {
        if self.aliases.len() <= name.index() {
            self.aliases.resize(name.index() + 1, None);
        }
        self.aliases[name.index()] = Some(reg);
    }

    fn resolve(&self, mut reg: Reg) -> Reg {
        while let Some(&Some(next)) = self.aliases.get(reg.index()) {
            reg = next;
        }
        reg
    }

    /// Reverses the code and gives every register its final name. The ranges of the blocks' code are relative
    /// to the reversed order.
    fn finish(mut self, mut blocks: Vec<VBlock>, plan: &Plan) -> VCode {
        let mut vcode = std::mem::take(&mut self.vcode);
        let code = std::mem::take(&mut self.code);
        let count = code.len();
        vcode.insts.reserve(count);
        vcode.srclocs.reserve(count);
        let mut used = vec![false; vcode.num_regs];
        let mut resolve = |reg: &mut Reg| {
            *reg = self.resolve(*reg);
            used[reg.index()] = true;
        };
        for block in &mut blocks {
            block.params.iter_mut().for_each(&mut resolve);
            block.insts = count - block.insts.end..count - block.insts.start;
        }
        for (mut inst, place) in code.into_iter().rev() {
            inst.rewrite_regs(&mut resolve);
            vcode.insts.push(inst);
            vcode.srclocs.push(place);
        }
        vcode.blocks = blocks;
        let steering = plan.steering.iter().filter_map(|value| self.preds[value]);
        vcode.promises.steering = steering.map(|reg| self.resolve(reg)).collect();
        vcode.drop_unused_regs(&used);
        vcode.compute_preds();
        vcode
    }
}

fn fits_register(ty: Type, word: WordSize) -> bool {
    (ty.is_int() && ty.bits() <= u32::from(word.bits()))
        || ty == F32
        || (ty == F64 && word == WordSize::Eight)
}
