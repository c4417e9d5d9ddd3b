//! Checked launches of random cases: nothing may be found in those that are right, and what is planted must be found.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, Signature, StackSlotData,
    StackSlotKind, types,
};
use cranelift_codegen::isa::CallConv;
use harp_isa::WordSize;
use harp_isa::abi::ArgumentBlock;
use harp_jit::{CompileOptions, DivergenceStrategy, OptLevel};
use harp_runtime::{Checks, FindingKind, LaunchConfig, LaunchError};
use harp_tests::generate::Kind;
use harp_tests::machines::Machines;
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

#[test]
fn what_is_planted_is_found() {
    let seeds = seeds::from_environment().unwrap_or(0..CASES);
    for fault in [Fault::OutOfBounds, Fault::Uninitialized, Fault::Race] {
        let (mut planted, mut missed) = (0, Vec::new());
        for seed in seeds.clone() {
            let selection = Selection { kind: Kind::Kernels, ..Selection::default() };
            let (generated, targets) = case_of(seed, selection);
            let target = targets[seed as usize % targets.len()];
            let Some(case) = with_fault(generated.case, target, fault, seed) else { continue };
            let Some(found) = is_found(&case, target, fault) else { continue };
            planted += 1;
            if !found {
                missed.push(seed);
            }
        }
        assert_eq!(missed, [0; 0], "{fault:?} is not found, HARP_SEED= replays them");
        assert!(planted * 10 >= (seeds.end - seeds.start) * 7, "{planted} cases have {fault:?}");
    }
}

/// The kernel with one more access at the end of its entry block, which odd work-items get wrong, or all but one of
/// those that race. None if it has no buffer, or only one work-item.
fn with_fault(mut case: Case, target: Target, fault: Fault, seed: u64) -> Option<Case> {
    let Start::Launch { extents, args } = &case.start else { return None };
    let word = target.arch.word();
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
    let mut signature = Signature::new(CallConv::Fast);
    signature.returns.push(AbiParam::new(ty));
    let signature = func.import_signature(signature);
    let position = func.import_function(ExtFuncData {
        name: ExternalName::testcase("harp_global_id_x"),
        signature,
        colocated: true,
        patchable: false,
    });
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
    let slot = func.create_sized_stack_slot(slot);
    let entry = func.layout.entry_block()?;
    let block = func.dfg.block_params(entry)[0];
    let last = func.layout.last_inst(entry)?;
    let mut at = FuncCursor::new(func);
    at.goto_inst(last);
    let flags = MemFlagsData::new().with_aligned();
    let call = at.ins().call(position, &[]);
    let item = at.func.dfg.first_result(call);
    let buffer = at.ins().load(ty, flags.with_notrap(), block, offset);
    match fault {
        Fault::OutOfBounds => {
            let odd = at.ins().band_imm_u(item, 1);
            // Behind the end, or before the start; what is there is another buffer, or nothing.
            let size = i64::from(ty.bytes());
            let far = (seed % 9).cast_signed() * size;
            let behind = bytes.cast_unsigned().next_multiple_of(8).cast_signed();
            let wrong = if seed.is_multiple_of(3) { -size - far } else { behind + far };
            let wrong = at.ins().iadd_imm_s(buffer, wrong);
            let address = at.ins().select(odd, wrong, buffer);
            at.ins().load(ty, flags, address, 0);
        }
        Fault::Uninitialized => {
            let start = at.ins().stack_addr(ty, slot, 0);
            at.ins().store(flags, item, start, 0);
            let odd = at.ins().band_imm_u(item, 1);
            let distance = at.ins().ishl_imm_u(odd, 3);
            let address = at.ins().iadd(start, distance);
            at.ins().load(ty, flags, address, 0);
        }
        Fault::Race => {
            // Whatever the others do with the first word, its last store is by another work-item.
            at.ins().store(flags, item, buffer, 0);
        }
    }
    Some(case)
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
        let device = machines.device(target.arch, 1)?;
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
