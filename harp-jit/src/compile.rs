//! The road of one function, from CLIF to machine code.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::{CodegenError, Context};

use crate::abi::EntryKind;
use crate::abi::word_int;
use crate::convergence;
use crate::divergence::decide::Shares;
use crate::divergence::predicate::Predicated;
use crate::emit::{self, Emitted, LaneStack};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction};
use crate::legalize::Opcodes;
use crate::managed::{self, Managed};
use crate::options::{CompileOptions, Execution, OptLevel};
use crate::precheck::{precheck, verify};
use crate::profile::{BranchCounters, Branches};
use crate::record::record;
use crate::regalloc::{self, Allocated};
use crate::stats::CompileStats;
use crate::stores::{self, TooManyKinds};
use crate::times::{Clock, Stage, StageTimes};
use crate::unit::Unit;
use crate::vcode::{Callee, MInst, VCode};
use crate::{branches, isel, legalize};

/// The whole road.
pub(crate) fn compile(func: &Function, unit: Unit<'_>) -> Result<CompiledFunction, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let clif_insts = count_insts(func);
    let clock = Clock::new();
    let Selected { func, mut vcode, predicated, branches, shares } = select(func, unit, &clock)?;
    emit::turn_branches(&mut vcode);
    clock.begin(Stage::Allocation);
    let allocated = regalloc::allocate(&vcode, arch, options.verify)?;
    clock.begin(Stage::Emission);
    let routines = unit.library.map(|library| library.routines(&mut vcode.references()));
    let routines = routines.transpose()?.unwrap_or_default();
    let routine = |callee: &str| routines.iter().find(|routine| routine.name == callee);
    let unchecked_stack = |callee: &str| match routine(callee) {
        Some(routine) => routine.unchecked_stack(),
        None => unit.symbols.unchecked_stack(callee),
    };
    let independent = |callee: &str| routine(callee).is_some_and(|routine| !routine.checks_stack());
    let stack = lane_stack(&vcode, unit, &independent);
    let emitted = emit::emit(&vcode, &allocated, arch, stack, &unchecked_stack, options.records())
        .map_err(|e| e.explain(name))?;

    let stats = CompileStats {
        clif_insts,
        optimized_insts: count_insts(&func),
        ..statistics(shares, predicated, &vcode, &allocated)
    };
    let compiled = compiled(unit, vcode, emitted, stats);
    let compiled = CompiledFunction {
        branch_fingerprint: branches.fingerprint(),
        counters: unit.counters.map(|_| BranchCounters::new(name, arch, &branches)),
        times: clock.times(),
        ..compiled
    };
    if options.check_code {
        check_code(&compiled)?;
    }
    Ok(compiled)
}

/// Proves that the finished code keeps lanes together as it must. How far away other functions are does
/// not matter, so it is placed alone.
fn check_code(compiled: &CompiledFunction) -> Result<(), CompileError> {
    let name = compiled.name();
    let placed = function::place(&[compiled], compiled.arch()).map_err(|e| e.explain(name))?;
    placed.iter().try_for_each(|code| {
        code.check().map_err(|error| CompileError::Internal {
            stage: "the check of the machine code",
            message: format!("`{name}`: {error}\n{}", code.disassembly()),
        })
    })
}

/// What the road's first half comes to.
pub(crate) struct Selected {
    pub(crate) func: Function,
    pub(crate) vcode: VCode,
    predicated: Predicated,
    branches: Branches,
    shares: Shares,
}

