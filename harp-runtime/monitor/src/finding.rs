//! What checks find.

use std::fmt;

use harp_jit::ir::Type;
use harp_jit::{AccessKind, SourcePlace};

/// What messages call a buffer: its name if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BufferName(pub Option<String>);

impl fmt::Display for BufferName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "buffer `{name}`"),
            None => f.write_str("the buffer"),
        }
    }
}

/// Something wrong that a kernel did with memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The first access that was wrong in this way.
    pub access: Access,
    /// What it should have been, or was, an access to, if that is known.
    pub target: Option<Target>,
    /// How often the same was found at the same place in the source.
    pub count: u64,
}

/// What is wrong with an access.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// It is outside of all that it may be an access to.
    OutOfBounds,
    /// It reads bytes that nobody has written.
    Uninitialized,
    /// Its address is not aligned, though the program promises that: the machine moves only a part of it, or traps.
    Misaligned {
        /// The bytes that the address should be a multiple of.
        alignment: u8,
    },
    /// Nothing orders it and an access of another work-item to the same bytes.
    Race {
        /// The other access, which came first in this launch.
        other: Access,
        /// Whether there is a barrier between the two, which does not order accesses to this memory.
        passes_barrier: bool,
    },
    /// It is a barrier, and a work-item of the same group has waited at another one instead.
    Barriers {
        /// The other barrier.
        other: Access,
    },
    /// It changes a buffer, though a parameter of the kernel promises that nothing does.
    Constant {
        /// The number of that parameter.
        parameter: u32,
        /// What it was given.
        buffer: BufferName,
    },
    /// Its type is not that of the buffer's elements.
    ElementType {
        /// The type of the elements.
        expected: Type,
    },
}

/// An access to memory by a work-item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// The type that is loaded or stored.
    pub ty: Type,
    /// The address of the first byte; of a barrier it means nothing.
    pub address: u64,
    /// The position of the work-item in the grid.
    pub work_item: [u64; 3],
    /// The position of its work-group, if the launch has groups.
    pub group: Option<[u64; 3]>,
    /// The builder call that made it, if that is known.
    pub place: Option<SourcePlace>,
    /// The function that it is in, if that is not the kernel itself.
    pub function: Option<String>,
}

/// Something in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A buffer, or the part of it that the kernel was given.
    Buffer {
        /// The number of the parameter, if it is an argument.
        parameter: Option<u32>,
        /// The buffer.
        buffer: BufferName,
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The memory of a work-group, or an array in it.
    Group {
        /// The name of the array, if it has one.
        name: Option<String>,
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A datum of the kernel's module.
    Datum {
        /// Its name.
        name: String,
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A slot on the work-item's stack.
    Stack {
        /// The name of the variable that it is for, if it has one.
        name: Option<String>,
        /// Its address.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
    },
}

impl Target {
    fn range(&self) -> (u64, u64) {
        match *self {
            Target::Buffer { address, bytes, .. }
            | Target::Group { address, bytes, .. }
            | Target::Datum { address, bytes, .. }
            | Target::Stack { address, bytes, .. } => (address, bytes),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Buffer { parameter: Some(number), buffer, .. } => {
                write!(f, "{buffer}, parameter {number}")
            }
            Target::Buffer { parameter: None, buffer, .. } => buffer.fmt(f),
            Target::Group { name: Some(name), .. } => write!(f, "array `{name}` of its work-group"),
            Target::Group { name: None, .. } => f.write_str("the memory of its work-group"),
            Target::Datum { name, .. } => write!(f, "datum `{name}`"),
            Target::Stack { name: Some(name), .. } => write!(f, "its variable `{name}`"),
            Target::Stack { name: None, .. } => f.write_str("its stack slot"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            AccessKind::Load => write!(f, "load of {}", self.ty)?,
            AccessKind::Store => write!(f, "store of {}", self.ty)?,
            AccessKind::Order => f.write_str("barrier")?,
            _ => write!(f, "atomic access of {}", self.ty)?,
        }
        let [x, y, z] = self.work_item;
        write!(f, " by work-item ({x}, {y}, {z})")?;
        if let Some([x, y, z]) = self.group {
            write!(f, " of group ({x}, {y}, {z})")?;
        }
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        if let Some(function) = &self.function {
            write!(f, " in function `{function}`")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { kind, access, target, count } = self;
        match kind {
            FindingKind::OutOfBounds => write!(f, "out of bounds: {access}")?,
            FindingKind::Uninitialized => write!(f, "uninitialized: {access}")?,
            FindingKind::Misaligned { alignment } => {
                let address = access.address;
                write!(f, "misaligned: {access}, {address:#x} is no multiple of {alignment}")?;
            }
            FindingKind::Race { other, passes_barrier } => {
                write!(f, "race: {access}, and {other}")?;
                if *passes_barrier {
                    f.write_str(", before a barrier that does not order this memory")?;
                }
            }
            FindingKind::Barriers { other } => {
                write!(f, "different barriers: {access}, and {other}")?;
            }
            FindingKind::Constant { parameter, buffer } => {
                write!(f, "constant: {access}, which parameter {parameter}")?;
                if buffer.0.is_some() {
                    write!(f, ", {buffer},")?;
                }
                f.write_str(" promises not to happen")?;
            }
            FindingKind::ElementType { expected } => {
                write!(f, "element type: {access}, the elements are {expected}")?;
            }
        }
        match target {
            _ if access.kind == AccessKind::Order => {}
            Some(target) => {
                let (start, bytes) = target.range();
                let offset = i128::from(access.address) - i128::from(start);
                write!(f, ": byte {offset} of {target}, which has {bytes} bytes")?;
            }
            None => write!(f, ": address {:#x}, where no buffer is", access.address)?,
        }
        if *count > 1 { write!(f, " ({count} times)") } else { Ok(()) }
    }
}
