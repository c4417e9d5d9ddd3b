//! Pieces of code to try the parts of the checker on.

use harp_isa::{ArchId, Gpr, Instruction, Op, Pred, Role as Access};
use smallvec::SmallVec;

use super::code::{Bytes, Code};
use super::live::Accessed;
use super::places::Places;
use super::record::Entry;
use super::structure::Structure;

pub(super) fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

pub(super) fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// Instructions of four bytes that nothing is noted on, and a trap behind them.
pub(super) fn with_code<T>(
    instructions: &[Instruction],
    run: impl FnOnce(&Code<'_>, &Structure, &Places) -> T,
) -> T {
    let arch: ArchId = "4w8/8/16/16+x".parse().unwrap();
    let mut bytes = Vec::new();
    let end = Instruction::new(Op::Trap {});
    for instruction in instructions.iter().chain([&end]) {
        harp_isa::encode(instruction, arch, &mut bytes).unwrap();
    }
    let bytes = Bytes { arch, bytes: &bytes, literals: &[], linked: &[] };
    let code = Code::decode(bytes, &[]).unwrap();
    let structure = Structure::new(&code).unwrap();
    run(&code, &structure, &Places::new(&Entry::default(), arch.word().bytes().into()))
}

/// As [`with_code`], of operations that are not guarded.
pub(super) fn with_ops<T>(ops: &[Op], run: impl FnOnce(&Code<'_>, &Structure, &Places) -> T) -> T {
    let instructions: Vec<Instruction> = ops.iter().map(|&op| Instruction::new(op)).collect();
    with_code(&instructions, run)
}

/// What an instruction does to registers, where its guard is true.
pub(super) fn accessed(code: &Code<'_>, at: usize) -> Accessed {
    let mut accessed = Accessed { to: None, from: SmallVec::new() };
    Instruction::new(code.insts[at].instruction.op).for_each_register(|operand, _, access| {
        let Some(place) = Places::operand(operand) else { return };
        match access {
            Access::Def => accessed.to = Some(place),
            _ => accessed.from.push(place),
        }
    });
    accessed
}
