//! Checked launches of random cases: nothing may be found in those that are right, and what is planted must be found.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature,
    StackSlotData, StackSlotKind, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::loop_analysis::LoopAnalysis;
use harp_isa::WordSize;
use harp_isa::abi::ArgumentBlock;
use harp_jit::{CompileOptions, DivergenceStrategy, OptLevel};
use harp_runtime::{Checks, FindingKind, LaunchConfig, LaunchError};
use harp_tests::generate::Kind;
use harp_tests::machines::{Machines, Setup};
use harp_tests::oracle::{self, Argument, Case, CaseError, Start};
use harp_tests::random::{Selection, Target, case_of, run};
use harp_tests::seeds;

/// Cases of an ordinary run, of each kind.
const CASES: u64 = 60;

#[test]
fn nothing_is_found_in_cases_that_are_right() {
    for kind in [Kind::Kernels, Kind::Lowerings, Kind::Calls, Kind::Graphs] {
        let selection = Selection { kind, watched: true, ..Selection::default() };
        let reached = match run(0..CASES, selection, &|| {}) {
            Ok(reached) => reached,
            Err((seed, failure)) => panic!("{} {seed}: {failure}", kind.name()),
        };
        assert!(reached.runs > CASES, "{kind:?}");
    }
}

/// What is wrong with a planted access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    OutOfBounds,
    Uninitialized,
    Race,
}

/// Where a fault is planted.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: Block,
    /// Whether the oracle says that only some of the work-items come there.
    is_divergent: bool,
    is_in_loop: bool,
}

#[test]
fn what_is_planted_is_found() {
    let seeds = seeds::from_environment().unwrap_or(0..CASES);
    let all = seeds.end - seeds.start;
    for fault in [Fault::OutOfBounds, Fault::Uninitialized, Fault::Race] {
        let (mut planted, mut divergent, mut in_loops, mut missed) = (0, 0, 0, Vec::new());
        for seed in seeds.clone() {
            let selection = Selection { kind: Kind::Kernels, ..Selection::default() };
            let (generated, targets) = case_of(seed, selection);
            let target = targets[seed as usize % targets.len()];
            let case = generated.case;
            let Some(place) = place_of(&case, target, fault, seed) else { continue };
            let Some(case) = with_fault(case, target, fault, place.block, seed) else { continue };
            let Some(found) = is_found(&case, target, fault) else { continue };
            planted += 1;
            divergent += u64::from(place.is_divergent);
            in_loops += u64::from(place.is_in_loop);
            if !found {
                missed.push(seed);
            }
        }
        assert_eq!(missed, [0; 0], "{fault:?} is not found, HARP_SEED= replays them");
        println!("{planted} have {fault:?}, {divergent} where not all come, {in_loops} in loops");
        assert!(planted * 10 >= all * 6 && divergent * 10 >= all && in_loops * 10 >= all);
    }
}

/// A block of the kernel to which a work-item comes, or two for a race; if there is another one than the entry block,
/// mostly such a one. None if there is none, or the oracle does not know the case.
fn place_of(case: &Case, target: Target, fault: Fault, seed: u64) -> Option<Place> {
    let (_, trace) = case.expected(target.arch).ok()?;
    let func = &case.functions[0];
    let entry = func.layout.entry_block()?;
    let items = |block| {
        let last = func.layout.last_inst(block)?;
        trace.executed.get(&(0, last)).copied()
    };
    let least = if fault == Fault::Race { 2 } else { 1 };
    let mut blocks: Vec<Block> =
        func.layout.blocks().filter(|&block| items(block).is_some_and(|n| n >= least)).collect();
    if blocks.len() > 1 && !seed.is_multiple_of(4) {
        blocks.retain(|&block| block != entry);
    }
    let block = *blocks.get(seed as usize / 4 % blocks.len().max(1))?;
    let cfg = ControlFlowGraph::with_function(func);
    let mut loops = LoopAnalysis::new();
    loops.compute(func, &cfg, &DominatorTree::with_function(func, &cfg));
    let is_in_loop = loops.innermost_loop(block).is_some();
    Some(Place { block, is_divergent: items(block) < items(entry), is_in_loop })
}

