//! Functions: blocks, phis, the ends of blocks.

use std::collections::{BTreeSet, HashMap};

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, BlockCall, Function, Inst, InstructionData, Opcode, StackSlot, Type, Value, types,
};
use rspirv::dr::{InsertPoint, Instruction, Operand};
use rspirv::spirv::{Op, OpenclStd100Op, StorageClass, Word};

use super::module::Writer;
use super::{Result, Unwritable};

/// Why instructions can be written: only the end of a block closes it, and the next one is opened at once.
const OPEN: &str = "a block is open";

/// A block with the values that it gives another one's parameters.
type Edge = (Word, Vec<Word>);

/// A label to lead to, with what is still to be written there: a block before the one that is meant.
type Target = (Word, Option<(Block, Vec<Word>)>);

/// A function in the making. Instructions are written to the block that is open.
pub(super) struct Body<'w, 'c> {
    pub(super) w: &'w mut Writer<'c>,
    pub(super) index: usize,
    pub(super) func: &'c Function,
    /// The parameters in SPIR-V: a kernel's are the arguments of the launch.
    pub(super) params: Vec<Word>,
    values: HashMap<Value, Word>,
    /// Values that are 0 or 1, as truth values.
    truths: HashMap<Value, Word>,
    pub(super) slots: HashMap<StackSlot, Word>,
    labels: HashMap<Block, Word>,
    /// The open block.
    label: Word,
    /// What leads to blocks.
    edges: HashMap<Block, Vec<Edge>>,
    /// The numbers of the blocks in SPIR-V that begin as those of CLIF do.
    starts: Vec<(Block, usize)>,
    /// The block that traps.
    trap: Option<Word>,
}

impl<'w, 'c> Body<'w, 'c> {
    pub(super) fn new(w: &'w mut Writer<'c>, index: usize, params: Vec<Word>) -> Body<'w, 'c> {
        let func = &w.case.functions[index];
        let labels = func.layout.blocks().map(|block| (block, w.b.id())).collect();
        Body {
            w,
            index,
            func,
            params,
            values: HashMap::new(),
            truths: HashMap::new(),
            slots: HashMap::new(),
            labels,
            label: 0,
            edges: HashMap::new(),
            starts: Vec::new(),
            trap: None,
        }
    }

