//! What instructions do.
//!
//! [`Exec`] is one warp at work. It implements [`harp_isa::Visitor`] (in `visitor`), one line an
//! instruction; the families' modules hold what the lines call:
//!
//! | module | what |
//! |---|---|
//! | `lanes` | the loops over lanes that everything else is made of |
//! | `memory` | loads and stores |
//! | `atomic` | read-modify-write |
//! | `control` | jumps, calls, stops |
//! | `simt` | the divergence stack, lanes, warps, votes |
//! | `system` | interrupts, user mode, the table of pages |
//! | `precise`, `paged` | the precise way's loop, its fetches, loads and stores through the table |
//!
//! Integer, float and predicate instructions are single lines: a loop from `lanes` around an
//! operation of [`Word`].
//!
//! Everything that is to profit from vector instructions is `#[inline(always)]`, so that it becomes
//! part of [`run`] and is compiled with the features of run's caller (see `simd`). What is rare is
//! `#[inline(never)]`, so that it is compiled once.
//!
//! There are two ways through, chosen by the constant `PRECISE` of [`Exec`]. The fast one works on
//! whole registers; the precise one goes lane by lane, tells an [`Observer`], and alone knows what
//! the fast one leaves out. What an operation does is written once, for both.

mod atomic;
mod control;
mod lanes;
mod memory;
mod paged;
mod precise;
mod simt;
mod system;
mod visitor;

use std::ops::ControlFlow;

use harp_isa::ArchId;

use crate::code::{Code, EMPTY_PAGE};
use crate::config::DivergentBarriers;
use crate::system::System;
use crate::trap::TrapKind;
use crate::warp::Warp;
use crate::word::Word;

/// What a core has besides its warps and that no instruction changes.
pub(crate) struct Env<'m, W: Word> {
    pub(crate) cells: &'m [W::Cell],
    pub(crate) arch: ArchId,
    /// Lanes of a warp.
    pub(crate) lanes: u8,
    /// Warps of a core.
    pub(crate) warps: u8,
    pub(crate) core: u16,
    pub(crate) cores: u16,
    pub(crate) divergence_depth: usize,
    /// The host memory that the core's warps may take, in bytes.
    pub(crate) state_share: u64,
    /// The first address that may be stored to, a word's.
    pub(crate) read_only_below: u64,
    /// The first address of a word from which on stores concern neither read-only memory nor decoded
    /// code. For the fast way.
    pub(crate) plain_stores_from: u64,
    pub(crate) has_console: bool,
    /// Whether guests handle interrupts.
    pub(crate) handles_interrupts: bool,
    pub(crate) divergent_barriers: DivergentBarriers,
    /// The address behind the `split` that may hold lanes back from barriers, if there is one.
    pub(crate) behind_outer_split: Option<u64>,
    // What only the precise way knows.
    /// Whether addresses are translated.
    pub(crate) translates: bool,
    /// Whether floats are computed as in the original.
    pub(crate) reference_floats: bool,
    /// Whether loops reconverge at their `split`.
    pub(crate) pdom: bool,
}

impl<W: Word> Env<'_, W> {
    /// All lanes.
    pub(crate) fn full(&self) -> u64 {
        u64::MAX >> (64 - u32::from(self.lanes))
    }
}

/// What an instruction asks of the core, or why it cannot be done.
#[derive(Debug)]
pub(crate) enum Event<W> {
    /// The warp stops.
    Stop,
    /// A warp is to be started at `pc`, with `value` in register number `register` of lane 0.
    Spawn { pc: u64, register: u8, value: W },
    /// The warp waits at barrier `id` until `warps` warps do.
    Barrier { id: u64, warps: u64 },
    /// Interrupts may have become possible.
    Unmasked,
    /// Stores may have changed decoded code: see [`System::stored`].
    CodeStored,
    /// The instruction traps in `lanes`.
    Trap { kind: TrapKind, lanes: u64 },
}

