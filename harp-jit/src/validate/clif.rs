//! Translates CLIF for the simulated warp.
//!
//! Instructions that structurization itself makes are computed exactly: truth values, comparisons, choices.
//! Other instructions without side effects are opaque functions of their opcode, type, immediates and
//! operands.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    BlockCall, ExceptionTables, FuncRef, Function, Inst, InstructionData, JumpTables, MemFlagsData,
    Opcode, Type, Value, ValueListPool, types,
};
use smallvec::{SmallVec, smallvec};

use super::program::{
    Arithmetic, Block, Compute, Edge, Exchange, Kind, Op, Outcome, Program, Register, Text, mask,
};
use crate::analysis::{Arguments, Known};
use crate::intrinsic::Intrinsic;
use crate::plan::Plan;
use crate::width::{Rule, Width};

impl<'a> Program<'a> {
    /// Translates `func` under a plan, or for a single lane without one; `known` is what is known about
    /// `func`.
    pub(super) fn of_function(
        func: &'a Function,
        plan: Option<&Plan>,
        known: Known<'_>,
    ) -> Program<'a> {
        let mut program = Program::new(Text::Clif(func), func.dfg.num_blocks());
        program.masks.resize(func.dfg.num_values(), u64::MAX);
        for value in func.dfg.values() {
            program.masks[value.index()] = type_mask(func.dfg.value_type(value));
        }
        let Some(entry) = func.layout.entry_block() else { return program };
        program.entry = entry.index();
        program.params =
            (0..func.dfg.block_params(entry).len()).map(|i| known.params.width(i)).collect();
        let mut reader = Reader { func, plan, known, program };
        for block in func.layout.blocks() {
            let params = reader.values(func.dfg.block_params(block));
            let start = reader.program.ops.len();
            for inst in func.layout.block_insts(block) {
                reader.inst(inst);
            }
            let ops = start..reader.program.ops.len();
            let join = plan.is_some_and(|plan| plan.is_join(block));
            reader.program.blocks[block.index()] = Block { params, ops, join, region_end: None };
            reader.program.count += 1;
        }
        let Reader { mut program, .. } = reader;
        for region in plan.iter().flat_map(|plan| &plan.predicated) {
            program.blocks[region.head.index()].region_end = Some(region.end.index());
        }
        program
    }
}

struct Reader<'a, 'k> {
    func: &'a Function,
    plan: Option<&'k Plan>,
    known: Known<'k>,
    program: Program<'a>,
}

impl Reader<'_, '_> {
    fn values(&mut self, values: &[Value]) -> Range<usize> {
        let dfg = &self.func.dfg;
        let register = |&value: &Value| dfg.resolve_aliases(value).as_u32();
        self.program.list(values.iter().map(register))
    }

    fn edge(&mut self, call: &BlockCall) -> Edge {
        let pool = &self.func.dfg.value_lists;
        let args: SmallVec<[Value; 8]> = call.args(pool).filter_map(|arg| arg.as_value()).collect();
        Edge { target: call.block(pool).index(), args: self.values(&args) }
    }

