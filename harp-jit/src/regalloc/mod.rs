//! The adapter to regalloc2: the only module that knows its types.
//!
//! General registers are regalloc2's `Int` class, predicates its `Float` class. `%sp` and `%ra` are not
//! allocated; all other registers are, caller-saved ones first. Spill slots are one word in both classes.
//! regalloc2 gets no scratch register of its own: emission needs `%ra` for far slots and predicate spills,
//! which may occur between regalloc2's own moves.

use std::cell::Cell;

use harp_isa::abi::RegisterRoles;
use harp_isa::{ArchId, Gpr, Pred, RegClass};
use regalloc2::checker::Checker;
use regalloc2::{
    Allocation, AllocationKind, Ctx, Edit, Function as _, InstOrEdit, MachineEnv, Output, PReg,
    PRegSet, RegAllocError, RegallocOptions,
};

use crate::error::CompileError;
use crate::vcode::{BlockId, VCode};

mod function;
mod redundant;

use function::Adapter;

/// regalloc2 names at most this many registers of a class.
const MAX_REGS: u8 = 63;

/// The place of a value after allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Location {
    Gpr(Gpr),
    Pred(Pred),
    /// A spill slot, numbered from 0, holding a general register's or a predicate's value.
    Slot {
        index: u32,
    },
}

/// A move that the allocator inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: Location,
    pub(crate) to: Location,
}

impl Move {
    /// Whether the move loads or stores a predicate in a slot.
    pub(crate) fn is_predicate_spill(&self) -> bool {
        matches!(
            (self.from, self.to),
            (Location::Pred(_), Location::Slot { .. }) | (Location::Slot { .. }, Location::Pred(_))
        )
    }
}

/// The next thing to emit in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The instruction with this index in [`VCode::insts`].
    Inst(usize),
    /// A move.
    Move(Move),
}

/// The allocation of one function.
#[derive(Debug)]
pub(crate) struct Allocated {
    output: Output,
    adapter: Adapter,
}

/// Assigns registers and spill slots to the virtual registers of `vcode`.
///
/// With `check`, regalloc2's symbolic checker proves the allocation correct.
///
/// # Errors
///
/// If regalloc2 refuses the function, or its checker the allocation: both are defects of this crate.
pub(crate) fn allocate(
    vcode: &VCode,
    arch: ArchId,
    check: bool,
) -> Result<Allocated, CompileError> {
    let internal = |message: String| CompileError::Internal { stage: "regalloc", message };
    let env = machine_env(arch);
    // All predicates and the lower half of the general registers, which are also preferred.
    let caller_saved = env.preferred_regs_by_class.iter().fold(PRegSet::empty(), |mut all, set| {
        all.union_from(*set);
        all
    });
    let adapter = Adapter::new(vcode, caller_saved);
    let options = RegallocOptions { validate_ssa: check, ..RegallocOptions::default() };
    let mut output = run(&adapter, &env, &options).map_err(|e| internal(e.to_string()))?;
    redundant::remove(&adapter, &mut output);
    if check {
        let mut checker = Checker::new(&adapter, &env);
        checker.prepare(&output);
        checker.run().map_err(|errors| internal(format!("{errors:?}")))?;
    }
    Ok(Allocated { output, adapter })
}

thread_local! {
    /// The allocator's working memory, kept for the next function that this thread compiles: for small
    /// functions, allocating it takes a noticeable share of the time.
    static MEMORY: Cell<Option<Box<Ctx>>> = const { Cell::new(None) };
}

/// The largest function, in instructions, after which the working memory is kept: it takes about 1.5
/// kilobytes per instruction.
const MAX_KEPT: usize = 10_000;

fn run(
    adapter: &Adapter,
    env: &MachineEnv,
    options: &RegallocOptions,
) -> Result<Output, RegAllocError> {
    let mut memory = MEMORY.take().unwrap_or_default();
    regalloc2::run_with_ctx(adapter, env, options, &mut memory)?;
    let output = std::mem::take(&mut memory.output);
    if adapter.num_insts() <= MAX_KEPT {
        MEMORY.set(Some(memory));
    }
    Ok(output)
}

impl Allocated {
    /// The number of spill slots, in words.
    pub(crate) fn slots(&self) -> u32 {
        self.output.num_spillslots as u32
    }

    /// All moves.
    pub(crate) fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        self.output
            .edits
            .iter()
            .map(|(_, Edit::Move { from, to })| Move { from: location(*from), to: location(*to) })
    }

    /// The instructions and moves of a block in order.
    pub(crate) fn steps(&self, block: BlockId) -> impl Iterator<Item = Step> + '_ {
        let block = regalloc2::Block::new(block.index());
        self.output.block_insts_and_edits(&self.adapter, block).map(|item| match item {
            InstOrEdit::Inst(inst) => Step::Inst(inst.index()),
            InstOrEdit::Edit(&Edit::Move { from, to }) => {
                Step::Move(Move { from: location(from), to: location(to) })
            }
        })
    }

    /// The places of an instruction's registers, in the order of
    /// [`MInst::for_each_reg`](crate::vcode::MInst::for_each_reg); arguments of a jump have no place.
    pub(crate) fn operands(&self, inst: usize) -> impl Iterator<Item = Location> + '_ {
        let allocations = self.output.inst_allocs(regalloc2::Inst::new(inst));
        allocations.iter().copied().map(location)
    }
}

fn location(allocation: Allocation) -> Location {
    match allocation.kind() {
        AllocationKind::Reg => from_preg(allocation.as_reg().expect("the kind was asked for")),
        AllocationKind::Stack => {
            let slot = allocation.as_stack().expect("the kind was asked for");
            Location::Slot { index: slot.index() as u32 }
        }
        AllocationKind::None => unreachable!("every operand is allocated"),
    }
}

fn class(class: RegClass) -> regalloc2::RegClass {
    match class {
        RegClass::Gpr => regalloc2::RegClass::Int,
        RegClass::Pred => regalloc2::RegClass::Float,
    }
}

fn gpr_preg(reg: Gpr) -> PReg {
    PReg::new(reg.into(), class(RegClass::Gpr))
}

fn pred_preg(reg: Pred) -> PReg {
    PReg::new(reg.into(), class(RegClass::Pred))
}

fn from_preg(preg: PReg) -> Location {
    let index = preg.hw_enc() as u8;
    if preg.class() == class(RegClass::Gpr) {
        Location::Gpr(Gpr::new(index))
    } else {
        Location::Pred(Pred::new(index))
    }
}

fn machine_env(arch: ArchId) -> MachineEnv {
    let roles = RegisterRoles::new(arch);
    let set = |regs: &mut dyn Iterator<Item = PReg>| regs.fold(PRegSet::empty(), PRegSet::with);
    let none = PRegSet::empty();
    let preds = arch.preds().min(MAX_REGS);
    MachineEnv {
        preferred_regs_by_class: [
            set(&mut roles.caller_saved().map(gpr_preg)),
            set(&mut (0..preds).map(Pred::new).map(pred_preg)),
            none,
        ],
        non_preferred_regs_by_class: [set(&mut roles.callee_saved().map(gpr_preg)), none, none],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}
