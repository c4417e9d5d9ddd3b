//! What random functions reached: operations, constructs, machines, endings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Endianness, Function, Inst, InstructionData, Opcode};

use crate::oracle::{Effect, Ending, Executed, ModuleCase, Stop};

/// How often something was reached, by name.
pub type Counts = BTreeMap<String, u64>;

/// What runs came to, so that a vacuous one is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Modules, and functions in them.
    pub modules: u64,
    /// See `modules`.
    pub functions: u64,
    /// Functions compiled for a machine at a level, all with the allocator's checker on.
    pub compilations: u64,
    /// Calls on a machine that agreed with the oracle.
    pub runs: u64,
    /// Instructions that machines issued in them.
    pub issued: u64,
    /// Operations that the oracle executed, an instruction counted once: `iadd.i8`.
    pub operations: Counts,
    /// Operations of the modules that were compiled, executed or not.
    pub compiled_operations: Counts,
    /// Modules with a construct that was executed.
    pub constructs: Counts,
    /// Agreeing runs by machine and level.
    pub machines: Counts,
    /// Agreeing runs by how they ended.
    pub endings: Counts,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        self.modules += other.modules;
        self.functions += other.functions;
        self.compilations += other.compilations;
        self.runs += other.runs;
        self.issued += other.issued;
        let all = [
            (&mut self.operations, other.operations),
            (&mut self.compiled_operations, other.compiled_operations),
            (&mut self.constructs, other.constructs),
            (&mut self.machines, other.machines),
            (&mut self.endings, other.endings),
        ];
        for (counts, more) in all {
            for (name, count) in more {
                *counts.entry(name).or_default() += count;
            }
        }
    }
}

impl Reached {
    /// What the oracle says about a case.
    pub(super) fn of(case: &ModuleCase, effect: &Effect, executed: &Executed) -> Reached {
        let mut reached =
            Reached { modules: 1, functions: case.functions.len() as u64, ..Reached::default() };
        for (index, func) in case.functions.iter().enumerate() {
            for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
                let name = operation(func, inst);
                if executed.contains(&(index, inst)) {
                    *reached.operations.entry(name.clone()).or_default() += 1;
                }
                *reached.compiled_operations.entry(name).or_default() += 1;
            }
        }
        for construct in constructs(case, executed) {
            reached.constructs.insert(construct.to_owned(), 1);
        }
        if let Ending::Trap(Stop::BadAddress) = effect.ending {
            reached.constructs.insert("an access to nowhere".to_owned(), 1);
        }
        reached
    }
}

/// How a call ended, as a name.
pub(super) fn ending(effect: &Effect) -> String {
    match effect.ending {
        Ending::Values(_) => "results".to_owned(),
        Ending::Trap(Stop::Code(code)) => format!("trap {code}"),
        Ending::Trap(Stop::BadAddress) => "bad address".to_owned(),
        Ending::Trap(Stop::DivideByZero) => "division by zero".to_owned(),
    }
}

/// An instruction's opcode with the type that decides about it, then what else does: the other type of
/// a conversion, the condition of a comparison, what an atomic access does.
pub fn operation(func: &Function, inst: Inst) -> String {
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    let ty = func.dfg.ctrl_typevar(inst);
    let mut name = opcode.to_string();
    if !ty.is_invalid() {
        name += &format!(".{ty}");
    }
    match data {
        InstructionData::IntCompare { cond, .. } => name += &format!(".{cond}"),
        InstructionData::FloatCompare { cond, .. } => name += &format!(".{cond}"),
        InstructionData::AtomicRmw { op, .. } => name += &format!(".{op}"),
        InstructionData::Unary { arg, .. } => {
            let from = func.dfg.value_type(*arg);
            if from != ty {
                name += &format!(".{from}");
            }
        }
        InstructionData::LoadNoOffset { arg, .. } if opcode == Opcode::Bitcast => {
            name += &format!(".{}", func.dfg.value_type(*arg));
        }
        _ => {}
    }
    name
}

/// Names of what a case has and executed.
fn constructs(case: &ModuleCase, executed: &Executed) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for (index, func) in case.functions.iter().enumerate() {
        let runs = |inst| executed.contains(&(index, inst));
        let cfg = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &cfg);
        let mut before = BTreeSet::new();
        for block in func.layout.blocks() {
            before.insert(block);
            let last = func.layout.last_inst(block);
            for successor in cfg.succ_iter(block).filter(|_| last.is_some_and(runs)) {
                // Backward in the layout: the generator lays out blocks in the order in which it makes
                // them, so a loop has such an edge.
                if !before.contains(&successor) || !dominators.is_reachable(block) {
                    continue;
                }
                found.insert(match dominators.block_dominates(successor, block) {
                    true => "a loop",
                    false => "a backward branch to a block that does not dominate it",
                });
            }
            for inst in func.layout.block_insts(block).filter(|&inst| runs(inst)) {
                found.extend(of_inst(func, inst));
            }
        }
        if func.signature.params.len() > 6 {
            found.insert("more than six parameters");
        }
        if func.signature.returns.len() > 4 {
            found.insert("more than four results");
        }
        if has_sum_trap(func) {
            found.insert("a sum with a trap");
        }
    }
    found
}

