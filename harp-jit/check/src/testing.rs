//! Pieces of code to try the parts of the checker on.

use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};

use crate::code::{Bytes, Code};
use crate::frame::Frame;
use crate::places::Places;
use crate::record::Entry;
use crate::structure::Structure;

/// The machine that code is for.
pub(crate) const ARCH: &str = "4w8/8/16/16+x";

pub(crate) fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

pub(crate) fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// Instructions of four bytes that nothing is noted on, and a trap behind them.
pub(crate) fn with_code<T>(
    instructions: &[Instruction],
    run: impl FnOnce(&Frame<'_>, &Structure) -> T,
) -> T {
    let arch: ArchId = ARCH.parse().unwrap();
    let mut bytes = Vec::new();
    let end = Instruction::new(Op::Trap {});
    for instruction in instructions.iter().chain([&end]) {
        harp_isa::encode(instruction, arch, &mut bytes).unwrap();
    }
    let bytes = Bytes { arch, bytes: &bytes, literals: &[], linked: &[] };
    let code = Code::decode(bytes, &[]).unwrap();
    let structure = Structure::new(&code).unwrap();
    let entry = Entry { private: std::iter::once(-64..0).collect(), ..Entry::default() };
    let places = Places::new(&entry, arch.word().bytes().into());
    run(&Frame::new(&code, &structure, &places), &structure)
}

/// As [`with_code`], of operations that are not guarded.
pub(crate) fn with_ops<T>(ops: &[Op], run: impl FnOnce(&Frame<'_>, &Structure) -> T) -> T {
    let instructions: Vec<Instruction> = ops.iter().map(|&op| Instruction::new(op)).collect();
    with_code(&instructions, run)
}
