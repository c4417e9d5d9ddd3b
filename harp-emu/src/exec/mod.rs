//! The execution of instructions.
//!
//! [`Exec`] executes the instructions of one warp. It implements [`harp_isa::Visitor`] (in `visitor`), with
//! about one line per instruction; the modules of the instruction families hold the functions they call:
//!
//! | module | contents |
//! |---|---|
//! | `lanes`, `kernels` | the operations on all lanes that everything else is built from |
//! | `halves` | operations on the low halves of words |
//! | `memory`, `rows` | loads and stores, lane by lane and of whole registers |
//! | `once` | what is done once for all lanes, on the fast path |
//! | `atomic` | read-modify-write |
//! | `control` | jumps, calls, stops |
//! | `simt` | the divergence stack, lanes, warps, votes |
//! | `privileged` | interrupts, user mode, the page table |
//! | `fast`, `step`, `operand` | the fast path's loop, and what it does in one step |
//! | `simd` | what it does in one step, compiled for the host's vector instructions |
//! | `code` | decoded instructions by address, for the fast path |
//! | `precise`, `decoded` | the precise path's loop, and its cache of decoded instructions |
//! | `audit` | on the precise path, whether lanes read from shared registers what they have written |
//! | `paged` | the precise path's loads and stores through the page table; the fast path's checks of pages |
//! | `system` | a core's devices and tables, which instructions change |
//!
//! Integer, float and predicate instructions are single lines: a method from `lanes` and an operation of
//! [`Word`].
//!
//! Instructions take one of two paths, chosen by the type parameter [`Way`] of [`Exec`]. The fast path works on
//! whole registers. The precise path goes lane by lane and calls an [`Observer`]; it alone handles instructions
//! that are rare, complicated or trap, which the fast path leaves to it. Each operation is defined once, for both.
//!
//! The fast path calls a function, the handler, for each step. A handler is all that there is to an instruction,
//! or a pair: whatever should profit from vector instructions is `#[inline(always)]`, so that it becomes part of
//! the handler and is compiled with its features (see `simd`). There are handlers for each word size, each number
//! of groups of lanes, and each level of vector instructions; so what is long and not often executed belongs in
//! functions that take slices of groups and are shared, such as those for divisions.
//!
//! [`Observer`]: crate::Observer

mod atomic;
pub(crate) mod audit;
pub(crate) mod code;
mod control;
mod decoded;
pub(crate) mod fast;
mod halves;
mod kernels;
mod lanes;
mod memory;
mod once;
mod operand;
mod paged;
mod precise;
mod privileged;
mod rows;
pub(crate) mod simd;
mod simt;
mod step;
pub(crate) mod system;
mod visitor;

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use harp_isa::ArchId;

use crate::barrier::BarrierRule;
use crate::trap::TrapKind;
use crate::warp::{GROUP, Warp};
use crate::word::Word;
use kernels::Group;
use system::System;

/// The state of a core, besides its warps, that no instruction changes.
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
    /// The address of a word from which on stores affect neither read-only memory nor decoded code. For the
    /// fast path.
    pub(crate) plain_stores_from: u64,
    pub(crate) has_console: bool,
    /// Whether guests handle interrupts.
    pub(crate) handles_interrupts: bool,
    pub(crate) barriers: BarrierRule,
    /// Whether addresses are translated.
    pub(crate) translates: bool,
    // Only the precise path uses the following.
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

/// What an instruction asks of the core, or why it traps.
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
    /// Decoded code may have changed: see [`System::changed`].
    CodeChanged,
    /// The instruction traps in `lanes`.
    Trap { kind: TrapKind, lanes: u64 },
}

/// Why a run of instructions ended.
#[derive(Debug)]
pub(crate) enum End<W> {
    /// As many instructions as allowed were issued.
    Budget,
    /// The instruction at the pc is not decoded; it was not issued. The fast path only.
    Undecoded,
    /// There is no instruction at the pc, or none that may be fetched. The precise path only.
    NoInstruction(TrapKind),
    /// The instruction at the pc was issued and asks the core for something. After that the warp goes on at
    /// `next`.
    Event { event: Event<W>, next: u64 },
}

/// Whether a warp goes on after an instruction: if not, [`Exec::event`] says why.
pub(crate) type Flow = ControlFlow<()>;

/// The warp goes on.
const NEXT: Flow = ControlFlow::Continue(());

