//! What the checker finds.

use harp_isa::{DecodeError, Instruction, Operand};
use thiserror::Error;

/// Machine code that cannot be proved to keep lanes together as it must.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at {offset:#x}, `{instruction}`: {fault}")]
pub struct CodeError {
    /// The offset of the instruction from the function's first byte.
    pub offset: u32,
    /// The instruction as the disassembler prints it.
    pub instruction: String,
    /// What is wrong with it.
    pub fault: CodeFault,
}

/// What can be wrong with an instruction of finished code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeFault {
    /// There is none.
    #[error("these bytes are no instruction: {0}")]
    Undecodable(DecodeError),
    /// It leads to no instruction of the function.
    #[error("it leads to {target:#x}, where no instruction begins")]
    Outside {
        /// The offset that it leads to.
        target: i64,
    },
    /// Compiled code has no such instruction, or has it never guarded.
    #[error("compiled code never holds this")]
    Foreign,
    /// A split that is not right before the branch on its predicate.
    #[error("the next instruction is not the branch that it splits for")]
    SplitAlone,
    /// Something leads between a split and its branch.
    #[error("its split can be passed by")]
    SplitPassedBy,
    /// Paths reach it with different splits open.
    #[error(
        "paths with {one} and with {other} open splits, or others, or other sides of them, meet"
    )]
    OpenSplits {
        /// Open splits on one path.
        one: usize,
        /// On another.
        other: usize,
    },
    /// A join where no split is open.
    #[error("no split is open")]
    NothingToJoin,
    /// The other side of the split, or another split, is joined elsewhere.
    #[error("the split at {split:#x} is not joined here and nowhere else, nor is nothing else")]
    OtherJoin {
        /// The offset of the split.
        split: u32,
    },
    /// It leaves the function inside of splits.
    #[error("{open} splits are open")]
    OpenAtEnd {
        /// How many.
        open: usize,
    },
    /// Lanes that execute it may disagree on something on which they must agree.
    #[error("the lanes may disagree on {0:?}")]
    Divergent(Operand),
    /// It reads what was not written in every lane that executes it, or written for another path.
    #[error("in some lanes {0:?} holds nothing that was meant")]
    Undefined(Operand),
    /// Not the instruction that was selected.
    #[error("`{selected}` was selected")]
    Opcode {
        /// The mnemonic of the one that was.
        selected: &'static str,
    },
    /// It is guarded and should not be, or the other way round.
    #[error("{}", if *selected { "it was selected with a guard" } else { "it was selected without a guard" })]
    Guard {
        /// Whether it should be guarded.
        selected: bool,
    },
    /// A predicate that does not hold what it should.
    #[error("{operand:?} is not the predicate v{selected} that was selected")]
    Predicate {
        /// The predicate register.
        operand: Operand,
        /// The number of the virtual register that it should hold.
        selected: u32,
    },
    /// Control goes on where it does not in the blocks that were selected.
    #[error("from block {from} control goes on at {to:#x}, which is not what follows there")]
    Control {
        /// The number of the block.
        from: u32,
        /// The offset where control goes on.
        to: u32,
    },
    /// The proof takes more steps than it is given.
    #[error("the proof is too long")]
    TooLong,
    /// The function was compiled without what the proof must be told.
    #[error("the function was compiled neither with `verify` nor with `check_code`")]
    NotRecorded,
}

impl CodeError {
    /// Nothing can be checked.
    pub(crate) fn not_recorded() -> CodeError {
        CodeError { offset: 0, instruction: String::new(), fault: CodeFault::NotRecorded }
    }

    pub(super) fn new(
        offset: u32,
        instruction: Option<&Instruction>,
        arch: harp_isa::ArchId,
        fault: CodeFault,
    ) -> CodeError {
        let instruction = instruction.map_or(String::new(), |i| i.display(arch).to_string());
        CodeError { offset, instruction, fault }
    }
}