    /// Writes all blocks: dominators before what they dominate, as SPIR-V wants it, and last those that nothing leads to.
    pub(super) fn make(mut self) -> Result<()> {
        let func = self.func;
        let cfg = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &cfg);
        let order: Vec<Block> = dominators.cfg_postorder().iter().rev().copied().collect();
        let reached: BTreeSet<Block> = order.iter().copied().collect();
        let dead = func.layout.blocks().filter(|block| !reached.contains(block));
        for block in order.into_iter().chain(dead) {
            self.block(block)?;
        }
        if let Some(trap) = self.trap {
            self.begin(trap);
            self.w.b.unreachable().expect(OPEN);
        }
        self.phis();
        Ok(())
    }

    fn block(&mut self, block: Block) -> Result<()> {
        let func = self.func;
        self.begin(self.labels[&block]);
        let params = func.dfg.block_params(block);
        if func.layout.entry_block() == Some(block) {
            self.variables();
            if self.index > 0 {
                self.values.extend(params.iter().copied().zip(self.params.iter().copied()));
            }
        } else {
            for &param in params {
                let id = self.w.b.id();
                self.values.insert(param, id);
            }
            self.starts.push((block, self.w.b.selected_block().expect(OPEN)));
        }
        for inst in func.layout.block_insts(block) {
            if func.dfg.insts[inst].opcode().is_terminator() {
                return self.terminator(inst);
            }
            self.instruction(inst)?;
        }
        Err(Unwritable::new("a block without an end"))
    }

    /// The variables that stack slots are.
    fn variables(&mut self) {
        let func = self.func;
        for (slot, data) in &func.sized_stack_slots {
            let ty = self.w.array(data.size as usize);
            let pointer = self.w.b.type_pointer(None, StorageClass::Function, ty);
            let variable = self.w.b.variable(pointer, None, StorageClass::Function, None);
            self.w.align(variable, (1 << data.align_shift).max(self.w.word.bytes()));
            self.slots.insert(slot, variable);
        }
    }

    /// Writes the phis of all blocks, now that it is known where their values come from.
    fn phis(&mut self) {
        let func = self.func;
        for (block, number) in std::mem::take(&mut self.starts) {
            let edges = self.edges.remove(&block).unwrap_or_default();
            let mut phis = Vec::new();
            for (at, &param) in func.dfg.block_params(block).iter().enumerate() {
                let (ty, id) = (self.w.ty(func.dfg.value_type(param)), self.values[&param]);
                let sources = edges.iter().flat_map(|(from, args)| [args[at], *from]);
                let operands: Vec<_> = sources.map(Operand::IdRef).collect();
                let op = if operands.is_empty() { Op::Undef } else { Op::Phi };
                phis.push(Instruction::new(op, Some(ty), Some(id), operands));
            }
            self.w.b.select_block(Some(number)).expect("it was written");
            for phi in phis.into_iter().rev() {
                self.w.b.insert_into_block(InsertPoint::Begin, phi).expect(OPEN);
            }
        }
        self.w.b.select_block(None).expect("no block is open");
    }

    /// Opens a block.
    pub(super) fn begin(&mut self, label: Word) {
        self.w.b.begin_block(Some(label)).expect("no block is open");
        self.label = label;
    }

    /// The open block.
    pub(super) fn open(&self) -> Word {
        self.label
    }

    /// Goes on if a truth value is not; else traps.
    pub(super) fn trap_if(&mut self, wrong: Word) {
        let trap = *self.trap.get_or_insert_with(|| self.w.b.id());
        let on = self.w.b.id();
        self.w.b.branch_conditional(wrong, trap, on, []).expect(OPEN);
        self.begin(on);
    }

    fn terminator(&mut self, inst: Inst) -> Result<()> {
        let func = self.func;
        let args = self.args(inst);
        match func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let labels = self.targets(&[destination]);
                self.w.b.branch(labels[0].0).expect(OPEN);
            }
            InstructionData::Brif { arg, blocks, .. } => {
                let condition = self.truth(arg);
                let targets = self.targets(&blocks);
                let [yes, no] = [targets[0].0, targets[1].0];
                self.w.b.branch_conditional(condition, yes, no, []).expect(OPEN);
                self.between(targets);
            }
            InstructionData::BranchTable { table, .. } => {
                let table = &func.dfg.jump_tables[table];
                let all: Vec<BlockCall> =
                    [table.default_block()].into_iter().chain(table.as_slice().to_vec()).collect();
                let targets = self.targets(&all);
                let cases: Vec<_> = (0..)
                    .zip(&targets[1..])
                    .map(|(number, (label, _))| (Operand::LiteralBit32(number), *label))
                    .collect();
                self.w.b.switch(args[0], targets[0].0, cases).expect(OPEN);
                self.between(targets);
            }
            InstructionData::Trap { .. } => self.w.b.unreachable().expect(OPEN),
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => self.leave(&args),
            InstructionData::Call { .. } | InstructionData::CallIndirect { .. } => {
                let results = self.call(inst, &args)?;
                self.leave(&results);
            }
            _ => return Err(self.unwritable(inst)),
        }
        Ok(())
    }

    /// The labels for the open block to lead to. A block that is among them a second time and has parameters gets a
    /// block before it, which is still to be written.
    fn targets(&mut self, calls: &[BlockCall]) -> Vec<Target> {
        let func = self.func;
        let pool = &func.dfg.value_lists;
        let mut seen = BTreeSet::new();
        let mut targets = Vec::new();
        for call in calls {
            let block = call.block(pool);
            let args: Vec<Value> = call.args(pool).filter_map(|arg| arg.as_value()).collect();
            let args: Vec<Word> = args.into_iter().map(|arg| self.value(arg)).collect();
            if seen.insert(block) {
                self.edges.entry(block).or_default().push((self.label, args));
            } else if !args.is_empty() {
                targets.push((self.w.b.id(), Some((block, args))));
                continue;
            }
            targets.push((self.labels[&block], None));
        }
        targets
    }

    /// Writes the blocks before others.
    fn between(&mut self, targets: Vec<Target>) {
        for (label, before) in targets {
            let Some((block, args)) = before else { continue };
            self.begin(label);
            self.edges.entry(block).or_default().push((label, args));
            self.w.b.branch(self.labels[&block]).expect(OPEN);
        }
    }

    /// Ends the function.
    fn leave(&mut self, results: &[Word]) {
        let func = self.func;
        match *results {
            [] => self.w.b.ret().expect(OPEN),
            [result] => self.w.b.ret_value(result).expect(OPEN),
            _ => {
                let (ty, _) = self.w.signature(&func.signature);
                let all = self.op(Op::CompositeConstruct, ty, results);
                self.w.b.ret_value(all).expect(OPEN);
            }
        }
    }

    /// The operands of an instruction.
    pub(super) fn args(&mut self, inst: Inst) -> Vec<Word> {
        let func = self.func;
        // The block with a kernel's arguments is no value here.
        let args = func.dfg.inst_args(inst).iter();
        args.map(|&arg| if self.is_argument_block(arg) { 0 } else { self.value(arg) }).collect()
    }

    /// Whether a value is the address of the block with a kernel's arguments.
    pub(super) fn is_argument_block(&self, value: Value) -> bool {
        let func = self.func;
        let params = func.layout.entry_block().map(|block| func.dfg.block_params(block));
        self.index == 0 && params.is_some_and(|params| params == [func.dfg.resolve_aliases(value)])
    }

    /// What a value is. Only where nothing leads to, there may be values that nothing defines.
    pub(super) fn value(&mut self, value: Value) -> Word {
        let func = self.func;
        let value = func.dfg.resolve_aliases(value);
        match self.values.get(&value) {
            Some(&id) => id,
            None => {
                let ty = self.w.ty(func.dfg.value_type(value));
                self.w.b.undef(ty, None)
            }
        }
    }

    /// Gives the results of an instruction their values.
    pub(super) fn set(&mut self, inst: Inst, results: &[Word]) {
        let func = self.func;
        self.values
            .extend(func.dfg.inst_results(inst).iter().copied().zip(results.iter().copied()));
    }

    /// Gives a result a truth value.
    pub(super) fn set_truth(&mut self, result: Value, truth: Word) {
        let number = self.number_of(truth, self.func.dfg.value_type(result));
        self.values.insert(result, number);
        self.truths.insert(result, truth);
    }

    /// 1 or 0.
    pub(super) fn number_of(&mut self, truth: Word, ty: Type) -> Word {
        let [one, zero] = [1, 0].map(|number| self.w.constant(ty, number));
        let ty = self.w.ty(ty);
        self.op(Op::Select, ty, &[truth, one, zero])
    }

    /// Whether a value is not 0.
    pub(super) fn truth(&mut self, value: Value) -> Word {
        let func = self.func;
        let value = func.dfg.resolve_aliases(value);
        if let Some(&truth) = self.truths.get(&value) {
            return truth;
        }
        let (ty, number) = (func.dfg.value_type(value), self.value(value));
        self.compare_with(Op::INotEqual, ty, number, 0)
    }

    /// Compares a number with a constant.
    pub(super) fn compare_with(&mut self, op: Op, ty: Type, number: Word, other: u64) -> Word {
        let other = self.w.constant(ty, other);
        self.compare(op, number, other)
    }

    pub(super) fn compare(&mut self, op: Op, x: Word, y: Word) -> Word {
        let ty = self.w.b.type_bool();
        self.op(op, ty, &[x, y])
    }

    /// An instruction whose operands are values, of a type of CLIF.
    pub(super) fn of(&mut self, op: Op, ty: Type, args: &[Word]) -> Word {
        let ty = self.w.ty(ty);
        self.op(op, ty, args)
    }

    /// The same of any type.
    pub(super) fn op(&mut self, op: Op, ty: Word, args: &[Word]) -> Word {
        let operands = args.iter().map(|&arg| Operand::IdRef(arg)).collect();
        self.push(op, Some(ty), operands)
    }

    /// An instruction of OpenCL.std.
    pub(super) fn std(&mut self, op: OpenclStd100Op, ty: Type, args: &[Word]) -> Word {
        let head = [Operand::IdRef(self.w.opencl), Operand::LiteralExtInstInteger(op as u32)];
        let operands = head.into_iter().chain(args.iter().map(|&arg| Operand::IdRef(arg)));
        let operands = operands.collect();
        let ty = self.w.ty(ty);
        self.push(Op::ExtInst, Some(ty), operands)
    }

    /// Any instruction; it has a result if it has a type.
    pub(super) fn push(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let id = self.w.b.id();
        let inst = Instruction::new(op, ty, ty.map(|_| id), operands);
        self.w.b.insert_into_block(InsertPoint::End, inst).expect(OPEN);
        id
    }

    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Word {
        self.w.constant(ty, bits)
    }

    /// A member of a structure with members of this type.
    pub(super) fn member(&mut self, ty: Type, whole: Word, index: u32) -> Word {
        let ty = self.w.ty(ty);
        let operands = vec![Operand::IdRef(whole), Operand::LiteralBit32(index)];
        self.push(Op::CompositeExtract, Some(ty), operands)
    }

    pub(super) fn unwritable(&self, inst: Inst) -> Unwritable {
        Unwritable::new(format_args!("`{}`", self.func.dfg.insts[inst].opcode()))
    }

    /// An integer of another width, zero-extended or without its upper bits.
    pub(super) fn resized(&mut self, value: Word, from: Type, to: Type) -> Word {
        if from == to { value } else { self.of(Op::UConvert, to, &[value]) }
    }

    /// The type of amounts of shifts that are constants.
    pub(super) const AMOUNT: Type = types::I32;
}
