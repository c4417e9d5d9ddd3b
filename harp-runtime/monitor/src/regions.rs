//! What addresses may point to in a launch.

use std::collections::HashMap;
use std::ops::Range;

use harp_jit::ir::Type;
use harp_jit::{AccessKind, MemoryAccess, Root};

use crate::finding::{BufferName, Target};

/// What an argument lets the kernel access.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// Nothing, or anything that its address happens to point to.
    Other,
    /// The null pointer: nothing may be accessed through it.
    Null,
    /// A buffer or a part of it.
    Buffer {
        /// Its addresses.
        range: Range<u64>,
        /// The type of its elements.
        element: Type,
        /// What messages call it.
        name: BufferName,
        /// Whether the parameter promises that nothing changes it.
        is_constant: bool,
    },
    /// A part of the memory of each work-group.
    Group {
        /// Bytes from the start of that memory.
        bytes: Range<u64>,
    },
}

/// The places of the work-groups that run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlaces {
    /// The address of the first place's memory.
    pub first: u64,
    /// Bytes from the memory of a place to that of the next.
    pub distance: u64,
    /// Bytes of the memory of a group.
    pub bytes: u64,
    /// Places of a core.
    pub of_core: u64,
    /// Warps of a group.
    pub warps: u64,
}

impl GroupPlaces {
    /// The number of the place that a warp belongs to, and its memory.
    pub fn of_warp(&self, core: u16, warp: u8) -> (usize, Range<u64>) {
        let place = u64::from(core) * self.of_core + u64::from(warp) / self.warps;
        let start = self.first + place * self.distance;
        (place as usize, start..start + self.bytes)
    }
}

/// What addresses may point to in a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    /// By parameter.
    pub arguments: Vec<Argument>,
    /// The data of its module, by name.
    pub data: HashMap<String, Range<u64>>,
    /// All buffers of the device, by address.
    pub buffers: Vec<(Range<u64>, BufferName)>,
    /// What the kernel has there: arguments, code and data.
    pub image: Range<u64>,
    /// The stacks of all lanes.
    pub stacks: Range<u64>,
    /// Bytes of a stack, a power of two.
    pub stack_bytes: u64,
    /// Of launches with work-groups.
    pub groups: Option<GroupPlaces>,
}

/// What a range of addresses belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The argument for this parameter.
    Param(u32),
    Datum(String),
}

/// A part of the memory of a work-group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InGroup {
    /// That of the array, if it is one.
    pub(crate) name: Option<String>,
    /// Offsets from the start of that memory.
    pub(crate) bytes: Range<u64>,
}

/// A slot on the stack of a work-item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// That of the variable that it is for.
    pub(crate) name: Option<String>,
    pub(crate) bytes: u64,
}

/// What an access may be to, for all work-items or for those of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Ranges of addresses, and what is there.
    pub(crate) ranges: Vec<(Range<u64>, Owner)>,
    /// What is in the memory of the work-group.
    pub(crate) in_group: Vec<InGroup>,
    /// The stack slot whose address is reported.
    pub(crate) slot: Option<Slot>,
    /// Anything that is there.
    pub(crate) anywhere: bool,
    /// The type of the buffers' elements, if the access has another one.
    pub(crate) wrong_type: Option<Type>,
}

impl Regions {
    /// What an access may be to.
    pub(crate) fn allowed(&self, access: &MemoryAccess) -> Allowed {
        let mut allowed = Allowed { anywhere: access.roots.is_empty(), ..Allowed::default() };
        for root in &access.roots {
            match root {
                Root::Param(number) => match self.arguments.get(*number as usize) {
                    Some(Argument::Buffer { range, element, .. }) => {
                        allowed.ranges.push((range.clone(), Owner::Param(*number)));
                        if !is_of(access, *element) {
                            allowed.wrong_type = Some(*element);
                        }
                    }
                    Some(Argument::Null) => allowed.ranges.push((0..0, Owner::Param(*number))),
                    Some(Argument::Group { bytes }) => {
                        allowed.in_group.push(InGroup { name: None, bytes: bytes.clone() });
                    }
                    _ => allowed.anywhere = true,
                },
                Root::GroupArray { name, start, bytes } => {
                    let start = u64::from(*start);
                    let bytes = start..start + u64::from(*bytes);
                    allowed.in_group.push(InGroup { name: name.clone(), bytes });
                }
                Root::Group => {
                    let bytes = 0..self.groups.map_or(0, |groups| groups.bytes);
                    allowed.in_group.push(InGroup { name: None, bytes });
                }
                Root::Slot { name, bytes } => {
                    allowed.slot = Some(Slot { name: name.clone(), bytes: (*bytes).into() });
                }
                Root::Datum(name) if let Some(range) = self.data.get(name) => {
                    allowed.ranges.push((range.clone(), Owner::Datum(name.clone())));
                }
                _ => allowed.anywhere = true,
            }
        }
        allowed
    }

