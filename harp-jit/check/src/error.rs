//! The checker's findings and their messages.

use std::fmt;

use harp_isa::{ArchId, DecodeError, Operand};
use thiserror::Error;

/// Machine code that cannot be proved to keep lanes together as it must.
///
/// Its text says which instruction, what is wrong with it, lanes for which it goes wrong, and the path that leads
/// there:
///
/// ```text
/// at 0x40, `@p0 ? jmpi #0x10;`: active lanes may disagree about @p0, about which the whole warp must agree here;
/// for example, one lane has @p0 = 1 and another @p0 = 0; on the path inside of the split at 0x18, where its predicate is true
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct CodeError {
    /// The offset of the instruction from the function's first byte.
    pub offset: u32,
    /// The instruction as the disassembler prints it; empty if it is the record that is wrong.
    pub instruction: String,
    /// The defect.
    pub fault: CodeFault,
    /// Lanes for which it goes wrong, in words; empty if nothing is known that tells them from others.
    pub example: String,
    /// The splits that are open on the path to it, from the outermost on.
    pub inside: Vec<OpenSplit>,
    /// Whether a closer look took too long: then this may be said of right code.
    pub undecided: bool,
}

/// A split that is open on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenSplit {
    /// The offset of the split.
    pub split: u32,
    /// What its predicate is in lanes that take the path; none if lanes of both sides do, one side after the other.
    pub predicate: Option<bool>,
}

/// A defect of an instruction of finished code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeFault {
    /// There is no instruction.
    #[error("these bytes are no instruction: {0}")]
    Undecodable(DecodeError),
    /// Control leaves the function's instructions.
    #[error("control goes on at {target:#x}, where no instruction begins")]
    Outside {
        /// The offset where it goes on.
        target: i64,
    },
    /// Compiled code has no such instruction, or has it never guarded.
    #[error("compiled code holds no such instruction")]
    Foreign,
    /// A function writes a register that the lanes of a warp share and only kernels change.
    #[error("it writes {0}, which the lanes share and only kernels change")]
    OfKernel(MachineRegister),
    /// It may write memory that the record says only tracked instructions write.
    #[error("it may write a word of the frame that only spills and saved registers use")]
    PrivateFrame,
    /// A split that is not right before the branch on its predicate.
    #[error(
        "a split stands right before the branch on its predicate, but the next instruction is no such branch"
    )]
    SplitAlone,
    /// Something leads between a split and its branch.
    #[error(
        "it branches for the split in front of it, but a path leads here that passes the split by"
    )]
    SplitPassedBy,
    /// Paths reach it with different splits open.
    #[error(
        "one path comes here with {} open, and the one from {from:#x} with {}",
        Splits(one),
        Splits(other)
    )]
    OpenSplits {
        /// Open splits on one path, by their offsets.
        one: Box<[u32]>,
        /// On another.
        other: Box<[u32]>,
        /// The instruction from which the other one comes.
        from: u32,
    },
    /// A join where no split is open.
    #[error("a join closes a split, but the path from {from:#x} comes here with none open")]
    NothingToJoin {
        /// The instruction from which the path comes.
        from: u32,
    },
    /// Two joins close one split.
    #[error(
        "the split at {split:#x} is joined here and at {other:#x}, so that its sides do not meet"
    )]
    TwoJoins {
        /// The offset of the split.
        split: u32,
        /// The offset of the other join.
        other: u32,
    },
    /// One join closes two splits.
    #[error(
        "this joins the split at {split:#x} on one path and the split at {other:#x} on another"
    )]
    TwoSplits {
        /// The offset of one split.
        split: u32,
        /// The offset of the other.
        other: u32,
    },
    /// It leaves the function inside of splits.
    #[error(
        "it leaves the function with {} open, whose other sides would never run",
        Splits(splits)
    )]
    OpenAtEnd {
        /// The offsets of the splits.
        splits: Box<[u32]>,
    },
    /// Lanes that execute it may disagree on something on which they must agree.
    #[error("active lanes may disagree about {0}, about which the whole warp must agree here")]
    Divergent(MachineRegister),
    /// It reads a value that is undefined in some lane that executes it.
    #[error("some lanes may read {0} where nothing was written that is meant for them")]
    Undefined(MachineRegister),
    /// Not the instruction that was selected.
    #[error("`{selected}` was selected here")]
    Opcode {
        /// The mnemonic of the one that was.
        selected: &'static str,
    },
    /// It is guarded and should not be, or the other way round.
    #[error("{}", if *selected { "it was selected with a guard, and has none" } else { "it was selected without a guard, and has one" })]
    Guard {
        /// Whether it should be guarded.
        selected: bool,
    },
    /// A predicate that does not hold what it should.
    #[error("{register} may not hold the predicate v{selected} that was selected here")]
    Predicate {
        /// The predicate register.
        register: MachineRegister,
        /// The number of the virtual register that it should hold.
        selected: u32,
    },
    /// Control goes on where it does not in the blocks that were selected.
    #[error(
        "from this place in block {from}, control goes on at {to:#x}, where something else was selected"
    )]
    Control {
        /// The number of the block.
        from: u32,
        /// The offset where control goes on.
        to: u32,
    },
    /// The record names a block that it does not describe.
    #[error("the record names block {block} of {described}")]
    NoSuchBlock {
        /// The number of the block.
        block: u32,
        /// The blocks that it describes.
        described: usize,
    },
    /// The record names a register that the machine lacks.
    #[error("the record names a register that the machine lacks, {0}")]
    NoSuchRegister(MachineRegister),
    /// The record names more of the frame than is followed.
    #[error("the record names {bytes} private bytes of the frame, more than {limit}")]
    PrivateTooLarge {
        /// The bytes that it names.
        bytes: u64,
        /// The most that are followed.
        limit: u64,
    },
    /// The proof takes more steps than it is given.
    #[error("the proof takes more steps than it is given")]
    TooLong,
    /// The function was compiled without the record that the proof needs.
    #[error("the function was compiled neither with `verify` nor with `check_code`")]
    NotRecorded,
}

