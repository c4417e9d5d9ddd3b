//! Maps values of the old function to the new one.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{
    Block, Inst, InstBuilder, InstBuilderBase, InstructionData, Opcode, Type, Value, ValueDef,
};
use cranelift_frontend::Variable;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::{Method, RegionId, Writer};
use crate::analysis::Node;
use crate::intrinsic::Intrinsic;

impl Writer<'_> {
    /// Creates variables for block parameters, and for values used in another block if not all paths from the
    /// definition to the use need be preserved: out of a loop, or in and around linear regions. All other
    /// values still dominate their uses.
    ///
    /// Parameters that are set just before they are read share variables.
    pub(super) fn find_variables(&mut self) {
        let (old, facts) = (self.old, self.facts);
        let (mut used, mut across) = (EntitySet::new(), EntitySet::new());
        for block in facts.flow().blocks() {
            for inst in old.layout.block_insts(block) {
                for value in old.dfg.inst_values(inst) {
                    let value = old.dfg.resolve_aliases(value);
                    let home = self.home(value);
                    used.insert(value);
                    if home != block {
                        across.insert(value);
                        self.escapes[value] |= facts.flow().leaves_loop(home, block);
                    }
                }
            }
        }
        let (linear, detours) = (self.linear_blocks(), self.detours());
        let entry = old.layout.entry_block();
        let mut shared = HashMap::new();
        for block in facts.flow().blocks() {
            let moved = linear.contains(&block);
            let insts = old.layout.block_insts(block);
            for &result in insts.flat_map(|inst| old.dfg.inst_results(inst)) {
                let leaves = across.contains(result) && (moved || self.escapes[result]);
                if leaves && !self.is_constant(result) {
                    self.variables[result] = Some(self.b.declare_var(old.dfg.value_type(result)));
                }
            }
            let params = old.dfg.block_params(block).iter().enumerate();
            for (index, &param) in params.filter(|_| Some(block) != entry) {
                let ty = old.dfg.value_type(param);
                let own = moved || self.escapes[param] || detours.contains(&block);
                self.variables[param] = if own {
                    Some(self.b.declare_var(ty))
                } else if used.contains(param) {
                    self.read_at_once.insert(param);
                    let declare = || self.b.declare_var(ty);
                    Some(*shared.entry((ty, index)).or_insert_with(declare))
                } else {
                    None
                };
            }
        }
    }

    /// The blocks of linear regions.
    fn linear_blocks(&self) -> HashSet<Block> {
        self.regions.all_blocks(self.facts.flow(), self.linear_regions())
    }

    /// Blocks that lanes may be on their way to while others set parameters of other blocks: the ends of
    /// linear regions, and the headers and exits of masked loops.
    fn detours(&self) -> HashSet<Block> {
        let levels = self.facts.flow().levels();
        let mut found = HashSet::new();
        for id in self.linear_regions() {
            let region = self.regions.get(id);
            let end = levels.level(region.level).nodes.get(region.end);
            found.extend(end.map(|&node| levels.first_block(node)));
        }
        for around in levels.ids().filter_map(|id| levels.level(id).around) {
            if self.regions.is_masked(around) {
                found.insert(levels.first_block(Node::Loop(around)));
                found.extend(levels.exits(around));
            }
        }
        found
    }

    fn linear_regions(&self) -> impl Iterator<Item = RegionId> {
        let linear = |id| self.decisions.technique(self.regions, id) == Method::Linear;
        self.regions.iter().map(|(id, _)| id).filter(move |&id| linear(id))
    }

    /// Reads the block's parameters that share variables, at the begin of the block.
    pub(super) fn read_parameters(&mut self, block: Block) {
        for &param in self.old.dfg.block_params(block) {
            if self.read_at_once.contains(param)
                && let Some(variable) = self.variables[param]
            {
                self.fixed[param] = Some(self.b.use_var(variable));
            }
        }
    }

    /// The block of a value's definition.
    pub(super) fn home(&self, value: Value) -> Block {
        let block = match self.old.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.old.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        };
        block.expect("the mid-end leaves values with one definition")
    }

    /// The variables of the values that a block defines.
    pub(super) fn variables_of(&self, block: Block) -> Vec<(Value, Variable)> {
        let params = self.old.dfg.block_params(block).iter();
        let insts = self.old.layout.block_insts(block);
        let results = insts.flat_map(|inst| self.old.dfg.inst_results(inst));
        let with_variable = |&value: &Value| Some((value, self.variables[value]?));
        params.chain(results).filter_map(with_variable).collect()
    }

    /// Whether the value is a constant, which is rematerialized at its uses.
    fn is_constant(&self, value: Value) -> bool {
        let Some(inst) = self.old.dfg.value_def(value).inst() else { return false };
        matches!(
            self.old.dfg.insts[inst].opcode(),
            Opcode::Iconst | Opcode::F32const | Opcode::F64const
        )
    }

    /// Maps the parameters of the function, and gives all variables a first definition.
    pub(super) fn function_parameters(&mut self, entry: Block) {
        let here = self.b.current_block().expect("the builder stands in the entry");
        let mut types: Vec<Type> = Self::OWN_TYPES.to_vec();
        let variables: Vec<(Variable, Type)> = (self.variables.iter())
            .filter_map(|(value, &variable)| Some((variable?, self.old.dfg.value_type(value))))
            .collect();
        types.extend(variables.iter().map(|&(_, ty)| ty));
        for &param in self.old.dfg.block_params(entry) {
            let new = self.b.append_block_param(here, self.old.dfg.value_type(param));
            self.fixed[param] = Some(new);
        }
        for ty in types {
            if !self.undefs.iter().any(|&(known, _)| known == ty) {
                let callee = Intrinsic::Undef.declare(self.b.func, ty);
                let call = self.b.ins().call(callee, &[]);
                self.plan.own.insert(call);
                let undef = self.b.func.dfg.first_result(call);
                self.undefs.push((ty, undef));
            }
        }
        for (variable, ty) in variables {
            let undef = self.undef(ty);
            self.b.def_var(variable, undef);
        }
    }

    /// An undefined value of this type.
    pub(super) fn undef(&self, ty: Type) -> Value {
        let known = self.undefs.iter().find(|&&(known, _)| known == ty);
        known.expect("there is one for the type of every variable").1
    }

    /// Copies an instruction that is not a terminator.
    pub(super) fn copy(&mut self, inst: Inst) {
        let old = self.old;
        if let [result] = *old.dfg.inst_results(inst)
            && self.is_constant(result)
        {
            return;
        }
        let new = self.build(inst);
        if self.own.contains(inst) {
            self.plan.own.insert(new);
        }
        for (index, &before) in old.dfg.inst_results(inst).iter().enumerate() {
            let after = self.b.func.dfg.inst_results(new)[index];
            if !self.steering.contains(before) {
                self.copied.insert(after);
            }
            match self.variables[before] {
                Some(variable) => {
                    self.here.insert(before, after);
                    self.b.def_var(variable, after);
                }
                None => self.fixed[before] = Some(after),
            }
        }
    }

    /// Writes an instruction without block arguments, with the operands as they are at the builder's
    /// position.
    pub(super) fn build(&mut self, inst: Inst) -> Inst {
        let old = self.old;
        let args: SmallVec<[Value; 4]> =
            old.dfg.inst_args(inst).iter().map(|&arg| self.value(arg)).collect();
        self.b.set_srcloc(old.srcloc(inst));
        // The new function began as a copy of the old one, so it has the instruction's data.
        let dfg = &mut self.b.func.dfg;
        let ty = dfg.ctrl_typevar(inst);
        let mut data: InstructionData = dfg.insts[inst].deep_clone(&mut dfg.value_lists);
        let mut args = args.into_iter();
        data.map_values(
            &mut dfg.value_lists,
            &mut dfg.jump_tables,
            &mut dfg.exception_tables,
            |_| args.next().expect("a value for each operand"),
        );
        self.b.ins().build(data, ty).0
    }

    /// The new value of an old one at the builder's position.
    pub(super) fn value(&mut self, value: Value) -> Value {
        let value = self.old.dfg.resolve_aliases(value);
        if let Some(new) = self.fixed[value].or_else(|| self.here.get(&value).copied()) {
            return new;
        }
        if self.is_constant(value) {
            return self.constant(value);
        }
        let variable = self.variables[value].expect("what is used elsewhere has a variable");
        self.b.use_var(variable)
    }

    fn constant(&mut self, value: Value) -> Value {
        let here = self.b.current_block().expect("code is written in some block");
        if let Some(&known) = self.constants.get(&(here, value)) {
            return known;
        }
        let inst = self.old.dfg.value_def(value).inst().expect("a constant is computed");
        let place = self.b.srcloc();
        let new = self.build(inst);
        self.b.set_srcloc(place);
        let new = self.b.func.dfg.first_result(new);
        self.constants.insert((here, value), new);
        new
    }

    /// A condition as 0 or 1.
    pub(super) fn truth(&mut self, condition: Value) -> Value {
        if self.comparison(condition).is_some() {
            return condition;
        }
        let ty = self.b.func.dfg.value_type(condition);
        let zero = self.b.ins().iconst(ty, 0);
        let truth = self.b.ins().icmp(IntCC::NotEqual, condition, zero);
        self.steers_too(condition, truth)
    }

    /// The negation of a truth value. `is_read` says whether the truth value itself has other uses.
    pub(super) fn not(&mut self, truth: Value, is_read: bool) -> Value {
        if !is_read
            && let Some(InstructionData::IntCompare { args, cond, .. }) = self.comparison(truth)
            && matches!(cond, IntCC::Equal | IntCC::NotEqual)
        {
            let opposite = self.b.ins().icmp(cond.complement(), args[0], args[1]);
            return self.steers_too(truth, opposite);
        }
        let one = self.b.ins().iconst(I8, 1);
        let opposite = self.b.ins().bxor(truth, one);
        self.steers_too(truth, opposite)
    }

    /// Marks `other` as steering if `condition` is; returns `other`.
    fn steers_too(&mut self, condition: Value, other: Value) -> Value {
        if self.plan.steering.contains(condition) {
            self.plan.steering.insert(other);
        }
        other
    }

    fn comparison(&self, value: Value) -> Option<InstructionData> {
        let dfg = &self.b.func.dfg;
        let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
        match dfg.insts[inst] {
            data @ (InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. }) => {
                Some(data)
            }
            _ => None,
        }
    }
}
