//! Decoded instructions by address.
//!
//! A core decodes an instruction when it first reaches it and keeps the result for the rest of the
//! run: stores to code that has run are not seen until the next run.

use harp_isa::{ArchId, Encoding, MAX_ENCODED_BYTES, Op, OpcodeFlags, Pred};

use crate::trap::TrapKind;
use crate::warp::ALWAYS;
use crate::word::{Cell, Word};

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) op: Op,
    /// The number of its guard; [`ALWAYS`] if it has none.
    pub(crate) guard: u8,
    /// Bytes to the next instruction; 0 marks a slot that is not decoded.
    pub(crate) size: u8,
    /// Whether it acts even if no lane executes it.
    pub(crate) unconditional: bool,
}

const EMPTY: Slot = Slot { op: Op::Nop {}, guard: ALWAYS, size: 0, unconditional: false };

const PAGE: usize = 1024;
/// The slots of consecutive addresses.
pub(crate) type Page = [Slot; PAGE];

/// A page of which nothing is decoded.
pub(crate) static EMPTY_PAGE: Page = [EMPTY; PAGE];

/// Where an address has its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the page. That of an address between two slots is beyond all pages.
    pub(crate) page: u64,
    /// The slot in its page.
    pub(crate) slot: usize,
}

/// The decoded instructions of a core.
pub(crate) struct Code {
    arch: ArchId,
    /// The binary logarithm of the distance of slots in bytes.
    shift: u32,
    pages: Vec<Option<Box<Page>>>,
}

impl Code {
    pub(crate) fn new(arch: ArchId) -> Code {
        let shift = match arch.encoding() {
            Encoding::Word => arch.word().bytes().trailing_zeros(),
            Encoding::Byte => 0,
        };
        Code { arch, shift, pages: Vec::new() }
    }

    /// The place of the address `pc`.
    #[inline(always)]
    pub(crate) fn place(&self, pc: u64) -> Place {
        // The rotation moves the bits that an address between slots has to the top.
        let index = pc.rotate_right(self.shift);
        Place { page: index / PAGE as u64, slot: index as usize % PAGE }
    }

    /// The page with that number, an empty one if nothing on it is decoded.
    pub(crate) fn page(&self, number: u64) -> &Page {
        let page = usize::try_from(number).ok().and_then(|number| self.pages.get(number));
        page.and_then(Option::as_deref).unwrap_or(&EMPTY_PAGE)
    }

    /// Decodes the instruction at `pc` and those after it up to the next that may change the pc, but
    /// not beyond the page: zeros decode, and memory is full of them.
    ///
    /// # Errors
    ///
    /// If `pc` is outside the memory or there is no instruction.
    pub(crate) fn fill<C: Cell>(&mut self, mut pc: u64, cells: &[C]) -> Result<(), TrapKind> {
        if !pc.is_multiple_of(1 << self.shift) {
            // Word-encoded code off the word boundaries: from now on a slot for every byte.
            self.shift = 0;
            self.pages.clear();
        }
        let first = self.place(pc);
        let slot = self.decode(pc, cells)?;
        let number = usize::try_from(first.page).expect("the pc is inside the memory");
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let mut page = self.pages[number].take().unwrap_or_else(|| Box::new(EMPTY_PAGE));
        page[first.slot] = slot;
        while !page[self.place(pc).slot].op.opcode().flags().contains(OpcodeFlags::CONTROL) {
            pc += u64::from(page[self.place(pc).slot].size);
            let place = self.place(pc);
            if place.page != first.page || page[place.slot].size != 0 {
                break;
            }
            // What follows may be data; it is an error only if it is reached.
            let Ok(slot) = self.decode(pc, cells) else { break };
            page[place.slot] = slot;
        }
        self.pages[number] = Some(page);
        Ok(())
    }

    fn decode<C: Cell>(&self, pc: u64, cells: &[C]) -> Result<Slot, TrapKind> {
        let width = C::Word::BYTES as u64;
        let size = cells.len() as u64 * width;
        if pc >= size {
            return Err(TrapKind::BadPc { size });
        }
        let mut bytes = [0; MAX_ENCODED_BYTES.next_multiple_of(8) + 8];
        let first = (pc / width) as usize;
        let skip = (pc % width) as usize;
        for (bytes, cell) in bytes.chunks_exact_mut(C::Word::BYTES).zip(&cells[first..]) {
            cell.load().to_le(bytes);
        }
        let left = usize::try_from(size - pc).unwrap_or(usize::MAX);
        let bytes = &bytes[skip..][..left.min(MAX_ENCODED_BYTES)];
        let (instruction, size) =
            harp_isa::decode(bytes, self.arch).map_err(TrapKind::InvalidInstruction)?;
        let op = instruction.op;
        let privileged = op.opcode().flags().contains(OpcodeFlags::PRIVILEGED);
        Ok(Slot {
            op,
            guard: instruction.guard.map_or(ALWAYS, Pred::index),
            size: u8::try_from(size).expect("no instruction is that long"),
            unconditional: privileged || matches!(op, Op::Split {} | Op::Join {}),
        })
    }
}
