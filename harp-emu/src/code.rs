//! Decoded instructions by address.
//!
//! A core decodes an instruction when it first reaches it and keeps the result for the rest of the
//! run, or until the core stores to the instruction's bytes. Stores of other cores and of the host are
//! not seen until the next run.

use harp_isa::{
    ArchId, DecodeError, Encoding, Instruction, MAX_ENCODED_BYTES, Op, OpcodeFlags, Pred,
};

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

impl Slot {
    /// The instruction at the start of `bytes`.
    pub(crate) fn decode(bytes: &[u8], arch: ArchId) -> Result<Slot, DecodeError> {
        let (Instruction { guard, op }, size) = harp_isa::decode(bytes, arch)?;
        let privileged = op.opcode().flags().contains(OpcodeFlags::PRIVILEGED);
        Ok(Slot {
            op,
            guard: guard.map_or(ALWAYS, Pred::index),
            size: u8::try_from(size).expect("no instruction is that long"),
            unconditional: privileged || matches!(op, Op::Split {} | Op::Join {}),
        })
    }

    /// The instruction, for those who look at it.
    pub(crate) fn instruction(&self) -> Instruction {
        let guard = (self.guard != ALWAYS).then(|| Pred::new(self.guard));
        Instruction { guard, op: self.op }
    }
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
    /// How many pages there are, and how many there may be.
    count: usize,
    limit: usize,
    /// The first address behind all that has been decoded.
    end: u64,
}

impl Code {
    /// Nothing is decoded. Pages take at most `bytes` bytes, but there is room for one.
    pub(crate) fn new(arch: ArchId, bytes: u64) -> Code {
        let shift = match arch.encoding() {
            Encoding::Word => arch.word().bytes().trailing_zeros(),
            Encoding::Byte => 0,
        };
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Page>();
        Code { arch, shift, pages: Vec::new(), count: 0, limit: limit.max(1), end: 0 }
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
            self.forget_all();
        }
        let first = self.place(pc);
        let slot = self.decode(pc, cells)?;
        let number = usize::try_from(first.page).expect("the pc is inside the memory");
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let mut page = match self.pages[number].take() {
            Some(page) => page,
            None => {
                if self.count == self.limit {
                    self.forget_all();
                    self.pages.resize(number + 1, None);
                }
                self.count += 1;
                Box::new(EMPTY_PAGE)
            }
        };
        page[first.slot] = slot;
        // What follows a jump or a `halt` is often data, and stores to what is decoded are slow.
        let ends = |slot: &Slot| {
            slot.op.opcode().flags().contains(OpcodeFlags::CONTROL) || slot.op == Op::Halt {}
        };
        while !ends(&page[self.place(pc).slot]) {
            pc += u64::from(page[self.place(pc).slot].size);
            let place = self.place(pc);
            if place.page != first.page || page[place.slot].size != 0 {
                break;
            }
            // What follows may be data; it is an error only if it is reached.
            let Ok(slot) = self.decode(pc, cells) else { break };
            page[place.slot] = slot;
        }
        self.end = self.end.max(pc.saturating_add(MAX_ENCODED_BYTES as u64));
        self.pages[number] = Some(page);
        Ok(())
    }

    /// The first address behind all that has been decoded, or a little more.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&mut self) {
        self.pages.clear();
        self.count = 0;
    }

    /// Forgets the instructions that have any of the bytes `first` to `last`.
    pub(crate) fn forget(&mut self, first: u64, last: u64) {
        let start = first.saturating_sub(MAX_ENCODED_BYTES as u64 - 1);
        for slot in start >> self.shift..=last >> self.shift {
            let place = self.place(slot << self.shift);
            let page = usize::try_from(place.page).ok().and_then(|page| self.pages.get_mut(page));
            if let Some(Some(page)) = page {
                page[place.slot] = EMPTY;
            }
        }
    }

    fn decode<C: Cell>(&self, pc: u64, cells: &[C]) -> Result<Slot, TrapKind> {
        let (bytes, count) = bytes_at(cells, pc)?;
        Slot::decode(&bytes[..count], self.arch).map_err(TrapKind::InvalidInstruction)
    }
}

/// The bytes from `pc` on that an instruction may have, and how many of them are in memory.
///
/// # Errors
///
/// If `pc` is outside the memory.
pub(crate) fn bytes_at<C: Cell>(
    cells: &[C],
    pc: u64,
) -> Result<([u8; MAX_ENCODED_BYTES], usize), TrapKind> {
    let width = C::Word::BYTES as u64;
    let size = cells.len() as u64 * width;
    if pc >= size {
        return Err(TrapKind::BadPc { size });
    }
    let mut words = [0; MAX_ENCODED_BYTES.next_multiple_of(8) + 8];
    let first = (pc / width) as usize;
    for (bytes, cell) in words.chunks_exact_mut(C::Word::BYTES).zip(&cells[first..]) {
        cell.load().to_le(bytes);
    }
    let mut bytes = [0; MAX_ENCODED_BYTES];
    bytes.copy_from_slice(&words[(pc % width) as usize..][..MAX_ENCODED_BYTES]);
    let left = usize::try_from(size - pc).unwrap_or(usize::MAX);
    Ok((bytes, left.min(MAX_ENCODED_BYTES)))
}
