//! The memory that a kernel sees in the oracle: separate allocations in one flat address space.

use std::collections::BTreeMap;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Type;

use super::Stop;

/// Nothing answers below this address, so null pointers trap.
const FIRST_ADDRESS: u64 = 0x10_0000;

/// Allocations lie apart by at least as much.
const GAP: u64 = 0x1000;

/// Allocations by their addresses, which are of the oracle's own choice and have nothing to do with a device's.
/// Little-endian.
#[derive(Clone, Debug, Default)]
pub(super) struct FlatMemory(BTreeMap<u64, Vec<u8>>);

impl FlatMemory {
    /// Adds an allocation and gives its address, a multiple of 4096.
    pub(super) fn allocate(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.0.last_key_value().map_or(FIRST_ADDRESS, |(start, bytes)| {
            (start + bytes.len() as u64 + GAP).next_multiple_of(GAP)
        });
        self.0.insert(address, bytes);
        address
    }

    /// The bytes of the allocation at `address`. Panics if there is none.
    pub(super) fn contents(&mut self, address: u64) -> &mut Vec<u8> {
        self.0.get_mut(&address).expect("it was allocated")
    }

    /// Takes over the bytes that differ between two others that hold the same allocations.
    pub(super) fn overlay(&mut self, before: &FlatMemory, after: &FlatMemory) {
        let pairs = before.0.values().flatten().zip(after.0.values().flatten());
        for (byte, (before, after)) in self.0.values_mut().flatten().zip(pairs) {
            if before != after {
                *byte = *after;
            }
        }
    }

    /// A value of type `ty`.
    pub(super) fn load(&self, address: u64, ty: Type) -> Result<DataValue, Stop> {
        let (start, offset) = self.locate(address, ty.bytes())?;
        Ok(DataValue::read_from_slice_le(&self.0[&start][offset..], ty))
    }

    /// Writes a value, or changes nothing.
    pub(super) fn store(&mut self, address: u64, value: &DataValue) -> Result<(), Stop> {
        let size = value.ty().bytes();
        let (start, offset) = self.locate(address, size)?;
        value.write_to_slice_le(&mut self.contents(start)[offset..offset + size as usize]);
        Ok(())
    }

    /// In which allocation, and where in it, all of a value lies.
    fn locate(&self, address: u64, size: u32) -> Result<(u64, usize), Stop> {
        let (&start, bytes) = self.0.range(..=address).next_back().ok_or(Stop::BadAddress)?;
        let offset = address - start;
        let end = offset.checked_add(size.into()).filter(|&end| end <= bytes.len() as u64);
        end.map(|_| (start, offset as usize)).ok_or(Stop::BadAddress)
    }
}
