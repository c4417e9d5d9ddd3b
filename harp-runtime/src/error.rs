//! Why a launch failed.

use std::fmt;

use harp_emu::{MachineError, Stats, Trap};
use harp_isa::{ArchId, LinkErrors};
use harp_jit::ir::Type;
use harp_jit::{Param, ParamType, ProfileError, SourcePlace};
use thiserror::Error;

use crate::finding::Findings;
use crate::heap::OutOfMemory;
use crate::kept::SavedReplay;
use crate::report::Printed;

/// Why a launch failed. Except for [`Trap`](Self::Trap) and [`Profile`](Self::Profile) nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The kernel was compiled for another machine.
    #[error("kernel `{kernel}` is for {given}, the device is {expected}")]
    Arch {
        /// The kernel's name.
        kernel: String,
        /// The kernel's machine.
        given: ArchId,
        /// The device's.
        expected: ArchId,
    },
    /// More work-items than the machine's word can number.
    #[error("a grid of {} x {} x {} work-items, the limit is {limit} on this device", given[0], given[1], given[2])]
    GridTooLarge {
        /// The extents.
        given: [u64; 3],
        /// The most work-items.
        limit: u64,
    },
    /// Positions of work-items that the machine's word cannot hold.
    #[error(
        "a grid of {} x {} x {} work-items with an offset of {}, {}, {}: together they may be at most {limit} in each dimension",
        grid[0], grid[1], grid[2], given[0], given[1], given[2]
    )]
    OffsetTooLarge {
        /// The offset.
        given: [u64; 3],
        /// The extents.
        grid: [u64; 3],
        /// The most of both.
        limit: u64,
    },
    /// A launch with an offset of a kernel that does not ask for it.
    #[error("kernel `{kernel}` takes no offset, but the launch has one")]
    NoOffset {
        /// The kernel's name.
        kernel: String,
    },
    /// A work-group without work-items.
    #[error("work-groups of {} x {} x {} work-items: there must be one at least", given[0], given[1], given[2])]
    GroupEmpty {
        /// The extents.
        given: [u64; 3],
    },
    /// A work-group with more work-items than one core can run.
    #[error("work-groups of {} x {} x {} work-items, a core has {limit} lanes", given[0], given[1], given[2])]
    GroupTooLarge {
        /// The extents.
        given: [u64; 3],
        /// The most work-items of a group.
        limit: u64,
    },
    /// A kernel that uses work-groups was launched without.
    #[error("kernel `{kernel}` uses work-groups, but the launch has none")]
    NoGroups {
        /// The kernel's name.
        kernel: String,
    },
    /// Too few or too many arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, {given} given")]
    ArgumentCount {
        /// The kernel's name.
        kernel: String,
        /// How many the kernel takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// An argument of the wrong type.
    #[error("{parameter} has type {expected}, its argument has type {given}")]
    ArgumentType {
        /// Which parameter.
        parameter: Parameter,
        /// Its type.
        expected: ParamType,
        /// The argument's type.
        given: ParamType,
    },
    /// A buffer with elements of the wrong type.
    #[error(
        "{parameter} has elements of type {expected}, those of its argument are of type {given}"
    )]
    ElementType {
        /// Which parameter.
        parameter: Parameter,
        /// The CLIF type of its elements.
        expected: Type,
        /// That of the argument's.
        given: Type,
    },
    /// A value that does not fit the machine's word.
    #[error(
        "{parameter}: the argument {given} does not fit the machine's word of {word_bytes} bytes"
    )]
    ArgumentTooWide {
        /// Which parameter.
        parameter: Parameter,
        /// The value.
        given: u64,
        /// Bytes of a word.
        word_bytes: u8,
    },
    /// A buffer that another device made.
    #[error("{parameter}: the argument is a buffer of another device")]
    ForeignBuffer {
        /// Which parameter.
        parameter: Parameter,
    },
    /// More memory for each work-group than it can have.
    #[error("{parameter}: {given} bytes of memory for a work-group, the limit is {limit}")]
    GroupMemory {
        /// The parameter whose argument is too large.
        parameter: Parameter,
        /// Bytes of all arrays up to this one.
        given: u64,
        /// The most bytes.
        limit: u64,
    },
    /// The kernel does not link with the runtime library.
    #[error("the kernel does not link with the runtime library")]
    Link(#[from] LinkErrors),
    /// The kernel is too large.
    #[error("kernel and runtime library take {given} bytes, the limit is {limit}")]
    ImageTooLarge {
        /// Bytes of the image.
        given: u64,
        /// Bytes that the device reserves for it.
        limit: u64,
    },
    /// There is no memory for the stacks of the lanes, or for the memory of the work-groups.
    #[error("no room for the stacks of the lanes and the memory of the work-groups")]
    Stacks(#[from] OutOfMemory),
    /// There is no memory for the lock under which the kernel's atomic accesses and stores to parts of words are done.
    #[error("no room for the lock of the kernel's accesses")]
    Lock(#[source] OutOfMemory),
    /// There is no memory for the counters of the kernel's branches.
    #[error("no room for the counters of the kernel's branches")]
    Counters(#[source] OutOfMemory),
    /// There is no memory for what the kernel prints.
    #[error("no room for what the kernel prints")]
    Printing(#[source] OutOfMemory),
    /// The kernel ran, but its counters do not give a profile of its branches.
    #[error("the kernel's branch counters do not give a profile")]
    Profile(#[from] ProfileError),
    /// A machine with these parameters cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The launch was to be checked, but the kernel does not report what it does.
    #[error("kernel `{kernel}` is not compiled with `report_accesses`, which checks need")]
    NoReports {
        /// The kernel's name.
        kernel: String,
    },
    /// The launch was to be checked, but has more work-items than checks can tell apart.
    #[error(
        "checks tell {limit} work-items apart, and those of this grid and its groups count as {given}"
    )]
    GridTooLargeToCheck {
        /// The work-items, those of each group counted as the next power of two.
        given: u64,
        /// The most work-items.
        limit: u64,
    },
    /// The kernel ran to its end, and the checks have found something.
    #[error(transparent)]
    Findings(Box<Findings>),
    /// The run stopped before its end. Memory holds what was written until then.
    #[error(transparent)]
    Trap(Box<LaunchTrap>),
}

/// A parameter of a kernel, in an error about its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The kernel's name.
    pub kernel: String,
    /// Which parameter, from 0.
    pub index: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
}

impl Parameter {
    pub(crate) fn new(kernel: &str, index: usize, param: &Param) -> Parameter {
        let (kernel, name) = (kernel.to_owned(), param.name().map(str::to_owned));
        Parameter { kernel, index, name }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameter { kernel, index, name } = self;
        match name {
            Some(name) => write!(f, "kernel `{kernel}`, parameter `{name}`"),
            None => write!(f, "kernel `{kernel}`, parameter {index}"),
        }
    }
}

impl LaunchError {
    /// The file with which the launch can be run again, if the device [writes](crate::DeviceConfig::replays) such
    /// files and the kernel ran.
    pub fn replay(&self) -> Option<&SavedReplay> {
        match self {
            LaunchError::Findings(findings) => findings.replay.as_ref(),
            LaunchError::Trap(trap) => trap.replay.as_ref(),
            _ => None,
        }
    }

    /// Whether the kernel ran, and did something wrong.
    pub(crate) fn is_of_kernel(&self) -> bool {
        matches!(self, LaunchError::Findings(_) | LaunchError::Trap(_))
    }

    pub(crate) fn with_replay(self, replay: SavedReplay) -> LaunchError {
        match self {
            LaunchError::Findings(findings) => {
                LaunchError::Findings(Box::new(Findings { replay: Some(replay), ..*findings }))
            }
            LaunchError::Trap(trap) => {
                LaunchError::Trap(Box::new(LaunchTrap { replay: Some(replay), ..*trap }))
            }
            other => other,
        }
    }
}

/// A trap during a launch, and the place in the source that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchTrap {
    /// What happened, and on which core, warp and lanes, at which pc.
    pub trap: Trap,
    /// The name of the kernel that was launched.
    pub kernel: String,
    /// What the pc points into.
    pub site: TrapSite,
    /// The builder call that made the instruction, if the trap is in the kernel and the place is
    /// known.
    pub place: Option<SourcePlace>,
    /// CLIF's trap code, if the instruction is a `trap` in the kernel's code: `int_ovf`, `user1` and
    /// so on.
    pub trap_code: Option<String>,
    /// The message of the [assertion](harp_jit::KernelBuilder::assert) that does not hold.
    pub message: Option<String>,
    /// What work-items have printed until the trap.
    pub printed: Printed,
    /// What checks have found until the trap, if the launch was checked.
    pub findings: Option<Findings>,
    /// What the launch cost until the trap.
    pub stats: Stats,
    /// Where the launch was kept, if the device [does that](crate::DeviceConfig::replays).
    pub replay: Option<SavedReplay>,
}

/// What the pc of a trap points into.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrapSite {
    /// The kernel's code.
    Kernel {
        /// Bytes from the kernel's first instruction.
        offset: u64,
    },
    /// A function that the kernel calls.
    Function {
        /// Its name.
        name: String,
        /// Bytes from its first instruction.
        offset: u64,
    },
    /// The runtime library.
    Runtime {
        /// The label at or before the pc.
        symbol: String,
        /// Bytes from it.
        offset: u64,
    },
    /// None of these: control left all code.
    Outside,
}

