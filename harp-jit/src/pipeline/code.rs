//! The end of the pipeline: emits VCode and assembles the compiled function.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::abi::EntryKind;
use crate::convergence;
use crate::emit::{self, Emitted, LaneStack};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, Linked};
use crate::groups::Grouping;
use crate::lock;
use crate::regalloc::Allocated;
use crate::sharing::Setting;
use crate::stats::CompileStats;
use crate::times::StageTimes;
use crate::unit::Unit;
use crate::vcode::{Callee, MInst, VCode};

use super::record::record;

/// Emits the code with the allocated registers.
pub(super) fn emit(
    vcode: &VCode,
    allocated: &Allocated,
    unit: Unit<'_>,
) -> Result<Emitted, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let routines = unit.library.map(|library| library.routines(&mut vcode.references()));
    let routines = routines.transpose()?.unwrap_or_default();
    let routine = |callee: &str| routines.iter().find(|routine| routine.name == callee);
    let unchecked_stack = |callee: &str| match routine(callee) {
        Some(routine) => routine.unchecked_stack(),
        None if lock::is_of_lock(callee) => Some(0),
        None => unit.symbols.unchecked_stack(callee),
    };
    let independent = |callee: &str| {
        lock::is_of_lock(callee) || routine(callee).is_some_and(|routine| !routine.checks_stack())
    };
    let stack = lane_stack(vcode, unit, &independent);
    emit::emit(vcode, allocated, arch, stack, &unchecked_stack, options.records())
        .map_err(|error| error.explain(name))
}

/// How the function's stack is laid out. Functions find the lane control block by the size of the stack;
/// those that are `independent` of it do not look for it. So a kernel that calls only independent functions
/// gets a stack as small as it needs.
fn lane_stack(vcode: &VCode, unit: Unit<'_>, independent: &dyn Fn(&str) -> bool) -> LaneStack {
    let bytes = unit.options.stack_bytes;
    let depends = |inst: &MInst| match inst {
        MInst::Call { callee: Callee::Symbol { symbol, .. }, .. } => {
            !independent(&vcode.symbols[symbol.index()])
        }
        MInst::Call { .. } => true,
        _ => false,
    };
    match unit.entry {
        EntryKind::Function => LaneStack::OfFunction { bytes },
        EntryKind::Kernel => {
            let shared = vcode.insts.iter().any(depends).then_some(bytes);
            LaneStack::OfKernel { shared }
        }
    }
}

/// Assembles the compiled function from its parts.
pub(super) fn assemble(
    unit: Unit<'_>,
    setting: Setting,
    vcode: VCode,
    emitted: Emitted,
    stats: CompileStats,
) -> CompiledFunction {
    let mut locs: Vec<_> = emitted.body.source_locs().collect();
    // Neighbours are mostly from one place, so there is little to sort.
    locs.dedup();
    locs.sort_unstable_by_key(|loc| loc.bits());
    locs.dedup();
    let mut sources = HashMap::with_capacity(locs.len());
    sources.extend(locs.iter().filter_map(|&loc| Some((loc, unit.sources.place(loc)?.clone()))));
    let messages = locs.iter().filter_map(|&loc| Some((loc, unit.sources.message(loc)?.clone())));
    let messages = messages.collect();
    let record = unit.options.records().then(|| record(unit, setting, &vcode, &emitted));
    let kernel = unit.entry == EntryKind::Kernel;
    let proofs = unit.options.convergence.then(|| convergence::prove(&vcode, kernel));
    CompiledFunction {
        proofs: proofs.unwrap_or_default(),
        name: unit.name.to_owned(),
        arch: unit.arch,
        body: emitted.body,
        grouping: Grouping::default(),
        may_gather: true,
        by_rows: setting.by_rows,
        symbols: vcode.symbols,
        stack: emitted.stack,
        lane_stack_bytes: u32::try_from(emitted.lane_stack_bytes).expect("emission limits stacks"),
        sources,
        accesses: Arc::default(),
        reports_accesses: unit.options.report_accesses,
        messages,
        stats,
        branch_fingerprint: 0,
        counters: None,
        times: StageTimes::default(),
        record,
    }
}

/// Proves that the finished code keeps lanes converged where it must. The distance to other functions does
/// not matter for the proof, so the function is placed alone.
pub(super) fn check(compiled: &CompiledFunction) -> Result<(), CompileError> {
    let name = compiled.name();
    let placed = function::place(&[(compiled, Linked::Local)], compiled.arch())
        .map_err(|e| e.explain(name))?;
    placed.iter().try_for_each(|code| {
        code.check().map_err(|error| CompileError::Internal {
            stage: "the check of the machine code",
            message: format!("`{name}`: {error}\n{}", code.disassembly()),
        })
    })
}
