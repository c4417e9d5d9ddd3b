//! The compiler's record of the code that it made: plain data for the checker.
//!
//! There are two kinds. *Claims* are what machine code cannot show: which memory nobody writes during a
//! launch, what the user promised to be uniform, which registers carry arguments and which of them callers make
//! sure are uniform, which results of a call are: what one function claims there is proved of the others. The
//! *skeleton* is the function before registers were allocated, as far as lanes part by it: its blocks and
//! their successors, and for every instruction its opcode, its guard and its predicate operands, by the
//! numbers of virtual registers. No claim says that a branch, a guard or a value computed by code is
//! uniform.

use std::ops::Range;

use harp_isa::{Gpr, Opcode, Operand, Pred};
use smallvec::SmallVec;

/// A predicate before registers were allocated, by its number.
pub type Name = u32;

/// Parameters with their arguments.
pub type Passes = SmallVec<[(Name, Name); 1]>;

/// What is said about a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What is true when it is entered.
    pub entry: Entry,
    /// The successors of each block, the side that a true condition takes first. Block 0 is the entry.
    pub successors: Vec<SmallVec<[u32; 2]>>,
    /// The predicates that each block passes to the parameters of its only successor.
    pub passes: Vec<Passes>,
    /// Predicates that nobody looks at: any will do in their place.
    pub free: Vec<Name>,
    /// Results of which callers know that they are uniform if what these registers hold at the entry is.
    pub promises: Vec<(Gpr, Regs)>,
    /// What holds nothing that is meant once each block was left, besides what is noted on instructions.
    pub undefined: Vec<Holders>,
    /// Notes on instructions by offset, ascending.
    pub notes: Vec<(u32, Note)>,
}

impl Record {
    /// All blocks that it names.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u32> {
        let listed = 0..self.successors.len() as u32;
        let entered = self.successors.iter().flatten().copied();
        listed.chain(entered).chain(self.notes.iter().map(|(_, note)| note.block))
    }

    /// The blocks of which all is said.
    pub(crate) fn described(&self) -> usize {
        self.successors.len().min(self.passes.len()).min(self.undefined.len())
    }

    /// All registers that it names.
    pub(crate) fn registers(&self) -> impl Iterator<Item = Operand> {
        let notes = self.notes.iter().map(|(_, note)| note);
        let holders = self.undefined.iter().chain(notes.clone().map(|note| &note.undefined));
        let held = holders.flatten().filter_map(|holder| match *holder {
            Holder::Gpr(reg) => Some(Operand::Gpr(reg)),
            Holder::Pred(reg) => Some(Operand::Pred(reg)),
            Holder::Frame(_) => None,
        });
        let lists = [&self.entry.arguments, &self.entry.uniform].into_iter().flatten();
        let noted = notes.flat_map(|note| note.role.registers());
        let named = lists.copied().chain(noted).chain(depending(&self.promises));
        named.map(Operand::Gpr).chain(held)
    }
}

fn depending(all: &[(Gpr, Regs)]) -> impl Iterator<Item = Gpr> {
    all.iter().flat_map(|(reg, regs)| regs.iter().chain([reg]).copied())
}

/// What a function finds when it is entered, and of its frame what nobody else touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Whether only one lane runs the code, so that all is uniform.
    pub single_lane: bool,
    /// Whether it is a kernel, which may change all registers that the lanes of a warp share, and runs on stacks that are
    /// [aligned](harp_isa::abi::warp_alignment) by warps.
    pub kernel: bool,
    /// Whether launches walk by rows of the grid, so that the lanes of a warp have the same position in all dimensions but
    /// the first.
    pub by_rows: bool,
    /// Registers with arguments.
    pub arguments: Vec<Gpr>,
    /// Those that are equal in all lanes.
    pub uniform: Vec<Gpr>,
    /// The size of a lane's stack is two to the power of this.
    pub lane_stack_log2: u32,
    /// Bytes of the frame, counted from the stack pointer at the entry, that only the code itself
    /// accesses, relative to the stack pointer: spill slots and saved registers.
    pub private: Vec<Range<i64>>,
    /// The same, but only as long as the code neither calls nor stores through other registers.
    pub scratch: Range<i64>,
}

impl Entry {
    /// How many bytes of the frame are private, for all of the code or a part.
    pub(crate) fn private_bytes(&self) -> u64 {
        let ranges = self.private.iter().chain([&self.scratch]);
        let sizes = ranges.map(|range| range.end.saturating_sub(range.start).max(0));
        sizes.map(i64::cast_unsigned).fold(0, u64::saturating_add)
    }
}

/// What is said about one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The block that it belongs to.
    pub block: u32,
    /// Its place among the instructions of the block, those left out later included.
    pub position: u32,
    /// What holds nothing that is meant, from here on.
    pub undefined: Holders,
    /// What the instruction is there for.
    pub role: Role,
}

/// Places.
pub type Holders = SmallVec<[Holder; 1]>;

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// In a general register.
    Gpr(Gpr),
    /// In a predicate register.
    Pred(Pred),
    /// The word of the frame so many bytes above the stack pointer at the entry.
    Frame(i64),
}

/// What an instruction is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Moves, frames, parts of longer sequences.
    Part {
        /// The predicate that guards it, if that was selected.
        guard: Option<Name>,
        /// The predicate that it computes, if that was selected.
        defines: Option<Name>,
    },
    /// An instruction that was selected.
    Selected(Selected),
    /// A call of a function.
    Call {
        /// The registers that it takes arguments from.
        hands: Regs,
        /// Those of them that must be uniform.
        asks: Regs,
        /// The registers that it returns results in.
        returns: Regs,
        /// The bytes of arguments that it takes off the stack.
        popped: i64,
        /// Results that are uniform if the registers beside them are.
        depends: Vec<(Gpr, Regs)>,
    },
    /// An instruction that leaves the function: a return, or a tail call.
    Leave {
        /// The registers with results, or with arguments of the function that is called in its place.
        hands: Regs,
        /// Those that the function called must find uniform.
        asks: Regs,
        /// As for a call, of the results that are promised.
        depends: Vec<(Gpr, Regs)>,
    },
}

impl Role {
    fn registers(&self) -> impl Iterator<Item = Gpr> {
        let (lists, depends) = match self {
            Role::Part { .. } | Role::Selected(_) => ([&[][..]; 3], &[][..]),
            Role::Call { hands, asks, returns, depends, .. } => {
                ([&hands[..], asks, returns], &depends[..])
            }
            Role::Leave { hands, asks, depends } => ([&hands[..], asks, &[]], &depends[..]),
        };
        lists.into_iter().flatten().copied().chain(depending(depends))
    }
}

/// Registers.
pub type Regs = SmallVec<[Gpr; 4]>;

/// An instruction that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its opcode.
    pub opcode: Opcode,
    /// The predicate that guards it.
    pub guard: Option<Name>,
    /// The predicate operands in the order in which they stand.
    pub predicates: SmallVec<[Named; 3]>,
    /// What code cannot show about it.
    pub claims: Claims,
    /// Whether the predicate that it computes may say where lanes go. That only says what is worth following,
    /// it is not relied on.
    pub steers: bool,
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Named {
    /// It is written.
    Def(Name),
    /// It is read.
    Use(Name),
    /// It is read and written.
    Mod {
        /// What is read.
        old: Name,
        /// What is written.
        new: Name,
    },
}

/// What code cannot show about an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// It loads from memory that nobody writes during the launch.
    pub read_only: bool,
    /// The user promised that its result is uniform.
    pub uniform: bool,
    /// It is guarded, and where the guard is false its result means nothing.
    pub old_is_dead: bool,
}
