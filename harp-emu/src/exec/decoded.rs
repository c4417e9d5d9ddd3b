//! A cache of decoded instructions for the precise path.
//!
//! The precise path reads the bytes of every instruction anew, and looks up their meaning here. The meaning
//! depends on the bytes alone, so entries never become stale when memory or page tables change.

use harp_isa::{ArchId, DecodeError, MAX_ENCODED_BYTES};

use super::code::Slot;

/// The bytes that an instruction may have.
pub(crate) type Bytes = [u8; MAX_ENCODED_BYTES];

/// The binary logarithm of the number of instructions that are kept.
const SIZE: u32 = 8;

#[derive(Clone, Copy)]
struct Entry {
    bytes: Bytes,
    /// How many of the bytes there are.
    count: usize,
    slot: Slot,
}

/// A core's recently decoded instructions: each entry holds the last one whose address hashes to it.
#[derive(Default)]
pub(crate) struct Decoded {
    /// Empty until the first is decoded, because most cores never take the precise path.
    entries: Vec<Option<Entry>>,
}

impl Decoded {
    /// The instruction at the start of the first `count` of `bytes`, which stand at `pc`.
    pub(crate) fn decode(
        &mut self,
        pc: u64,
        bytes: &Bytes,
        count: usize,
        arch: ArchId,
    ) -> Result<Slot, DecodeError> {
        if self.entries.is_empty() {
            self.entries = vec![None; 1 << SIZE];
        }
        // Multiplicative hashing (Knuth 1973, volume 3, section 6.4).
        let place = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SIZE);
        let entry = &mut self.entries[place as usize];
        match entry {
            Some(entry) if entry.bytes == *bytes && entry.count == count => Ok(entry.slot),
            _ => {
                let slot = Slot::decode(&bytes[..count], arch)?;
                *entry = Some(Entry { bytes: *bytes, count, slot });
                Ok(slot)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use harp_isa::{Gpr, Instruction, Op};

    use super::*;

    #[test]
    fn what_the_bytes_mean_now() {
        let arch: ArchId = "8b16/16/4/1".parse().unwrap();
        let r = Gpr::new;
        let long = Instruction::new(Op::Muli { dst: r(3), src: r(2), imm: 1 << 20 });
        let short = Instruction::new(Op::Add { dst: r(3), a: r(2), b: r(1) });
        let mut decoded = Decoded::default();
        let bytes = [long, short].map(|instruction| {
            let mut encoded = Vec::new();
            harp_isa::encode(&instruction, arch, &mut encoded).unwrap();
            let mut bytes = [0; MAX_ENCODED_BYTES];
            bytes[..encoded.len()].copy_from_slice(&encoded);
            (bytes, encoded.len())
        });
        // All entries are used more than once.
        for pc in 0..1000 {
            for _ in 0..2 {
                for (instruction, (bytes, size)) in [long, short].iter().zip(&bytes) {
                    for count in 0..MAX_ENCODED_BYTES {
                        let slot = decoded.decode(pc, bytes, count, arch);
                        assert_eq!(slot.is_ok(), count >= *size, "{count} of {size} bytes");
                        if let Ok(slot) = slot {
                            assert_eq!(slot.instruction(), *instruction);
                        }
                    }
                }
            }
        }
    }
}
