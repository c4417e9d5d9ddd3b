//! The memory that a kernel sees in the oracle: separate allocations in one flat address space.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;

use super::Stop;

/// Nothing answers below this address, so null pointers trap.
const FIRST_ADDRESS: u64 = 0x10_0000;

/// Allocations lie apart by at least as much.
const GAP: u64 = 0x1000;

/// Allocations at addresses of the oracle's own choice, which have nothing to do with a device's.
/// Little-endian.
#[derive(Clone, Debug, Default)]
pub(super) struct FlatMemory {
    allocations: Vec<(u64, Vec<u8>)>,
}

impl FlatMemory {
    /// Adds an allocation and gives its address, a multiple of 4096.
    pub(super) fn allocate(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.allocations.last().map_or(FIRST_ADDRESS, |(start, bytes)| {
            (start + bytes.len() as u64 + GAP).next_multiple_of(GAP)
        });
        self.allocations.push((address, bytes));
        address
    }

    /// The bytes of the allocation that starts at `address`; none if there is none.
    pub(super) fn contents(&self, address: u64) -> Option<&[u8]> {
        let found = self.allocations.iter().find(|(start, _)| *start == address);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// Sets all bytes of the allocation that starts at `address`, if there is one.
    pub(super) fn fill(&mut self, address: u64, value: u8) {
        let found = self.allocations.iter_mut().find(|(start, _)| *start == address);
        if let Some((_, bytes)) = found {
            bytes.fill(value);
        }
    }

    /// Takes over the bytes that differ between two others that hold the same allocations.
    pub(super) fn overlay(&mut self, before: &FlatMemory, after: &FlatMemory) {
        let pairs = before.allocations.iter().zip(&after.allocations);
        for ((_, bytes), ((_, before), (_, after))) in self.allocations.iter_mut().zip(pairs) {
            for (byte, (before, after)) in bytes.iter_mut().zip(before.iter().zip(after)) {
                if before != after {
                    *byte = *after;
                }
            }
        }
    }

    /// A value of type `ty`.
    pub(super) fn load(&self, address: u64, ty: Type) -> Result<DataValue, Stop> {
        let (allocation, offset) = self.locate(address, ty.bytes())?;
        let bytes = &self.allocations[allocation].1[offset..];
        Ok(DataValue::read_from_slice_le(bytes, ty))
    }

    /// Writes a value, or changes nothing.
    pub(super) fn store(&mut self, address: u64, value: &DataValue) -> Result<(), Stop> {
        let size = value.ty().bytes();
        let (allocation, offset) = self.locate(address, size)?;
        let bytes = &mut self.allocations[allocation].1[offset..offset + size as usize];
        value.write_to_slice_le(bytes);
        Ok(())
    }

    /// In which allocation, and where in it, all of a value lies.
    fn locate(&self, address: u64, size: u32) -> Result<(usize, usize), Stop> {
        let holds = |(start, bytes): &(u64, Vec<u8>)| {
            let offset = address.checked_sub(*start)?;
            let end = offset.checked_add(size.into())?;
            (end <= bytes.len() as u64).then_some(offset as usize)
        };
        let mut found = self.allocations.iter().enumerate();
        let found = found.find_map(|(index, allocation)| Some((index, holds(allocation)?)));
        found.ok_or(Stop::BadAddress)
    }
}