/// The kernel with one more access at the end of a block, which all work-items get wrong that come there, but in the
/// entry block only odd ones, or all but one of those that race. None if it has no buffer, or only one work-item.
fn with_fault(
    mut case: Case,
    target: Target,
    fault: Fault,
    block: Block,
    seed: u64,
) -> Option<Case> {
    let Start::Launch { extents, args } = &case.start else { return None };
    let (word, extents) = (target.arch.word(), *extents);
    let mut before = 0;
    let (mut offset, mut bytes) = (None, 0);
    for arg in args {
        if let Argument::Buffer(_, contents) = arg
            && contents.len() >= 8
        {
            offset = Some(ArgumentBlock::argument(before, word));
            bytes = contents.len() as i64;
        }
        before += arg.ty().words(word);
    }
    if extents[0] < 2 {
        return None;
    }
    let offset = offset?.cast_signed();
    let ty = if word == WordSize::Four { types::I32 } else { types::I64 };
    let func = &mut case.functions[0];
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
    let slot = func.create_sized_stack_slot(slot);
    let entry = func.layout.entry_block()?;
    let arguments = func.dfg.block_params(entry)[0];
    let last = func.layout.last_inst(block)?;
    let mut at = FuncCursor::new(func);
    at.goto_inst(last);
    let flags = MemFlagsData::new().with_aligned();
    let [x, y, z] = ["x", "y", "z"].map(|dim| position(&mut at, dim, ty));
    let is_wrong = match block == entry {
        true => at.ins().band_imm_u(x, 1),
        false => at.ins().iconst(ty, 1),
    };
    let buffer = at.ins().load(ty, flags.with_notrap(), arguments, offset);
    match fault {
        Fault::OutOfBounds => {
            // Behind the end, or before the start; what is there is another buffer, or nothing.
            let size = i64::from(ty.bytes());
            let far = (seed % 9).cast_signed() * size;
            let behind = bytes.cast_unsigned().next_multiple_of(8).cast_signed();
            let wrong = if seed.is_multiple_of(3) { -size - far } else { behind + far };
            let wrong = at.ins().iadd_imm_s(buffer, wrong);
            let address = at.ins().select(is_wrong, wrong, buffer);
            at.ins().load(ty, flags, address, 0);
        }
        Fault::Uninitialized => {
            let start = at.ins().stack_addr(ty, slot, 0);
            at.ins().store(flags, x, start, 0);
            let distance = at.ins().ishl_imm_u(is_wrong, 3);
            let address = at.ins().iadd(start, distance);
            let value = at.ins().load(ty, flags, address, 0);
            // What nothing depends on may be anything.
            at.ins().bnot(value);
        }
        Fault::Race => {
            // Whatever the others do with the first word, its last store is by another work-item: each has its number.
            let rows = at.ins().imul_imm_s(z, extents[1].cast_signed());
            let row = at.ins().iadd(rows, y);
            let first = at.ins().imul_imm_s(row, extents[0].cast_signed());
            let item = at.ins().iadd(first, x);
            at.ins().store(flags, item, buffer, 0);
        }
    }
    Some(case)
}

/// The work-item's position in a dimension.
fn position(at: &mut FuncCursor<'_>, dim: &str, ty: Type) -> Value {
    let func: &mut Function = at.func;
    let mut signature = Signature::new(CallConv::Fast);
    signature.returns.push(AbiParam::new(ty));
    let signature = func.import_signature(signature);
    let position = func.import_function(ExtFuncData {
        name: ExternalName::testcase(format!("harp_global_id_{dim}")),
        signature,
        colocated: true,
        patchable: false,
    });
    let call = at.ins().call(position, &[]);
    at.func.dfg.first_result(call)
}

/// Whether a checked launch finds the fault; none if the case traps before.
fn is_found(case: &Case, target: Target, fault: Fault) -> Option<bool> {
    let way = target.way;
    let divergence = if way.profile { DivergenceStrategy::Static } else { way.strategy };
    let options =
        CompileOptions { report_accesses: true, divergence, ..oracle::options(OptLevel::Speed) };
    let compiled = case.compile(target.arch, options).expect("the case compiles");
    let kernel = compiled.kernel().expect("the case is a kernel");
    let mut checks = Checks::all();
    checks.types = false;
    let launch = |machines: &mut Machines| {
        let device = machines.device(Setup::new(target.arch))?;
        case.launch(kernel, device, |config: LaunchConfig| config.with_checks(checks))
    };
    let found = match Machines::of_thread(launch) {
        Err(CaseError::Launch(LaunchError::Findings(found))) => found,
        Err(error) => panic!("{error}"),
        // It trapped before it came there.
        Ok(observed) if observed.ending.is_err() => return None,
        Ok(_) => return Some(false),
    };
    Some(found.list.iter().any(|one| match one.kind {
        FindingKind::OutOfBounds => fault == Fault::OutOfBounds,
        FindingKind::Uninitialized => fault == Fault::Uninitialized,
        FindingKind::Race { .. } => fault == Fault::Race,
        _ => false,
    }))
}