impl std::error::Error for LaunchTrap {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.trap.kind)
    }
}

impl fmt::Display for LaunchTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchTrap { trap, kernel, site, place, trap_code, message, findings, replay, .. } =
            self;
        write!(f, "kernel `{kernel}`")?;
        if let TrapSite::Function { name, .. } = site {
            write!(f, ", function `{name}`")?;
        }
        match (place, site) {
            (Some(place), _) => write!(f, " at {place}")?,
            (None, TrapSite::Function { offset, .. }) => write!(f, " + {offset:#x}")?,
            (None, TrapSite::Kernel { offset }) => write!(f, " + {offset:#x}")?,
            (None, TrapSite::Runtime { symbol, offset }) => {
                write!(f, ", runtime library, `{symbol}` + {offset:#x}")?;
            }
            (None, TrapSite::Outside) => f.write_str(", outside of any code")?,
        }
        match (message, trap_code) {
            (Some(message), _) => write!(f, ": assertion failed: {message}: {trap}")?,
            (None, Some(code)) => write!(f, ": {code}: {trap}")?,
            (None, None) => write!(f, ": {trap}")?,
        }
        // What was wrong before may have led to the trap: a stack slot's end was passed, and the return address is lost.
        findings.as_ref().map_or(Ok(()), |findings| write!(f, "\n{findings}"))?;
        replay.as_ref().map_or(Ok(()), |replay| write!(f, "\n{replay}"))
    }
}