    /// The buffers that nothing may change, and the numbers of the parameters that promise it.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (Range<u64>, u32)> + '_ {
        self.arguments.iter().zip(0..).filter_map(|(argument, number)| match argument {
            Argument::Buffer { range, is_constant: true, .. } => Some((range.clone(), number)),
            _ => None,
        })
    }

    /// Whether there is something at all bytes of `range`, for a work-item whose group has this memory.
    pub(crate) fn is_anywhere(&self, range: &Range<u64>, group: Option<&Range<u64>>) -> bool {
        let inside = |all: &Range<u64>| all.start <= range.start && range.end <= all.end;
        inside(&self.image)
            || inside(&self.stacks)
            || group.is_some_and(inside)
            || self.buffer_at(range.start).is_some_and(|(all, _)| inside(all))
    }

    /// What a parameter was given.
    pub(crate) fn name_of(&self, parameter: u32) -> BufferName {
        match &self.arguments[parameter as usize] {
            Argument::Buffer { name, .. } => name.clone(),
            Argument::Null => BufferName(Some("null".to_owned())),
            _ => BufferName::default(),
        }
    }

    /// The buffer with this address.
    fn buffer_at(&self, address: u64) -> Option<&(Range<u64>, BufferName)> {
        let behind = self.buffers.partition_point(|(range, _)| range.start <= address);
        self.buffers[..behind].last().filter(|(range, _)| address < range.end)
    }

    /// What messages say an access was to: what it may be to if that is known, else what is there.
    pub(crate) fn target(
        &self,
        allowed: &Allowed,
        address: u64,
        group: Option<&Range<u64>>,
        slot: u64,
    ) -> Option<Target> {
        if let Some(Slot { name, bytes }) = &allowed.slot {
            return Some(Target::Stack { name: name.clone(), address: slot, bytes: *bytes });
        }
        let place = |range: &Range<u64>| (range.start, range.end - range.start);
        let datum = |name: &String, range| {
            let (address, bytes) = place(range);
            Target::Datum { name: name.clone(), address, bytes }
        };
        let nearest = |range: &&(Range<u64>, Owner)| range.0.start.abs_diff(address);
        if let Some((range, owner)) = allowed.ranges.iter().min_by_key(nearest) {
            let number = match owner {
                Owner::Param(number) => *number,
                Owner::Datum(name) => return Some(datum(name, range)),
            };
            let ((address, bytes), buffer) = (place(range), self.name_of(number));
            return Some(Target::Buffer { parameter: Some(number), buffer, address, bytes });
        }
        if let (Some(InGroup { name, bytes }), Some(memory)) = (allowed.in_group.first(), group) {
            let (address, bytes) = (memory.start + bytes.start, bytes.end - bytes.start);
            return Some(Target::Group { name: name.clone(), address, bytes });
        }
        if let Some(memory) = group.filter(|memory| memory.contains(&address)) {
            let (address, bytes) = place(memory);
            return Some(Target::Group { name: None, address, bytes });
        }
        if let Some((name, range)) = self.data.iter().find(|(_, range)| range.contains(&address)) {
            return Some(datum(name, range));
        }
        let (range, name) = self.buffer_at(address)?;
        let (address, bytes) = place(range);
        Some(Target::Buffer { parameter: None, buffer: name.clone(), address, bytes })
    }
}

/// Whether the access is to elements of this type. Atomic operations are on integers only, whatever the elements are.
fn is_of(access: &MemoryAccess, element: Type) -> bool {
    match access.kind {
        AccessKind::Atomic => access.ty.bytes() == element.bytes(),
        _ => access.ty == element,
    }
}
