//! Decoded instructions by address.
//!
//! A core decodes an instruction when it first reaches it and keeps the result for the rest of the
//! run, or until the core stores to the instruction's bytes. Stores of other cores and of the host are
//! not seen until the next run.
//!
//! Where addresses are translated, only instructions that may be fetched in place are decoded (see
//! [`InPlace`]), separately for each mode. They are forgotten when the page table no longer lets some warp
//! fetch them there, so whatever is decoded may be fetched. Everything else is left to the precise path.

use harp_isa::{
    ArchId, DecodeError, Encoding, Instruction, MAX_ENCODED_BYTES, Op, OpcodeFlags, Pred, Sharing,
};

use super::decoded::Bytes;
use super::step::{HandlerNumber, Kind, Step};
use crate::tlb::{InPlace, Tlb};
use crate::trap::TrapKind;
use crate::warp::ALWAYS;
use crate::word::{Cell, Word};

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) op: Op,
    /// The instruction, or a pair of it and the next one in its run.
    pub(crate) step: Step,
    pub(crate) handler: HandlerNumber,
    /// How many instructions the step is.
    pub(crate) in_step: u8,
    /// The number of its guard; [`ALWAYS`] if it has none.
    pub(crate) guard: u8,
    /// Bytes to the next instruction.
    pub(crate) size: u8,
    /// How lanes carry it out.
    pub(crate) sharing: Sharing,
    /// Whether it has an effect even if no lane executes it.
    pub(crate) unconditional: bool,
    /// How many instructions from this one on are executed by the same lanes one after the other, as
    /// long as none traps; 0 marks the end of a chain, which is not an instruction.
    pub(crate) run: u16,
    /// Bytes to the next instruction after the run.
    pub(crate) run_bytes: u32,
    /// How many instructions from this one on affect only their warp and cannot trap.
    pub(crate) quiet: u16,
    /// How many instructions from this one on affect only their warp, if none traps. The last of them may jump.
    pub(crate) private: u16,
}

impl Slot {
    /// The instruction at the start of `bytes`.
    pub(crate) fn decode(bytes: &[u8], arch: ArchId) -> Result<Slot, DecodeError> {
        let (Instruction { guard, op }, size) = harp_isa::decode(bytes, arch)?;
        let privileged = op.opcode().flags().contains(OpcodeFlags::PRIVILEGED);
        let step = Step::one(op);
        let sharing = op.sharing(arch);
        Ok(Slot {
            op,
            step,
            handler: match sharing {
                Sharing::Each => HandlerNumber::each(step.kind()),
                Sharing::Once => HandlerNumber::once(op.opcode()),
                Sharing::Row => HandlerNumber::each(Kind::Row),
            },
            sharing,
            in_step: 1,
            guard: guard.map_or(ALWAYS, Pred::index),
            size: u8::try_from(size).expect("no instruction is that long"),
            unconditional: privileged || matches!(op, Op::Split {} | Op::Join {}),
            run: 1,
            run_bytes: size as u32,
            quiet: 0,
            private: 0,
        })
    }

    /// The instruction, for observers.
    pub(crate) fn instruction(&self) -> Instruction {
        let guard = (self.guard != ALWAYS).then(|| Pred::new(self.guard));
        Instruction { guard, op: self.op }
    }
}

/// The slot after the last instruction of a chain.
const CHAIN_END: Slot = Slot {
    op: Op::Nop {},
    step: Step::Nop {},
    handler: HandlerNumber::each(Kind::Nop),
    in_step: 1,
    guard: ALWAYS,
    size: 0,
    sharing: Sharing::Each,
    unconditional: false,
    run: 0,
    run_bytes: 0,
    quiet: 0,
    private: 0,
};

const PAGE: usize = 1024;
/// For each of consecutive addresses, 1 + the index of its slot, or 0 if it is not decoded.
type Page = [u32; PAGE];

/// The most host memory that one call of [`Code::fill`] takes, apart from the list of pages.
const FILL_BYTES: usize = size_of::<Page>() + (PAGE + 1) * size_of::<Slot>();

/// The decoded instructions of a core.
pub(crate) struct Codes {
    /// The code of supervisor and of user mode. Without translation the first serves both.
    modes: [Code; 2],
    /// Whether the modes may fetch from different pages.
    translates: bool,
}

impl Codes {
    /// Nothing decoded yet. Decoded code may take `bytes` bytes, but always enough for one fill per mode.
    pub(crate) fn new(arch: ArchId, bytes: u64, translates: bool) -> Codes {
        let share = if translates { bytes / 2 } else { bytes };
        Codes { modes: [(); 2].map(|()| Code::new(arch, share)), translates }
    }

    fn number(&self, supervisor: bool) -> usize {
        usize::from(self.translates && !supervisor)
    }

    /// The decoded code for warps in supervisor or user mode.
    pub(crate) fn of(&self, supervisor: bool) -> &Code {
        &self.modes[self.number(supervisor)]
    }