impl CodeError {
    /// Nothing can be checked.
    pub fn not_recorded() -> CodeError {
        CodeError::new(0, String::new(), CodeFault::NotRecorded)
    }

    pub(crate) fn new(offset: u32, instruction: String, fault: CodeFault) -> CodeError {
        let undecided = fault == CodeFault::TooLong;
        let (example, inside) = (String::new(), Vec::new());
        CodeError { offset, instruction, fault, example, inside, undecided }
    }
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.instruction.is_empty() {
            return self.fault.fmt(f);
        }
        write!(f, "at {:#x}, `{}`: {}", self.offset, self.instruction, self.fault)?;
        if !self.example.is_empty() {
            write!(f, "; for example, {}", self.example)?;
        }
        for (number, OpenSplit { split, predicate }) in self.inside.iter().enumerate() {
            let first = if number == 0 { "; on the path" } else { " and" };
            let side = match predicate {
                Some(true) => "where its predicate is true",
                Some(false) => "where its predicate is false",
                None => "on either side",
            };
            write!(f, "{first} inside of the split at {split:#x}, {side}")?;
        }
        if self.undecided && self.fault != CodeFault::TooLong {
            f.write_str("; a closer look takes more steps than the proof is given")?;
        }
        Ok(())
    }
}

/// A register of a machine, which prints it as its disassembler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineRegister {
    /// The machine.
    pub arch: ArchId,
    /// The register.
    pub operand: Operand,
}

impl fmt::Display for MachineRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operand {
            Operand::Gpr(reg) => self.arch.gpr_name(reg).fmt(f),
            Operand::Pred(reg) => self.arch.pred_name(reg).fmt(f),
            Operand::Imm(imm) => write!(f, "#{imm:#x}"),
        }
    }
}

/// Splits by their offsets.
struct Splits<'a>(&'a [u32]);

impl fmt::Display for Splits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no split"),
            [split] => write!(f, "the split at {split:#x}"),
            [splits @ .., last] => {
                f.write_str("the splits at ")?;
                splits.iter().try_for_each(|split| write!(f, "{split:#x}, "))?;
                write!(f, "and {last:#x}")
            }
        }
    }
}