    fn push(&mut self, inst: Inst, kind: Kind, args: Range<usize>, results: Range<usize>) {
        let op = Op { kind, args, results, guard: None, kept: None, source: inst.index() };
        self.program.ops.push(op);
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let args = self.values(func.dfg.inst_args(inst));
        let results = self.values(func.dfg.inst_results(inst));
        let kind = match func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => Kind::Jump(self.edge(&destination)),
            InstructionData::Brif { blocks, .. } => {
                let edges = blocks.map(|call| self.edge(&call));
                let split = self.plan.is_some_and(|plan| plan.is_split(inst));
                Kind::Branch { edges, split }
            }
            InstructionData::Trap { code, .. } => Kind::Trap { key: key(&("trap", code)) },
            InstructionData::Call { opcode, func_ref, .. } => {
                match Intrinsic::of_call(func, inst) {
                    Some(intrinsic) if opcode == Opcode::Call => self.intrinsic(intrinsic, inst),
                    _ => return self.call(inst, opcode, key(&("call", func_ref)), Some(func_ref)),
                }
            }
            InstructionData::CallIndirect { opcode, sig_ref, .. } => {
                return self.call(inst, opcode, key(&("call", sig_ref)), None);
            }
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => {
                Kind::Return { key: RETURN }
            }
            ref data if data.opcode().is_terminator() => Kind::Unknown,
            InstructionData::FloatCompare { .. } => {
                // A truth value.
                let result = func.dfg.first_result(inst);
                self.program.masks[result.index()] = 1;
                Kind::Opaque(self.instruction_key(inst))
            }
            _ => self.computation(inst),
        };
        self.push(inst, kind, args, results);
    }

    /// A call of a function, and the return after it if it is a tail call.
    fn call(&mut self, inst: Inst, opcode: Opcode, key: u64, callee: Option<FuncRef>) {
        let func = self.func;
        let args = self.values(func.dfg.inst_args(inst));
        let outcome = |index: usize| {
            let fact = callee.and_then(|callee| self.known.callees.result(func, callee, index));
            fact.filter(|fact| fact.width > Width::Thread)
                .map_or(Outcome::Any, |fact| Outcome::OfWarp(fact.depends))
        };
        if !opcode.is_return() {
            let outcomes = (0..func.dfg.inst_results(inst).len()).map(outcome).collect();
            let results = self.values(func.dfg.inst_results(inst));
            let kind = Kind::Effect { key, outcomes, writes_frame: false };
            return self.push(inst, kind, args, results);
        }
        let outcomes: SmallVec<_> = (0..func.signature.returns.len()).map(outcome).collect();
        let returned: SmallVec<[Register; 2]> = (func.signature.returns.iter())
            .map(|result| self.program.register(type_mask(result.value_type)))
            .collect();
        let results = self.program.list(returned);
        let kind = Kind::Effect { key, outcomes, writes_frame: false };
        self.push(inst, kind, args, results.clone());
        self.push(inst, Kind::Return { key: RETURN }, results, 0..0);
    }

    fn intrinsic(&self, intrinsic: Intrinsic, inst: Inst) -> Kind {
        let own = self.plan.is_some_and(|plan| plan.is_own(inst));
        let result = self.func.dfg.inst_results(inst).first();
        let bits = result.map_or(0, |&result| self.func.dfg.value_type(result).bits() as usize);
        let exchange = match intrinsic {
            Intrinsic::Undef => return Kind::Undefined { own },
            Intrinsic::Never => return Kind::Constant(0),
            Intrinsic::LANE_ID => return Kind::LaneNumber,
            Intrinsic::Any => Exchange::Any,
            Intrinsic::All => Exchange::All,
            Intrinsic::Ballot => Exchange::Ballot { first: 0 },
            Intrinsic::BallotHigh => Exchange::Ballot { first: bits },
            Intrinsic::Shuffle => Exchange::Shuffle,
            Intrinsic::OfSomeLane | Intrinsic::AssumeUniform => Exchange::OfSomeLane,
            Intrinsic::Barrier(_) => {
                let key = key(&intrinsic);
                return Kind::Effect { key, outcomes: smallvec![], writes_frame: false };
            }
            other => {
                let Rule::Fixed(width) = other.rule() else { return Kind::Unknown };
                return Kind::Ask(key(&intrinsic), width);
            }
        };
        if own {
            return Kind::Vote(exchange);
        }
        let outcomes = smallvec![Outcome::Exchange(exchange)];
        Kind::Effect { key: key(&intrinsic), outcomes, writes_frame: false }
    }

    /// An instruction that is not a call and does not end a block.
    fn computation(&self, inst: Inst) -> Kind {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let opcode = data.opcode();
        if let Some(known) = self.known_function(inst) {
            return known;
        }
        let key = self.instruction_key(inst);
        let results = dfg.inst_results(inst).len();
        if opcode.can_load() || opcode.can_store() || opcode.other_side_effects() {
            let readonly = data.memflags_data(dfg).is_some_and(MemFlagsData::readonly);
            let outcome = match opcode {
                Opcode::Load if readonly => Outcome::OfOperands,
                _ if self.is_exchanged(inst) => Outcome::OfWarp(OF_ADDRESS),
                _ => Outcome::Any,
            };
            let outcomes = std::iter::repeat_n(outcome, results).collect();
            return Kind::Effect { key, outcomes, writes_frame: false };
        }
        if opcode.can_trap() {
            let outcomes = std::iter::repeat_n(Outcome::OfOperands, results).collect();
            return Kind::Effect { key, outcomes, writes_frame: false };
        }
        if dfg.inst_args(inst).is_empty() {
            let constant = matches!(
                data,
                InstructionData::UnaryImm { .. }
                    | InstructionData::UnaryIeee16 { .. }
                    | InstructionData::UnaryIeee32 { .. }
                    | InstructionData::UnaryIeee64 { .. }
                    | InstructionData::UnaryConst { .. }
                    | InstructionData::FuncAddr { .. }
                    | InstructionData::UnaryGlobalValue { .. }
            );
            return Kind::Ask(key, if constant { Width::Grid } else { Width::Thread });
        }
        Kind::Opaque(key)
    }

    /// Whether the compiler lets lanes have what one of them has loaded. Then all load the same, as nothing happens in between.
    fn is_exchanged(&self, load: Inst) -> bool {
        let func = self.func;
        let behind = func.layout.next_inst(load).filter(|&next| {
            let own = self.plan.is_some_and(|plan| plan.is_own(next));
            own && Intrinsic::of_call(func, next) == Some(Intrinsic::OfSomeLane)
        });
        behind.is_some_and(|next| func.dfg.inst_args(next) == func.dfg.inst_results(load))
    }

    /// An instruction that is computed exactly.
    fn known_function(&self, inst: Inst) -> Option<Kind> {
        let dfg = &self.func.dfg;
        let ty = |value: Value| dfg.value_type(value);
        let words = |ty: Type| ty.is_int() && ty.bits() <= 64;
        let result = *dfg.inst_results(inst).first()?;
        let known = match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                Kind::Constant(imm.bits().cast_unsigned())
            }
            InstructionData::Ternary { opcode: Opcode::Select, .. } => {
                Kind::Compute(Compute::Select)
            }
            InstructionData::IntCompare { cond, args, .. } if words(ty(args[0])) => {
                Kind::Compute(Compute::Compare(cond, ty(args[0]).bits()))
            }
            InstructionData::Unary { opcode, arg } if words(ty(arg)) && words(ty(result)) => {
                Kind::Compute(match opcode {
                    Opcode::Bnot => Compute::Not,
                    Opcode::Uextend | Opcode::Ireduce => Compute::Copy,
                    Opcode::Sextend => Compute::SignExtend(ty(arg).bits()),
                    _ => return None,
                })
            }
            InstructionData::Binary { opcode, .. } if words(ty(result)) => {
                let arithmetic =
                    |operation| Some(Kind::Arithmetic(operation, self.instruction_key(inst)));
                match opcode {
                    Opcode::Band => Kind::Compute(Compute::And),
                    Opcode::Bor => Kind::Compute(Compute::Or),
                    Opcode::Bxor => Kind::Compute(Compute::Xor),
                    Opcode::Iadd => return arithmetic(Arithmetic::Add),
                    Opcode::Isub => return arithmetic(Arithmetic::Subtract),
                    Opcode::Imul => return arithmetic(Arithmetic::Multiply),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(known)
    }

    /// A key of everything in an instruction except its operands.
    fn instruction_key(&self, inst: Inst) -> u64 {
        let mut data = self.func.dfg.insts[inst];
        let (opcode, ty) = (data.opcode(), self.func.dfg.ctrl_typevar(inst));
        if let InstructionData::MultiAry { .. } = data {
            return key(&(opcode, ty));
        }
        // The remaining instructions have their operands in place.
        data.map_values(
            &mut ValueListPool::new(),
            &mut JumpTables::new(),
            &mut ExceptionTables::new(),
            |_| Value::from_u32(0),
        );
        key(&(data, ty))
    }
}

/// The operand of a load.
const OF_ADDRESS: Arguments = Arguments(1);

/// The key of all returns.
const RETURN: u64 = 0x7265_7475_726e;

/// The mask of the bits that count of a value; of a truth value only the lowest.
fn type_mask(ty: Type) -> u64 {
    if ty == types::INVALID { u64::MAX } else { mask(ty.bits()) }
}

pub(super) fn key(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