    /// Decodes the instruction at `pc` and some after it, as [`Code::fill`] does.
    ///
    /// # Errors
    ///
    /// If `pc` is outside the memory, or no instruction is there, or none that may be fetched in place.
    pub(crate) fn fill<C: Cell>(
        &mut self,
        pc: u64,
        cells: &[C],
        tlb: &Tlb,
        supervisor: bool,
    ) -> Result<(), TrapKind> {
        let pages = self.translates.then(|| tlb.in_place(supervisor));
        self.modes[self.number(supervisor)].fill(pc, cells, pages)
    }

    /// The first address behind all that has been decoded, or a little more.
    pub(crate) fn end(&self) -> u64 {
        self.modes.iter().map(|code| code.end).fold(0, u64::max)
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&mut self) {
        self.modes.iter_mut().for_each(Code::forget_all);
    }

    /// Whether a decoded instruction has any of the bytes `first` to `last`.
    pub(crate) fn has_any(&self, first: u64, last: u64) -> bool {
        self.modes.iter().any(|code| code.has_any(first, last))
    }
}

/// The decoded instructions of a core, for one mode.
///
/// Instructions that were decoded together, which follow each other in memory, form a *chain*: their
/// slots follow each other too.
pub(crate) struct Code {
    arch: ArchId,
    /// The binary logarithm of the distance between instruction addresses in bytes.
    shift: u32,
    pages: Vec<Option<Box<Page>>>,
    slots: Vec<Slot>,
    /// How many pages there are.
    count: usize,
    /// How much host memory pages and slots may take, in bytes.
    limit: usize,
    /// The first address behind all that has been decoded.
    end: u64,
}

/// Where an address is looked up in the pages.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of the page, which is beyond all pages for an address between two instructions.
    page: usize,
    /// The index in the page.
    entry: usize,
}

impl Code {
    /// Nothing decoded yet. Pages and slots may take `bytes` bytes, but always enough for one fill.
    fn new(arch: ArchId, bytes: u64) -> Code {
        let shift = match arch.encoding() {
            Encoding::Word => arch.word().bytes().trailing_zeros(),
            Encoding::Byte => 0,
        };
        let limit = usize::try_from(bytes).unwrap_or(usize::MAX).max(FILL_BYTES);
        Code { arch, shift, pages: Vec::new(), slots: Vec::new(), count: 0, limit, end: 0 }
    }

    #[inline(always)]
    fn place(&self, pc: u64) -> Place {
        // The rotation moves the low bits, which are set in addresses between instructions, to the top.
        let index = pc.rotate_right(self.shift);
        let page = usize::try_from(index / PAGE as u64).unwrap_or(usize::MAX);
        Place { page, entry: index as usize % PAGE }
    }

    /// The number of the slot of the instruction at `pc`, if it is decoded.
    #[inline(always)]
    pub(crate) fn find(&self, pc: u64) -> Option<usize> {
        let Place { page, entry } = self.place(pc);
        (self.pages.get(page)?.as_ref()?[entry] as usize).checked_sub(1)
    }

    /// How many instructions from `pc` on affect only their warp and cannot trap, as far as is known.
    pub(crate) fn quiet(&self, pc: u64) -> u64 {
        self.find(pc).map_or(0, |slot| self.slots[slot].quiet.into())
    }

    /// How many instructions from `pc` on affect only their warp if none traps, as far as is known.
    pub(crate) fn private(&self, pc: u64) -> u64 {
        self.find(pc).map_or(0, |slot| self.slots[slot].private.into())
    }

    /// All slots.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Decodes the instruction at `pc` and those after it, up to the next that may change the pc. It stops at
    /// the end of the page, because zeros are valid instructions, and memory is full of them.
    ///
    /// # Errors
    ///
    /// If `pc` is outside the memory, or no instruction is there, or, if `pages` are given, none that may be
    /// fetched from them.
    fn fill<C: Cell>(
        &mut self,
        mut pc: u64,
        cells: &[C],
        pages: Option<InPlace<'_>>,
    ) -> Result<(), TrapKind> {
        if !pc.is_multiple_of(1 << self.shift) {
            // Word-encoded code that is not aligned to words: from now on every byte has an entry.
            self.shift = 0;
            self.forget_all();
        }
        let taken = self.count * size_of::<Page>() + self.slots.len() * size_of::<Slot>();
        if taken > self.limit - FILL_BYTES {
            self.forget_all();
        }
        let mut place = self.place(pc);
        let number = place.page;
        let mut slot = self.decode(pc, cells, pages)?;
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let mut page = self.pages[number].take().unwrap_or_else(|| {
            self.count += 1;
            Box::new([0; PAGE])
        });
        let first = self.slots.len();
        // What follows a jump or a `halt` is often data, and stores to what is decoded are slow.
        let ends = |slot: &Slot| {
            slot.op.opcode().flags().contains(OpcodeFlags::CONTROL) || slot.op == Op::Halt {}
        };
        loop {
            self.slots.push(slot);
            page[place.entry] =
                u32::try_from(self.slots.len()).expect("the host has no room for as many");
            pc += u64::from(slot.size);
            place = self.place(pc);
            if ends(&slot) || place.page != number || page[place.entry] != 0 {
                break;
            }
            // The following bytes may be data or not permitted, which is an error only if they are reached.
            let Ok(next) = self.decode(pc, cells, pages) else { break };
            slot = next;
        }
        self.slots.push(CHAIN_END);
        find_runs(&mut self.slots[first..], self.arch.word().bits());
        self.end = self.end.max(pc.saturating_add(MAX_ENCODED_BYTES as u64));
        self.pages[number] = Some(page);
        Ok(())
    }