fn of_inst(func: &Function, inst: Inst) -> Option<&'static str> {
    let data = &func.dfg.insts[inst];
    let big = |flags: cranelift_codegen::ir::MemFlagsData| {
        flags.explicit_endianness() == Some(Endianness::Big)
    };
    match data.opcode() {
        Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas => {
            let flags = data.memflags_data(&func.dfg)?;
            big(flags).then_some("a big-endian atomic access")
        }
        Opcode::Load | Opcode::Store => {
            let flags = data.memflags_data(&func.dfg)?;
            Some(match (big(flags), flags.aligned()) {
                (true, _) => "a big-endian access",
                (false, true) => "an aligned access",
                (false, false) => "an access in any alignment",
            })
        }
        Opcode::StackAddr => Some("a stack slot"),
        Opcode::Call => Some("a call"),
        Opcode::CallIndirect => Some("an indirect call"),
        Opcode::ReturnCall => Some("a tail call"),
        Opcode::ReturnCallIndirect => Some("an indirect tail call"),
        Opcode::BrTable => Some("a table of branches"),
        _ => None,
    }
}

fn has_sum_trap(func: &Function) -> bool {
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| func.dfg.insts[inst].opcode() == Opcode::UaddOverflowTrap)
}

/// What the generator makes: an operation that a long run never executed is a defect of it.
pub fn all_operations() -> BTreeSet<String> {
    let ints = ["i8", "i16", "i32", "i64"];
    let floats = ["f32", "f64"];
    let mut all = BTreeSet::new();
    let mut each = |names: &str, types: &[&str]| {
        for name in names.split_whitespace() {
            all.extend(types.iter().map(|ty| format!("{name}.{ty}")));
        }
    };
    each("iconst iadd isub imul ineg iabs umulhi smulhi udiv urem sdiv srem", &ints);
    each("smin smax umin umax band bor bxor bnot bitselect blendv", &ints);
    each("ishl ushr sshr rotl rotr popcnt clz ctz cls bitrev", &ints);
    each("uadd_overflow sadd_overflow usub_overflow ssub_overflow", &ints);
    each("umul_overflow smul_overflow uadd_overflow_cin sadd_overflow_cin", &ints);
    each("usub_overflow_bin ssub_overflow_bin select select_spectre_guard", &ints);
    each("bswap isplit", &ints[1..]);
    each("iconcat", &ints[..3]);
    each("uadd_overflow_trap", &ints[2..]);
    each("fadd fsub fmul fdiv sqrt fma fmin fmax fneg fabs fcopysign", &floats);
    each("ceil floor trunc nearest bitselect select select_spectre_guard", &floats);
    each("load store", &[&ints[..], &floats].concat());
    each("uload8 sload8 istore8", &ints[1..]);
    each("uload16 sload16 istore16", &ints[2..]);
    // The type is that of the address; of what is stored, it is that of the number.
    each("uload32 sload32", &ints[2..]);
    each("istore32", &ints[3..]);
    each("trapz trapnz brif", &ints);
    each("atomic_load atomic_store atomic_cas", &ints);
    each("stack_addr symbol_value func_addr", &ints[2..]);
    each("call_indirect return_call_indirect", &ints[2..]);
    for ty in ints {
        for condition in "eq ne slt sle sgt sge ult ule ugt uge".split(' ') {
            all.insert(format!("icmp.{ty}.{condition}"));
        }
        for op in "add sub and nand or xor xchg umin umax smin smax".split(' ') {
            all.insert(format!("atomic_rmw.{ty}.{op}"));
        }
        for from in ints {
            let other = if from == ty { String::new() } else { format!(".{from}") };
            all.insert(format!("bmask.{ty}{other}"));
        }
        for float in floats {
            for name in ["fcvt_to_sint", "fcvt_to_uint", "fcvt_to_sint_sat", "fcvt_to_uint_sat"] {
                all.insert(format!("{name}.{ty}.{float}"));
            }
            for name in ["fcvt_from_sint", "fcvt_from_uint"] {
                all.insert(format!("{name}.{float}.{ty}"));
            }
        }
    }
    for (narrow, wide) in [
        ("i8", "i16"),
        ("i8", "i32"),
        ("i8", "i64"),
        ("i16", "i32"),
        ("i16", "i64"),
        ("i32", "i64"),
    ] {
        all.extend(["uextend", "sextend"].map(|name| format!("{name}.{wide}.{narrow}")));
        all.insert(format!("ireduce.{narrow}.{wide}"));
    }
    let conditions = "eq ne lt le gt ge ord uno one ueq ult ule ugt uge";
    for ty in floats {
        all.extend(conditions.split(' ').map(|condition| format!("fcmp.{ty}.{condition}")));
    }
    let single = "f32const f64const fpromote.f64.f32 fdemote.f32.f64 bitcast.i32.f32 bitcast.f32.i32 \
                  bitcast.i64.f64 bitcast.f64.i64 jump br_table return call return_call trap fence";
    all.extend(single.split(' ').map(str::to_owned));
    all
}

/// The constructs that a long run must have executed.
pub const CONSTRUCTS: [&str; 17] = [
    "a big-endian atomic access",
    "a loop",
    "a backward branch to a block that does not dominate it",
    "a big-endian access",
    "an aligned access",
    "an access in any alignment",
    "a stack slot",
    "a call",
    "an indirect call",
    "a tail call",
    "an indirect tail call",
    "a table of branches",
    "more than six parameters",
    "more than four results",
    "a sum with a trap",
    "spill slots",
    "spilled predicates",
];