/// The road's first half: up to machine instructions over virtual registers.
pub(crate) fn select(
    func: &Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<Selected, CompileError> {
    let Unit { name, options, .. } = unit;
    let func = legal(func, unit, clock)?;
    clock.begin(Stage::Divergence);
    let Managed { func, plan, branches, shares } = match options.execution {
        Execution::Simt => managed::manage(func, unit, clock)?,
        Execution::SingleLane => {
            let (plan, branches, shares) = Default::default();
            Managed { func, plan, branches, shares }
        }
    };
    log::debug!("legal CLIF of `{name}`:\n{}\nplan:\n{plan}", func.display());

    clock.begin(Stage::Selection);
    let (mut vcode, blocks) = isel::select(&func, &plan, unit.target())
        .map_err(|error| error.explain(&func, unit.sources))?;
    log::debug!("VCode of `{name}`:\n{vcode}");
    let predicated = managed::predicate(&mut vcode, &plan, &blocks, unit)?;
    Ok(Selected { func, vcode, predicated, branches, shares })
}

/// The function in legal CLIF.
pub(crate) fn legal(
    func: &Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<Function, CompileError> {
    unit.options.check()?;
    let mut func = optimize(func.clone(), unit)?;
    clock.begin(Stage::Legalization);
    legalize::legalize(&mut func);
    branches::simplify_conditions(&mut func);
    unit.verify(&func, "legalization")?;
    Ok(func)
}

/// The function in the form in which divergence is decided upon.
pub(crate) fn canonical(func: &Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    let clock = Clock::new();
    let (prepared, _) = managed::prepare(legal(func, unit, &clock)?, unit, &clock)?;
    Ok(prepared.func)
}

/// Functions find the lane control block by the size of the stack. Those that are `independent` of it do
/// not look for it, so a kernel that calls no others gets the stack that it needs.
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

/// Verifies the function, brings its values to the machine's word and runs it through Cranelift's
/// mid-end.
fn optimize(mut func: Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    precheck(&func).map_err(|refusal| refusal.explain(name, &func, unit.sources))?;
    if options.verify_input || options.verify {
        let invalid = |message: String| CompileError::Invalid { kernel: name.to_owned(), message };
        verify(&func, &options.flags()).map_err(|errors| invalid(errors.to_string()))?;
    }
    let opcodes = Opcodes::of(&func);
    legalize::check_registers(&func, &opcodes).map_err(|e| e.explain(&func, unit.sources))?;
    legalize::frame_values(&mut func, word_int(arch.word()), &opcodes)
        .map_err(|e| e.explain(&func, unit.sources))?;
    legalize::check_intrinsics(&func, &opcodes).map_err(|e| e.explain(&func, unit.sources))?;
    legalize::check_calls(&func, &opcodes).map_err(|e| e.explain(&func, unit.sources))?;
    legalize::expand_global_values(&mut func, word_int(arch.word()), &opcodes)
        .map_err(|e| e.explain(&func, unit.sources))?;
    legalize::copy_structures(&mut func, word_int(arch.word()))
        .map_err(|e| e.explain(&func, unit.sources))?;
    if options.check_alignment {
        legalize::check_alignment(&mut func);
    }
    legalize::single_results(&mut func, &opcodes);
    let mut func = mid_end(func, options)?;
    let rerun = legalize::fit_word(&mut func, arch, options.execution, unit.large_code())
        .map_err(|e| e.explain(&func, unit.sources))?;
    unit.verify(&func, "fitting values to words")?;
    if rerun { mid_end(func, options) } else { Ok(func) }
}

/// Cranelift's mid-end, in the order of `Context::optimize`, which asks for a target that Cranelift
/// knows; branches of loops are turned to its liking.
fn mid_end(func: Function, options: &CompileOptions) -> Result<Function, CompileError> {
    let flags = options.flags();
    let internal = |error: CodegenError| CompileError::Internal {
        stage: "mid-end",
        message: match error {
            CodegenError::Verifier(errors) => errors.to_string(),
            other => other.to_string(),
        },
    };
    let mut context = Context::for_function(func);
    context.compute_cfg();
    context.compute_domtree();
    context.eliminate_unreachable_code(&flags).map_err(internal)?;
    context.remove_constant_phis(&flags).map_err(internal)?;
    context.func.dfg.resolve_all_aliases();
    if options.opt_level == OptLevel::Speed {
        context.compute_loop_analysis();
        // The graph is the same then, but the tree has the order of a branch's sides.
        if branches::leave_loops_by_jumping(&mut context.func, &context.loop_analysis) {
            context.compute_domtree();
        }
        let name = context.func.name.to_string();
        let too_many = |TooManyKinds| CompileError::Invalid {
            kernel: name.clone(),
            message: "more than 65,534 kinds of accesses".to_owned(),
        };
        let shared = stores::share_region(&mut context.func).map_err(too_many)?;
        context.egraph_pass(&flags, &mut ControlPlane::default()).map_err(internal)?;
        if shared {
            stores::leave_region(&mut context.func).map_err(too_many)?;
        }
    }
    Ok(context.func)
}

fn count_insts(func: &Function) -> usize {
    func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum()
}

fn statistics(
    shares: Shares,
    predicated: Predicated,
    vcode: &VCode,
    allocated: &Allocated,
) -> CompileStats {
    let (mut moves, mut predicate_spills) = (0, 0);
    for edit in allocated.moves() {
        moves += 1;
        predicate_spills += usize::from(edit.is_predicate_spill());
    }
    CompileStats {
        selected_insts: vcode.insts.len(),
        moves,
        predicate_spills,
        spill_slots: allocated.slots(),
        branches: predicated.branches
            + vcode.blocks.iter().filter(|block| block.succs.len() == 2).count(),
        divergent_branches: shares.divergent,
        predicated_branches: predicated.branches,
        predicated_divergent_branches: shares.predicated,
        ..CompileStats::default()
    }
}

/// Puts the function together.
fn compiled(
    unit: Unit<'_>,
    vcode: VCode,
    emitted: Emitted,
    stats: CompileStats,
) -> CompiledFunction {
    let locs = emitted.body.source_locs();
    let sources = locs.filter_map(|loc| Some((loc, unit.sources.place(loc)?.clone()))).collect();
    let record = unit.options.records().then(|| record(unit, &vcode, &emitted));
    let kernel = unit.entry == EntryKind::Kernel;
    let proofs = unit.options.convergence.then(|| convergence::prove(&vcode, kernel));
    CompiledFunction {
        proofs: proofs.unwrap_or_default(),
        name: unit.name.to_owned(),
        arch: unit.arch,
        body: emitted.body,
        uses_groups: vcode.insts.iter().any(MInst::uses_groups),
        symbols: vcode.symbols,
        stack: emitted.stack,
        lane_stack_bytes: u32::try_from(emitted.lane_stack_bytes).expect("emission limits stacks"),
        sources,
        stats,
        branch_fingerprint: 0,
        counters: None,
        times: StageTimes::default(),
        record,
    }
}