    /// Forgets everything.
    fn forget_all(&mut self) {
        self.pages.clear();
        self.slots.clear();
        self.count = 0;
    }

    /// Whether a decoded instruction has any of the bytes `first` to `last`.
    fn has_any(&self, first: u64, last: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let start = first.saturating_sub(MAX_ENCODED_BYTES as u64 - 1);
        let mut places = start >> self.shift..=last.min(self.end) >> self.shift;
        places.any(|place| {
            let address = place << self.shift;
            let slot = self.find(address).map(|slot| &self.slots[slot]);
            slot.is_some_and(|slot| address + u64::from(slot.size) > first)
        })
    }

    fn decode<C: Cell>(
        &self,
        pc: u64,
        cells: &[C],
        pages: Option<InPlace<'_>>,
    ) -> Result<Slot, TrapKind> {
        let (bytes, count) = bytes_at(cells, pc)?;
        let count = pages.map_or(count, |pages| pages.fetchable(pc, count));
        Slot::decode(&bytes[..count], self.arch).map_err(TrapKind::InvalidInstruction)
    }
}

/// Determines, for each instruction of a chain, the length of its run, for how long it is quiet and private, and
/// the pairs on machines with words of `width` bits.
fn find_runs(chain: &mut [Slot], width: u8) {
    let mut next = CHAIN_END;
    for slot in chain.iter_mut().rev().skip(1) {
        if slot.guard == ALWAYS && !ends_run(slot.op) && next.guard == ALWAYS {
            slot.run = next.run + 1;
            slot.run_bytes = next.run_bytes + u32::from(slot.size);
            let is_each = [slot.sharing, next.sharing] == [Sharing::Each; 2];
            if is_each && let (Some(pair), 2..) = (Step::two(slot.op, next.op, width), slot.run) {
                slot.step = pair;
                slot.handler = HandlerNumber::each(pair.kind());
                slot.in_step = 2;
            }
        }
        slot.quiet = if is_quiet(slot, width) { next.quiet + 1 } else { 0 };
        slot.private = if is_private(slot.op) { next.private + 1 } else { 0 };
        next = *slot;
    }
}

/// Whether other lanes may execute the instructions after this one, or control may leave, or whether the
/// instruction reads the pc or the count of instructions, which are updated only once per run.
fn ends_run(op: Op) -> bool {
    let ends =
        OpcodeFlags::CONTROL.union(OpcodeFlags::PRIVILEGED).union(OpcodeFlags::ONCE_PER_WARP);
    op.opcode().flags().intersects(ends) || matches!(op, Op::Halt {} | Op::Csr { .. })
}

/// Whether the instruction reads and changes only registers and the pc of its warp, and cannot trap, whatever
/// lanes execute it.
fn is_quiet(slot: &Slot, width: u8) -> bool {
    let may_trap = OpcodeFlags::CONTROL.union(OpcodeFlags::DIVIDES);
    match slot.op {
        // With a guard, lanes may disagree and the branch trap.
        Op::Jmpi { .. } | Op::Jali { .. } => slot.guard == ALWAYS,
        Op::Divi { imm, .. } | Op::Modi { imm, .. } => imm << (64 - u32::from(width)) != 0,
        op => is_private(op) && !op.opcode().flags().intersects(may_trap),
    }
}

/// Whether the instruction reads and changes only registers, active lanes and the pc of its warp, if it does not
/// trap.
fn is_private(op: Op) -> bool {
    const OTHERS: OpcodeFlags = OpcodeFlags::PRIVILEGED
        .union(OpcodeFlags::ONCE_PER_WARP)
        .union(OpcodeFlags::LOAD)
        .union(OpcodeFlags::STORE)
        .union(OpcodeFlags::ATOMIC);
    // The index of the latter two may be invalid.
    let asks = matches!(op, Op::Halt {} | Op::Trap {} | Op::Csr { .. } | Op::Ballot { .. });
    !asks && !op.opcode().flags().intersects(OTHERS)
}

/// The bytes from `pc` on that an instruction may have, and how many of them are in memory.
///
/// # Errors
///
/// If `pc` is outside the memory.
pub(crate) fn bytes_at<C: Cell>(cells: &[C], pc: u64) -> Result<(Bytes, usize), TrapKind> {
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
