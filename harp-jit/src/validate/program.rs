//! Code as the simulated warp knows it: CLIF with a plan and VCode come to the same few operations.

use std::ops::Range;

use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::condcodes::IntCC;
use smallvec::SmallVec;

use crate::analysis::Arguments;
use crate::vcode::VCode;
use crate::width::Width;

/// The number of a value, or of a virtual register.
pub(super) type Register = u32;

/// What a lane may see of an instruction, or others of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Anything, in each lane.
    Any,
    /// Anything, but the same for the same operands.
    OfOperands,
    /// Anything, but the same in lanes that execute it together and agree on these operands.
    OfWarp(Arguments),
    /// What the lanes that execute it together make of their operands.
    Exchange(Exchange),
}

/// How lanes tell each other something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    Any,
    All,
    /// From this lane on, a bit a lane.
    Ballot {
        first: usize,
    },
    Shuffle,
    OfSomeLane,
}

/// What is computed as it is. The widths are those of operands, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compute {
    Copy,
    Not,
    And,
    Or,
    Xor,
    SignExtend(u32),
    Compare(IntCC, u32),
    Select,
}

impl Compute {
    /// What it makes of the bits of two operands, if there are as many.
    pub(super) fn of(self, x: u64, y: u64) -> u64 {
        match self {
            Compute::Copy | Compute::Select => x,
            Compute::Not => !x,
            Compute::And => x & y,
            Compute::Or => x | y,
            Compute::Xor => x ^ y,
            Compute::SignExtend(bits) => sign_extended(x, bits),
            Compute::Compare(condition, bits) => compare(condition, x, y, bits).into(),
        }
    }
}

/// What takes part in no decision that structurization makes: in some rounds it is computed, in others it is
/// like any other function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Constant(u64),
    Compute(Compute),
    Arithmetic(Arithmetic, u64),
    /// Some function of the operands.
    Opaque(u64),
    /// The number of the lane.
    LaneNumber,
    /// The same each time, and this far.
    Ask(u64, Width),
    /// Something about the frame, the same until something is written there.
    Frame(u64),
    /// Whatever it is, nobody looks at it. The compiler's own may differ each time; whoever looks at one of
    /// the program's gets what he gets.
    Undefined {
        own: bool,
    },
    /// An exchange that the compiler has inserted.
    Vote(Exchange),
    /// What others can see; a result for each register that is written.
    Effect {
        key: u64,
        outcomes: SmallVec<[Outcome; 1]>,
        writes_frame: bool,
    },
    Jump(Edge),
    /// On the first operand.
    Branch {
        edges: [Edge; 2],
        split: bool,
    },
    Return {
        key: u64,
    },
    Trap {
        key: u64,
    },
    /// Lanes do not come here: control is not as it must be.
    Unknown,
}

impl Kind {
    /// A number that tells most operations apart.
    pub(super) fn fingerprint(&self) -> u64 {
        match self {
            Kind::Constant(key)
            | Kind::Opaque(key)
            | Kind::Arithmetic(_, key)
            | Kind::Ask(key, _)
            | Kind::Frame(key)
            | Kind::Effect { key, .. } => *key,
            _ => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) target: usize,
    /// In [`Program::lists`].
    pub(super) args: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    /// In [`Program::lists`].
    pub(super) args: Range<usize>,
    /// In [`Program::lists`].
    pub(super) results: Range<usize>,
    /// Only lanes where it holds execute this.
    pub(super) guard: Option<Register>,
    /// What the result is in others; without it, anything.
    pub(super) kept: Option<Register>,
    /// The number of the instruction.
    pub(super) source: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// In [`Program::lists`].
    pub(super) params: Range<usize>,
    pub(super) ops: Range<usize>,
    pub(super) join: bool,
    /// Where a predicated region ends that begins with this block's branch.
    pub(super) region_end: Option<usize>,
}

/// What the numbers of instructions stand for.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    Clif(&'a Function),
    VCode(&'a VCode),
}

/// A function to be simulated.
pub(super) struct Program<'a> {
    pub(super) text: Text<'a>,
    pub(super) entry: usize,
    pub(super) blocks: Vec<Block>,
    pub(super) ops: Vec<Op>,
    /// Operands, results and parameters.
    pub(super) lists: Vec<Register>,
    /// How far each of the function's parameters is the same.
    pub(super) params: Vec<Width>,
    /// The bits that each register holds.
    pub(super) masks: Vec<u64>,
    /// How many blocks there are to be run.
    pub(super) count: usize,
}

impl<'a> Program<'a> {
    pub(super) fn new(text: Text<'a>, blocks: usize) -> Program<'a> {
        Program {
            text,
            entry: 0,
            blocks: vec![Block::default(); blocks],
            ops: Vec::new(),
            lists: Vec::new(),
            params: Vec::new(),
            masks: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn list(&mut self, registers: impl IntoIterator<Item = Register>) -> Range<usize> {
        let start = self.lists.len();
        self.lists.extend(registers);
        start..self.lists.len()
    }

    pub(super) fn register(&mut self, mask: u64) -> Register {
        self.masks.push(mask);
        Register::try_from(self.masks.len() - 1).expect("values are numbered with 32 bits")
    }

    /// The instruction of an operation, and its block.
    pub(super) fn describe(&self, op: usize) -> String {
        let source = self.ops[op].source;
        match self.text {
            Text::Clif(func) => {
                let inst = cranelift_codegen::ir::Inst::from_u32(
                    u32::try_from(source).expect("instructions are numbered with 32 bits"),
                );
                let block = func.layout.inst_block(inst).map_or(String::new(), |b| b.to_string());
                format!("`{}` in {block}", func.dfg.display_inst(inst))
            }
            Text::VCode(vcode) => {
                let inst = &vcode.insts[source];
                let block = vcode.blocks().find(|(_, block)| block.insts.contains(&source));
                let block = block.map_or(String::new(), |(id, _)| id.to_string());
                format!("`{inst}` in {block}")
            }
        }
    }
}

/// The bits of a value of so many.
pub(super) fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64_u32.saturating_sub(bits)).unwrap_or(0)
}

fn sign_extended(x: u64, bits: u32) -> u64 {
    let sign = mask(bits) ^ (mask(bits) >> 1);
    if x & sign == 0 { x } else { x | !mask(bits) }
}

fn compare(condition: IntCC, x: u64, y: u64, bits: u32) -> bool {
    let (signed_x, signed_y) =
        (sign_extended(x, bits).cast_signed(), sign_extended(y, bits).cast_signed());
    match condition {
        IntCC::Equal => x == y,
        IntCC::NotEqual => x != y,
        IntCC::SignedLessThan => signed_x < signed_y,
        IntCC::SignedLessThanOrEqual => signed_x <= signed_y,
        IntCC::SignedGreaterThan => signed_x > signed_y,
        IntCC::SignedGreaterThanOrEqual => signed_x >= signed_y,
        IntCC::UnsignedLessThan => x < y,
        IntCC::UnsignedLessThanOrEqual => x <= y,
        IntCC::UnsignedGreaterThan => x > y,
        IntCC::UnsignedGreaterThanOrEqual => x >= y,
    }
}
