//! The state of a warp.

use harp_isa::ArchId;

use crate::interrupt::Interrupt;
use crate::stats::WarpStats;
use crate::word::Word;

/// Lanes are kept in groups of this many, the unit of the loops that the compiler turns into
/// vector instructions.
pub(crate) const GROUP: usize = 8;

/// One register of all lanes: `C` groups. Lanes that the machine lacks have undefined values. A register that lanes share
/// has the same value in all of them, and a predicate that they share the same bit.
pub(crate) type Reg<W, const C: usize> = [[W; GROUP]; C];

/// Registers of a file, the same for all machines, so that indexing by a masked number needs no check.
pub(crate) const FILE: usize = 64;

/// The guard of instructions that are not predicated: a predicate that is true everywhere.
pub(crate) const ALWAYS: u8 = FILE as u8;

/// Why a warp does or does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It runs.
    Ready,
    /// It waits at barrier `id`, with its pc at the `bar`, until `warps` warps wait; it goes on at `next`.
    Waiting { id: u64, warps: u64, next: u64 },
    /// It will not run again.
    Stopped,
}

/// An entry of the divergence stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The active lanes after the `join` that pops the entry.
    pub(crate) mask: u64,
    /// Where control continues after that `join`; `None`: at the next instruction.
    pub(crate) resume: Option<u64>,
    /// The address behind the `split` that pushed it.
    pub(crate) behind: u64,
}

/// Entries that each warp has room for from its start on: host code finds some, which cannot make more.
const FIRST_ENTRIES: usize = 16;

/// The state that `reti` restores; of the registers, those of lane 0.
pub(crate) struct Shadow<W> {
    pub(crate) regs: [W; FILE],
    /// Predicate i of lane 0 is bit i.
    pub(crate) preds: u64,
    pub(crate) active: u64,
    pub(crate) active_count: u8,
    pub(crate) supervisor: bool,
    pub(crate) interrupts: bool,
    pub(crate) pc: u64,
}

/// A hardware warp that has been started.
///
/// The registers come first and are aligned to the host's cache lines, so that no group of lanes crosses one.
/// They are not behind a pointer, because loops over lanes would have to load it again and again.
#[repr(C, align(64))]
pub(crate) struct Warp<W, const C: usize> {
    pub(crate) regs: [Reg<W, C>; FILE],
    /// Each predicate's bits by lane; of the upper half only [`ALWAYS`] is used.
    pub(crate) preds: [u64; 2 * FILE],
    pub(crate) pc: u64,
    /// The active lanes.
    pub(crate) active: u64,
    /// The number of lanes that were last activated together.
    pub(crate) active_count: u8,
    pub(crate) supervisor: bool,
    /// Whether interrupts are enabled.
    pub(crate) interrupts: bool,
    /// The state that the last interrupt saved, if there was one.
    pub(crate) shadow: Option<Box<Shadow<W>>>,
    pub(crate) status: Status,
    pub(crate) stack: Vec<Entry>,
    pub(crate) stats: WarpStats,
}

impl<W: Word, const C: usize> Warp<W, C> {
    /// Host memory that a warp takes, with the first entries of its divergence stack, in bytes.
    pub(crate) const STATE_BYTES: u64 =
        (size_of::<Self>() + size_of::<Shadow<W>>() + FIRST_ENTRIES * size_of::<Entry>()) as u64;

    /// A warp with only lane 0 active; `%r0` of that lane is `r0`, everything else 0. `None` if the host has no memory
    /// left.
    pub(crate) fn new(r0: W, pc: u64, supervisor: bool) -> Option<Self> {
        let mut stack = Vec::new();
        stack.try_reserve_exact(FIRST_ENTRIES).ok()?;
        let mut warp = Warp {
            regs: [[[W::ZERO; GROUP]; C]; FILE],
            preds: [0; 2 * FILE],
            pc,
            active: 1,
            active_count: 1,
            supervisor,
            interrupts: true,
            shadow: None,
            status: Status::Ready,
            stack,
            stats: WarpStats::default(),
        };
        warp.regs[0][0][0] = r0;
        warp.preds[usize::from(ALWAYS)] = u64::MAX;
        Some(warp)
    }

