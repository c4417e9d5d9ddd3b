//! A builder of functions in SSA form from variables (Braun, Buchwald, Hack, Leißa, Mallon, Zwinkau, "Simple
//! and efficient construction of static single assignment form", CC 2013).
//!
//! It does what cranelift-frontend's builder does, in the same order, but stores known values only: that one
//! has a table of all blocks for each variable, and structurization has tens of thousands of both. Where several paths meet
//! again that do not set a variable, it goes on where they parted, at the immediate dominator, instead of looking along each
//! of them for what is the same value: a block's parameters are then those that differ.
//!
//! Assumes that each block is written at once, and each loop before what comes behind it; that a block is sealed when all its
//! predecessors are known; that all are known when it is begun but for back edges from blocks which it dominates; and that
//! variables are defined on all paths to their uses.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{PrimaryMap, SecondaryMap};
use cranelift_codegen::ir::{
    Block, DataFlowGraph, Function, Inst, InstBuilder, InstBuilderBase, InstructionData, SourceLoc,
    Type, Value,
};
use cranelift_frontend::Variable;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::dominators::Dominators;
use crate::analysis::edges;
use crate::intrinsic::Intrinsic;

/// The largest number of tracked values of variables at the ends of blocks. With many edges into other paths,
/// all values set on one path live through all others, and there are as many as blocks times variables.
pub(super) const MAX_KNOWN: usize = 4_000_000;

/// What is known of a block's predecessors.
#[derive(Clone, Default)]
struct Predecessors {
    /// The branches to the block.
    branches: SmallVec<[Inst; 2]>,
    sealed: bool,
    /// Parameters to be completed when the block is sealed.
    waiting: Vec<(Variable, Value)>,
}

/// A pending step of finding a variable's value.
enum Step {
    /// Find the value at the end of this branch's block.
    Use(Inst),
    /// Complete a parameter of a block from the values of all predecessors.
    Finish(Value, Block),
}

/// Writes a function block by block.
pub(super) struct Builder<'a> {
    pub(super) func: &'a mut Function,
    here: Option<Block>,
    place: SourceLoc,
    types: PrimaryMap<Variable, Type>,
    /// The known values of variables at the ends of blocks.
    known: HashMap<(u32, Block), Value>,
    /// The blocks that set each variable, in the order in which they were begun.
    setters: SecondaryMap<Variable, SmallVec<[Block; 2]>>,
    blocks: SecondaryMap<Block, Predecessors>,
    dominators: Dominators,
}

impl<'a> Builder<'a> {
    pub(super) fn new(func: &'a mut Function) -> Builder<'a> {
        // There will be a block for each old one, and more around them.
        let blocks = SecondaryMap::with_capacity(3 * func.dfg.num_blocks());
        Builder {
            func,
            here: None,
            place: SourceLoc::default(),
            types: PrimaryMap::new(),
            known: HashMap::new(),
            setters: SecondaryMap::new(),
            blocks,
            dominators: Dominators::default(),
        }
    }

    /// The number of tracked values. If it exceeds [`MAX_KNOWN`], the function is not correct.
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    pub(super) fn current_block(&self) -> Option<Block> {
        self.here
    }

    pub(super) fn create_block(&mut self) -> Block {
        self.func.dfg.make_block()
    }

    pub(super) fn switch_to_block(&mut self, block: Block) {
        self.here = Some(block);
        let data = &self.blocks[block];
        let layout = &self.func.layout;
        let from = data.branches.iter().filter_map(|&branch| layout.inst_block(branch));
        self.dominators.begin(block, from);
    }

    pub(super) fn srcloc(&self) -> SourceLoc {
        self.place
    }

    pub(super) fn set_srcloc(&mut self, place: SourceLoc) {
        self.place = place;
    }

    pub(super) fn append_block_param(&mut self, block: Block, ty: Type) -> Value {
        self.func.dfg.append_block_param(block, ty)
    }

    pub(super) fn declare_var(&mut self, ty: Type) -> Variable {
        self.types.push(ty)
    }

    pub(super) fn def_var(&mut self, variable: Variable, value: Value) {
        let here = self.position();
        self.known.insert((variable.as_u32(), here), value);
        let setters = &mut self.setters[variable];
        if setters.last() != Some(&here) {
            setters.push(here);
        }
    }

    /// The value of a variable at the builder's position.
    pub(super) fn use_var(&mut self, variable: Variable) -> Value {
        let here = self.position();
        self.insert(here);
        let (mut todo, mut found) = (Vec::new(), Vec::new());
        self.find(variable, here, &mut todo, &mut found);
        self.run(variable, todo, found)
    }

    /// Declares that all branches to `block` are written.
    pub(super) fn seal_block(&mut self, block: Block) {
        let data = &mut self.blocks[block];
        data.sealed = true;
        let waiting = std::mem::take(&mut data.waiting);
        for (variable, param) in waiting {
            let mut todo = Vec::new();
            self.ask_predecessors(param, block, &mut todo);
            self.run(variable, todo, Vec::new());
        }
    }

    pub(super) fn ins<'short>(&'short mut self) -> Inserter<'short, 'a> {
        Inserter(self)
    }

    fn position(&self) -> Block {
        self.here.expect("the builder stands in some block")
    }

    fn insert(&mut self, block: Block) {
        if !self.func.layout.is_block_inserted(block) {
            self.func.layout.append_block(block);
        }
    }

