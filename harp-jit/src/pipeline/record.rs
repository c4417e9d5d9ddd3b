//! The record for the checker of finished code: what it is told of a function as a whole.

use harp_isa::RegClass;
use harp_isa::abi::KernelEntry;
use smallvec::{SmallVec, smallvec};

use crate::abi::EntryKind;
use crate::emit::{Emitted, name};
use crate::options::Execution;
use crate::sharing::Setting;
use crate::unit::Unit;
use crate::vcode::{MInst, VBlock, VCode};
use harp_check::{Entry, Holders, Name, Passes, Record};

/// The function's record, without notes on instructions.
pub(crate) fn record(unit: Unit<'_>, setting: Setting, vcode: &VCode, emitted: &Emitted) -> Record {
    let successors = |last: &MInst| match last {
        MInst::Jump { target, .. } => smallvec![target.index() as u32],
        MInst::CondBr { taken, not_taken, .. } => {
            smallvec![taken.index() as u32, not_taken.index() as u32]
        }
        _ => SmallVec::new(),
    };
    let own = &vcode.promises.own;
    let uniform = match unit.entry {
        EntryKind::Kernel => {
            let shared = KernelEntry::shared_arguments(unit.arch);
            shared.into_iter().chain([KernelEntry::ARGUMENTS]).collect()
        }
        EntryKind::Function => own.arguments.to_vec(),
    };
    Record {
        entry: Entry {
            single_lane: unit.options.execution == Execution::SingleLane,
            kernel: unit.entry == EntryKind::Kernel,
            by_rows: setting.by_rows,
            uniform,
            ..emitted.entry.clone()
        },
        successors: (vcode.blocks.iter())
            .map(|block| successors(&vcode.insts[block.insts.end - 1]))
            .collect(),
        passes: passes(vcode),
        free: free(vcode),
        promises: own.results.clone(),
        undefined: undefined(vcode, emitted),
        notes: Vec::new(),
    }
}

/// For each block, the registers and slots whose contents are undefined once it was left.
fn undefined(vcode: &VCode, emitted: &Emitted) -> Vec<Holders> {
    let mut undefined = vec![Holders::new(); vcode.blocks.len()];
    for (block, holders) in &emitted.left_undefined {
        undefined[block.index()].extend(holders.iter().copied());
    }
    undefined
}

/// Predicates with an undefined value, which no instruction depends on.
fn free(vcode: &VCode) -> Vec<Name> {
    let undefined = vcode.insts.iter().filter_map(|inst| match *inst {
        MInst::Undef { dst } if dst.class() == RegClass::Pred => Some(name(dst)),
        _ => None,
    });
    undefined.collect()
}

/// The predicates that each block passes as arguments to its successor.
fn passes(vcode: &VCode) -> Vec<Passes> {
    let pass = |block: &VBlock| match &vcode.insts[block.insts.end - 1] {
        MInst::Jump { target, args } => (vcode.blocks[target.index()].params.iter().zip(args))
            .filter(|(param, _)| param.class() == RegClass::Pred)
            .map(|(&param, &arg)| (name(param), name(arg)))
            .collect(),
        _ => Passes::new(),
    };
    vcode.blocks.iter().map(pass).collect()
}