/// Why [`run`] came back.
#[derive(Debug)]
pub(crate) enum End<W> {
    /// As many instructions as allowed were issued.
    Budget,
    /// The instruction at the pc is not decoded; it was not issued. The fast way only.
    Undecoded,
    /// There is no instruction at the pc, or none that may be fetched. The precise way only.
    NoInstruction(TrapKind),
    /// The instruction at the pc was issued and asks for something. Once that is done the warp
    /// goes on at `next`.
    Event { event: Event<W>, next: u64 },
}

/// Whether a warp goes on after an instruction: if not, [`Exec::event`] says why.
pub(crate) type Flow = ControlFlow<()>;

/// The warp goes on.
const NEXT: Flow = ControlFlow::Continue(());

/// A warp at work: fast, or lane by lane.
pub(crate) struct Exec<'a, W: Word, const C: usize, const PRECISE: bool> {
    pub(crate) warp: &'a mut Warp<W, C>,
    pub(crate) env: &'a Env<'a, W>,
    pub(crate) system: &'a mut System,
    /// The number of the warp.
    pub(crate) number: u8,
    /// All lanes of the machine.
    full: u64,
    /// The lanes that execute the instruction: active, and their guard is true.
    mask: u64,
    /// The address of the instruction after this one; jumps replace it.
    next: u64,
    event: Option<Event<W>>,
}

impl<'a, W: Word, const C: usize, const PRECISE: bool> Exec<'a, W, C, PRECISE> {
    pub(crate) fn new(
        warp: &'a mut Warp<W, C>,
        env: &'a Env<'a, W>,
        system: &'a mut System,
        number: u8,
    ) -> Self {
        let full = env.full();
        Exec { warp, env, system, number, full, mask: 0, next: 0, event: None }
    }

    /// Ends the turn with `event`.
    #[inline(never)]
    fn leave(&mut self, event: Event<W>) -> Flow {
        self.event = Some(event);
        ControlFlow::Break(())
    }

    /// Ends the turn with a trap in `lanes`.
    #[cold]
    #[inline(never)]
    fn trap(&mut self, kind: TrapKind, lanes: u64) -> Flow {
        self.leave(Event::Trap { kind, lanes })
    }

    /// A trap that happens before any lane executes, so that none counts.
    #[cold]
    #[inline(never)]
    fn trap_uncounted(&mut self, kind: TrapKind, lanes: u64) -> Flow {
        self.warp.stats.insts -= u64::from(self.mask.count_ones());
        self.trap(kind, lanes)
    }
}

/// Issues at most `budget` instructions of a warp, the fast way.
#[inline(always)]
pub(crate) fn run<W: Word, const C: usize>(
    exec: &mut Exec<'_, W, C, false>,
    code: &Code,
    budget: u64,
) -> End<W> {
    let pc_mask = W::ONES.to_u64();
    let mut page = &EMPTY_PAGE;
    let mut page_number = u64::MAX;
    let mut pc = exec.warp.pc;
    let mut left = budget;
    let end = loop {
        if left == 0 {
            break End::Budget;
        }
        let place = code.place(pc);
        if place.page != page_number {
            page_number = place.page;
            page = code.page(page_number);
        }
        let slot = &page[place.slot];
        if slot.size == 0 {
            break End::Undecoded;
        }
        left -= 1;
        exec.next = pc.wrapping_add(u64::from(slot.size)) & pc_mask;
        exec.mask = exec.warp.active & exec.warp.preds[usize::from(slot.guard % 128)];
        exec.warp.stats.steps += 1;
        let flow = if exec.mask == 0 && !slot.unconditional {
            NEXT
        } else {
            exec.warp.stats.insts += exec.executing();
            slot.op.accept(exec)
        };
        if flow.is_break() {
            let event = exec.event.take().expect("a turn that ends says why");
            break End::Event { event, next: exec.next };
        }
        pc = exec.next;
    };
    exec.warp.pc = pc;
    end
}