    /// Runs the pending steps; returns the only value that remains.
    fn run(&mut self, variable: Variable, mut todo: Vec<Step>, mut found: Vec<Value>) -> Value {
        while let Some(step) = todo.pop() {
            match step {
                Step::Use(branch) => {
                    let block = self.func.layout.inst_block(branch).expect("it was written");
                    self.find(variable, block, &mut todo, &mut found);
                }
                Step::Finish(param, block) => {
                    let value = self.finish(param, block, &mut found);
                    found.push(value);
                }
            }
        }
        found.pop().expect("what was asked for is found")
    }

    /// Finds the value of a variable at the end of a block, at once or through pending steps.
    fn find(
        &mut self,
        variable: Variable,
        block: Block,
        todo: &mut Vec<Step>,
        found: &mut Vec<Value>,
    ) {
        let mut from = block;
        let value = loop {
            if let Some(&value) = self.known.get(&(variable.as_u32(), from)) {
                found.push(value);
                break value;
            }
            if let Some(before) = self.same_before(variable, from) {
                from = before;
                continue;
            }
            let param = self.func.dfg.append_block_param(from, self.types[variable]);
            self.known.insert((variable.as_u32(), from), param);
            if self.blocks[from].sealed {
                // With too many values the function is discarded, so any value will do.
                if self.known.len() > MAX_KNOWN {
                    found.push(param);
                } else {
                    self.ask_predecessors(param, from, todo);
                }
            } else {
                self.blocks[from].waiting.push((variable, param));
                found.push(param);
            }
            break param;
        };
        // All blocks on the way have the same value.
        let mut at = block;
        while at != from {
            self.known.insert((variable.as_u32(), at), value);
            at = self.dominators.above(at).expect("it was gone through");
        }
    }

    /// The immediate dominator, if a variable that a block does not set is there the same as at its end.
    fn same_before(&self, variable: Variable, block: Block) -> Option<Block> {
        let Predecessors { branches, sealed: true, .. } = &self.blocks[block] else { return None };
        let above = self.dominators.above(block)?;
        let between = |&other: &Block| self.dominators.strictly_dominates(above, other);
        let setters = self.setters[variable].iter().rev();
        let mut later = setters.take_while(|&&setter| self.dominators.is_before(above, setter));
        (branches.len() == 1 || !later.any(between)).then_some(above)
    }

    fn ask_predecessors(&self, param: Value, block: Block, todo: &mut Vec<Step>) {
        todo.push(Step::Finish(param, block));
        todo.extend(self.blocks[block].branches.iter().rev().copied().map(Step::Use));
    }

    /// Completes a parameter with the last of `found`: it stays if these differ, else the only value replaces
    /// it.
    fn finish(&mut self, param: Value, block: Block, found: &mut Vec<Value>) -> Value {
        let branches = &self.blocks[block].branches;
        let values = found.split_off(found.len() - branches.len());
        let dfg = &mut self.func.dfg;
        let mut others =
            values.iter().map(|&value| dfg.resolve_aliases(value)).filter(|&value| value != param);
        let Some(first) = others.next() else {
            // The block is unreachable.
            let ty = dfg.value_type(param);
            dfg.remove_block_param(param);
            let undef = self.undef(block, ty);
            self.func.dfg.change_to_alias(param, undef);
            return undef;
        };
        if others.all(|other| other == first) {
            dfg.remove_block_param(param);
            dfg.change_to_alias(param, first);
            return first;
        }
        for (&branch, value) in branches.iter().zip(values) {
            let calls = dfg.insts[branch]
                .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
            for call in calls {
                if call.block(&dfg.value_lists) == block {
                    call.append_argument(value, &mut dfg.value_lists);
                }
            }
        }
        param
    }
}

impl Builder<'_> {
    /// An undefined value at the begin of `block`.
    fn undef(&mut self, block: Block, ty: Type) -> Value {
        self.insert(block);
        let callee = Intrinsic::Undef.declare(self.func, ty);
        let call =
            FuncCursor::new(self.func).at_first_insertion_point(block).ins().call(callee, &[]);
        self.func.dfg.first_result(call)
    }
}

/// Appends one instruction at the builder's position.
pub(super) struct Inserter<'short, 'long>(&'short mut Builder<'long>);

impl<'short> InstBuilderBase<'short> for Inserter<'short, '_> {
    fn data_flow_graph(&self) -> &DataFlowGraph {
        &self.0.func.dfg
    }

    fn data_flow_graph_mut(&mut self) -> &mut DataFlowGraph {
        &mut self.0.func.dfg
    }

    fn build(self, data: InstructionData, ty: Type) -> (Inst, &'short mut DataFlowGraph) {
        let builder = self.0;
        let here = builder.position();
        builder.insert(here);
        let inst = builder.func.dfg.make_inst(data);
        builder.func.dfg.make_inst_results(inst, ty);
        builder.func.layout.append_inst(inst, here);
        if !builder.place.is_default() {
            builder.func.set_srcloc(inst, builder.place);
        }
        let dfg = &builder.func.dfg;
        for call in edges(dfg, inst) {
            let branches = &mut builder.blocks[call.block(&dfg.value_lists)].branches;
            if branches.last() != Some(&inst) {
                branches.push(inst);
            }
        }
        (inst, &mut builder.func.dfg)
    }

    fn build_aux_inst(&mut self, data: InstructionData, ty: Type) -> Inst {
        Inserter(self.0).build(data, ty).0
    }
}