    /// Resets the warp of a machine with that many registers to what [`new`](Self::new) returns, reusing its memory.
    pub(crate) fn restart(&mut self, registers: usize, r0: W, pc: u64, supervisor: bool) {
        self.regs[..registers].as_flattened_mut().as_flattened_mut().fill(W::ZERO);
        self.regs[0][0][0] = r0;
        self.preds[..usize::from(ALWAYS)].fill(0);
        self.pc = pc;
        self.activate(1);
        self.supervisor = supervisor;
        self.interrupts = true;
        self.shadow = None;
        self.status = Status::Ready;
        self.stack.clear();
        self.stack.shrink_to(FIRST_ENTRIES);
        self.stats = WarpStats::default();
    }

    /// Writes `value` to a shared register, which has it in all lanes.
    #[inline(always)]
    pub(crate) fn share(&mut self, reg: usize, value: W) {
        self.regs[reg] = [[value; GROUP]; C];
    }

    /// Writes `value` to a shared predicate.
    #[inline(always)]
    pub(crate) fn share_pred(&mut self, pred: usize, value: bool) {
        self.preds[pred] = if value { u64::MAX } else { 0 };
    }

    /// Lets the warp go on, if it waits at a barrier.
    pub(crate) fn release(&mut self) {
        if let Status::Waiting { next, .. } = self.status {
            self.pc = next;
            self.status = Status::Ready;
        }
    }

    /// Makes lanes 0 to `count` - 1 the active ones; `count` is 1 to 64.
    pub(crate) fn activate(&mut self, count: u8) {
        self.active = u64::MAX >> (64 - u32::from(count));
        self.active_count = count;
    }
}

impl<W: Word, const C: usize> Warp<W, C> {
    /// Sends the warp to the handler at `entry`; `reti` returns to `back`.
    pub(crate) fn interrupt(
        &mut self,
        interrupt: Interrupt,
        address: Option<u64>,
        back: u64,
        entry: u64,
    ) {
        let lane_0 = |bits: u64, i: usize| (self.preds[i] & 1) << i | bits;
        self.shadow = Some(Box::new(Shadow {
            regs: std::array::from_fn(|i| self.regs[i][0][0]),
            preds: (0..FILE).fold(0, lane_0),
            active: self.active,
            active_count: self.active_count,
            supervisor: self.supervisor,
            interrupts: self.interrupts,
            pc: back,
        }));
        // In the original `trap` ends like any instruction, so as many lanes as before are active.
        let count = if interrupt == Interrupt::Trap { self.active_count } else { 1 };
        self.activate(count);
        self.regs[0][0][0] = W::from_u64(interrupt.number().into());
        if let Some(address) = address {
            self.regs[1][0][0] = W::from_u64(address);
        }
        self.supervisor = true;
        self.interrupts = false;
        self.pc = entry;
    }

    /// Restores the state before the last interrupt: of lane 0, and of what lanes share. Returns the address at which the
    /// warp goes on; `None` if there was no interrupt.
    pub(crate) fn return_from_interrupt(&mut self, arch: ArchId) -> Option<u64> {
        let shadow = self.shadow.as_deref()?;
        for (i, &value) in shadow.regs.iter().enumerate() {
            self.regs[i][0][0] = value;
            self.preds[i] = (self.preds[i] & !1) | (shadow.preds >> i & 1);
        }
        self.active = shadow.active;
        self.active_count = shadow.active_count;
        self.supervisor = shadow.supervisor;
        self.interrupts = shadow.interrupts;
        let pc = shadow.pc;
        for i in (arch.gprs()..arch.all_gprs()).map(usize::from) {
            let value = self.regs[i][0][0];
            self.share(i, value);
        }
        for i in (arch.preds()..arch.all_preds()).map(usize::from) {
            let value = self.preds[i] & 1 != 0;
            self.share_pred(i, value);
        }
        Some(pc)
    }
}