/// The instruction is left to the precise path; it has had no effect.
const OTHER: Flow = ControlFlow::Break(());

/// A path on which instructions are executed.
pub(crate) trait Way {
    /// Whether this is the precise path: lane by lane, for all instructions. The fast path leaves instructions
    /// that are rare, complicated or trap to it.
    const PRECISE: bool = false;

    /// Whether instructions are carried out once, in the first executing lane, and results go to all lanes: the part
    /// of the fast path for instructions of [`Sharing::Once`](harp_isa::Sharing).
    const ONCE: bool = false;

    /// The warp, if this is the precise path.
    #[inline(always)]
    fn precise<'e, 'a, W: Word, const C: usize>(
        _exec: &'e mut Exec<'a, W, C, Self>,
    ) -> Option<&'e mut Exec<'a, W, C, Precise>>
    where
        Self: Sized,
    {
        None
    }
}

/// The precise path.
pub(crate) struct Precise;
/// The fast path.
pub(crate) struct Fast;
/// The fast path, once for all lanes.
pub(crate) struct Once;

impl Way for Precise {
    const PRECISE: bool = true;

    #[inline(always)]
    fn precise<'e, 'a, W: Word, const C: usize>(
        exec: &'e mut Exec<'a, W, C, Self>,
    ) -> Option<&'e mut Exec<'a, W, C, Precise>> {
        Some(exec)
    }
}
impl Way for Fast {}
impl Way for Once {
    const ONCE: bool = true;
}

/// A warp that executes instructions.
pub(crate) struct Exec<'a, W: Word, const C: usize, P: Way> {
    pub(crate) warp: &'a mut Warp<W, C>,
    pub(crate) env: &'a Env<'a, W>,
    pub(crate) system: &'a mut System,
    /// The number of the warp.
    pub(crate) number: u8,
    /// All lanes of the machine.
    full: u64,
    /// The lanes that execute the instruction: active, and their guard is true. On the precise path only the first of
    /// them, if the instruction is carried out once.
    mask: u64,
    /// How many lanes execute the instruction: one, if it is carried out once.
    executing: u64,
    /// All lanes that are active and whose guard is true. On the precise path only: see [`enabled`](Self::enabled).
    all_enabled: u64,
    /// The lanes that `mask` had more than one in instructions that were carried out once, summed up. On the fast path.
    spared: u64,
    /// The address of the instruction after this one; jumps replace it.
    next: u64,
    event: Option<Event<W>>,
    /// `mask` as words that are all ones or zero, on the fast path and unless all lanes execute.
    select: [Group<W>; C],
    way: PhantomData<P>,
}

impl<'a, W: Word, const C: usize, P: Way> Exec<'a, W, C, P> {
    pub(crate) fn new(
        warp: &'a mut Warp<W, C>,
        env: &'a Env<'a, W>,
        system: &'a mut System,
        number: u8,
    ) -> Self {
        Exec {
            warp,
            env,
            system,
            number,
            full: env.full(),
            mask: 0,
            executing: 0,
            all_enabled: 0,
            spared: 0,
            next: 0,
            event: None,
            select: [const { Cell::new([W::ZERO; GROUP]) }; C],
            way: PhantomData,
        }
    }

    /// The lanes that are active and whose guard is true, of which only one executes what is carried out once.
    #[inline(always)]
    fn enabled(&self) -> u64 {
        if P::PRECISE { self.all_enabled } else { self.mask }
    }

    /// Does something that only the precise path does.
    #[inline(always)]
    fn rarely(&mut self, f: impl FnOnce(&mut Exec<'a, W, C, Precise>) -> Flow) -> Flow {
        P::precise(self).map_or(OTHER, f)
    }

    /// Ends the run with `event`.
    #[inline(always)]
    fn leave(&mut self, event: Event<W>) -> Flow {
        self.rarely(|exec| {
            exec.event = Some(event);
            ControlFlow::Break(())
        })
    }

    /// Ends the run with a trap in `lanes`.
    #[inline(always)]
    fn trap(&mut self, kind: TrapKind, lanes: u64) -> Flow {
        self.leave(Event::Trap { kind, lanes })
    }

    /// Traps before any lane executes, so that no lane is counted.
    #[inline(always)]
    fn trap_uncounted(&mut self, kind: TrapKind, lanes: u64) -> Flow {
        if P::PRECISE {
            self.warp.stats.insts -= u64::from(self.mask.count_ones());
        }
        self.trap(kind, lanes)
    }
}
