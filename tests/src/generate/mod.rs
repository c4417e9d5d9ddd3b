//! Random cases: bytes give functions in CLIF, with the arguments and data of a call or a launch.
//!
//! All bytes give a case, and fewer bytes give a smaller one. [`Kind`] says which cases there are.

use cranelift_codegen::ir::{Block, Type, types};
use harp_isa::{ArchId, WordSize};
use harp_jit::ParamType;

use crate::machines::{self, parsed};
use crate::oracle::{Case, OracleError};

mod body;
mod calls;
mod choices;
pub(crate) mod clif;
mod directed;
pub mod graphs;
mod locks;
mod meetings;
mod turns;
mod words;

pub(crate) use body::rows::{FLOATS, INTS};
pub use choices::{F32_EDGES, F64_EDGES};
pub use directed::{directed, trapping};

/// A kind of random case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Functions that one lane calls: all operations, memory in all widths, calls of all kinds.
    Functions,
    /// Kernels with the same operations and memory, in many lanes.
    Lowerings,
    /// Kernels with all control flow that statements make, and few operations.
    #[default]
    Kernels,
    /// Kernels that call functions which the compiler can analyze.
    Calls,
    /// Kernels with the blocks of any graph: [`graphs`].
    Graphs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::Functions, Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs];

    /// The name.
    pub fn name(self) -> &'static str {
        ["functions", "lowerings", "kernels", "calls", "graphs"][self as usize]
    }

    /// Bytes that a seed gives: enough for the largest case.
    pub fn bytes(self) -> usize {
        if self == Kind::Functions { 12_000 } else { 6000 }
    }

    /// The machines that cases run on.
    pub fn machines(self) -> impl Iterator<Item = ArchId> {
        let is_about_numbers = matches!(self, Kind::Functions | Kind::Lowerings);
        parsed(machines::ALL).chain(parsed(if is_about_numbers { machines::ODD } else { &[] }))
    }

    /// The case that `bytes` stand for on machines of this family.
    pub fn generate(self, bytes: &[u8], family: Family) -> Generated {
        let kernel = match self {
            Kind::Functions => return body::case(&body::FUNCTIONS, bytes, family),
            Kind::Lowerings => body::case(&body::LOWERINGS, bytes, family),
            Kind::Kernels => body::case(&body::KERNELS, bytes, family),
            Kind::Calls => calls::kernel(bytes, family),
            Kind::Graphs => graphs::kernel(bytes, family),
        };
        together(kernel, bytes)
    }
}

/// The kernel with what work-items do together.
fn together(kernel: Generated, bytes: &[u8]) -> Generated {
    let kernel = meetings::with_meetings(kernel, bytes);
    let waiting = turns::with_turns(locks::with_lock(kernel.clone(), bytes), bytes);
    // In loops, what is added takes many steps.
    let is_long = || matches!(waiting.case.expected(1), Err(OracleError::OutOfFuel));
    if waiting.case.waits && is_long() { kernel } else { waiting }
}

/// Something worth counting, which a block that was generated is, or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The index of the function.
    pub function: usize,
    /// The block.
    pub block: Block,
    /// What it is.
    pub construct: &'static str,
}

/// A case, and the places of its constructs.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The functions with all that a run needs.
    pub case: Case,
    /// The constructs in them.
    pub marks: Vec<Mark>,
    /// Whether what they do depends on the number of lanes.
    pub asks_for_lane: bool,
}

impl From<Case> for Generated {
    fn from(case: Case) -> Generated {
        Generated { case, marks: Vec::new(), asks_for_lane: false }
    }
}

/// The machines that a kernel may use everything of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Family {
    /// The word.
    pub word: WordSize,
    /// Whether extension X is there.
    pub extension: bool,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 4] = [
        Family { word: WordSize::Four, extension: false },
        Family { word: WordSize::Four, extension: true },
        Family { word: WordSize::Eight, extension: false },
        Family { word: WordSize::Eight, extension: true },
    ];

    /// That of one machine.
    pub fn of(arch: ArchId) -> Family {
        Family { word: arch.word(), extension: arch.has_extension() }
    }

    /// The integer types, the word's first.
    pub fn ints(self) -> &'static [Type] {
        match self.word {
            WordSize::Four => &[types::I32, types::I8, types::I16, types::I64],
            WordSize::Eight => &[types::I64, types::I32, types::I8, types::I16],
        }
    }

    /// Whether a register holds values of type `ty`; else two do.
    pub fn in_register(self, ty: Type) -> bool {
        ty.bits() <= u32::from(self.word.bits())
    }

    /// The float types, the machine's own first.
    pub fn floats(self) -> &'static [Type] {
        match self.word {
            WordSize::Four => &[types::F32, types::F64],
            WordSize::Eight => &[types::F64, types::F32],
        }
    }

    /// The integer type of the word.
    pub fn word_int(self) -> Type {
        self.ints()[0]
    }

    /// The parameter of a kernel that is one.
    fn word_param(self) -> ParamType {
        if self.word == WordSize::Four { ParamType::I32 } else { ParamType::I64 }
    }
}
