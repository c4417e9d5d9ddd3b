//! The common form of code for the simulated warp, made from CLIF with a plan or from VCode.

use std::ops::Range;

use cranelift_codegen::ir::Function;
use cranelift_codegen::ir::condcodes::IntCC;
use smallvec::SmallVec;

use crate::analysis::Arguments;
use crate::vcode::VCode;
use crate::width::Width;

/// The number of a CLIF value or a virtual register.
pub(super) type Register = u32;

/// How the results of an effect are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// An arbitrary value in each lane.
    Any,
    /// An arbitrary value that is the same for the same operands.
    OfOperands,
    /// An arbitrary value that is the same in lanes that execute it together and agree on these operands.
    OfWarp(Arguments),
    /// Computed from the operands of all lanes that execute it together.
    Exchange(Exchange),
}

/// How lanes exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exchange {
    Any,
    All,
    /// A bit for each lane, from this lane on.
    Ballot {
        first: usize,
    },
    Shuffle,
    OfSomeLane,
}

/// Operations that are computed exactly. The numbers are the widths of operands, in bits.
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
    /// The result for the bits of the operands, of which the operation uses as many as it has.
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

/// Operations that structurization does not use for its own decisions: in some rounds they are computed
/// exactly, in others they are opaque functions.
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
    /// An opaque function of the operands.
    Opaque(u64),
    /// The number of the lane.
    LaneNumber,
    /// A constant input, the same among lanes within this width.
    Ask(u64, Width),
    /// A value about the frame, the same until the frame is written.
    Frame(u64),
    /// An undefined value. Those that the compiler inserted (`own`) may differ each time; the program must
    /// accept any value of its own ones.
    Undefined {
        own: bool,
    },
    /// An exchange that the compiler has inserted.
    Vote(Exchange),
    /// An operation with effects or unknown results; it has an outcome for each register that is written.
    Effect {
        key: u64,
        outcomes: SmallVec<[Outcome; 1]>,
        writes_frame: bool,
    },
    Jump(Edge),
    /// A branch on the first operand.
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
    /// An instruction without a translation, which correct code does not reach.
    Unknown,
}

impl Kind {
    /// A number that distinguishes most operations.
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
    /// A range of [`Program::lists`].
    pub(super) args: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    /// A range of [`Program::lists`].
    pub(super) args: Range<usize>,
    /// A range of [`Program::lists`].
    pub(super) results: Range<usize>,
    /// Only lanes in which this holds execute the operation.
    pub(super) guard: Option<Register>,
    /// The value of the result in the other lanes; undefined without it.
    pub(super) kept: Option<Register>,
    /// The number of the instruction.
    pub(super) source: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// A range of [`Program::lists`].
    pub(super) params: Range<usize>,
    pub(super) ops: Range<usize>,
    pub(super) join: bool,
    /// The end of a predicated region that begins with this block's branch.
    pub(super) region_end: Option<usize>,
}

/// The code that the instruction numbers refer to, for messages.
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
    /// The width of each parameter of the function.
    pub(super) params: Vec<Width>,
    /// A mask of the bits that each register has.
    pub(super) masks: Vec<u64>,
    /// The number of blocks that have code.
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

    /// Describes an operation by its instruction and block, for messages.
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

/// A mask of this many low bits.
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
