//! Loops in which a work-item waits for what another one of its warp writes behind the loop.
//!
//! `while (exchange(lock, 1)) {} ..; store(lock, 0)`: each work-item by itself goes on some day. In a warp, the lane that has
//! the lock waits behind the loop until the others have left it, too, and they wait for the lock (ElTantawy and Aamodt, "MIMD
//! synchronization on SIMT architectures", MICRO 2016). As there, lanes wait for each other behind the write instead: from
//! there, a way that nobody takes leads back to the loop's header, so all up to there belongs to the loop. Each lane does what
//! it did, in the same order.
//!
//! A loop waits if it is left by what it reads by an atomic access, or by any access that a fence orders. It does not if it
//! only repeats its own exchange until nothing has come in between. The writes are those to the same array, if no way
//! misses them, else all atomic ones behind the loop, and those before a fence. Some stand on other ways to where the loop
//! leads, `if (first) { ..; store(flag, 1) } else { while (!load(flag)) {} }`, or behind loops around it: `for (..) { while
//! (!load(flag[i])) {} .. } store(flag[mine], 1)`. A lock is given back by who has taken it, so such places matter only if some
//! way behind the loop misses the write. The last of them counts: others may wait for a second lock, too.
//!
//! No such way crosses a place where work-items gather: they would get there in other rounds than the program's. They may in
//! functions that are called, unless it is known that they do not.
//!
//! This comes before atomic accesses are replaced by others, and so before it is known where lanes diverge. Where they do
//! not, the loop stays as it was.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{F32, F64, I8};
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, Inst, InstBuilder, InstructionData, Type, Value,
};

use crate::analysis::{Callees, Graph};
use crate::intrinsic::Intrinsic;
use crate::legalize;

mod accesses;
mod repair;
mod search;
#[cfg(test)]
mod tests;

use accesses::may_wait;
use repair::repair;
use search::Search;

/// Adds ways back to the headers of loops that wait. `callees` says in which calls lanes may gather.
pub(crate) fn extend(func: &mut Function, callees: &dyn Callees) {
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    if !insts.any(|inst| may_wait(func, inst)) {
        return;
    }
    // Ways that write and return apart from each other meet there.
    legalize::one_return(func);
    func.dfg.resolve_all_aliases();
    loop {
        let graph = Graph::compute(func);
        let ways = Search::new(func, &graph, callees).all_ways();
        // The latter change which blocks dominate others.
        let (plain, mut other): (Vec<_>, Vec<_>) = ways.into_iter().partition(|ways| ways.is_plain);
        other.truncate(1);
        let ways = if plain.is_empty() { other } else { plain };
        if ways.is_empty() {
            return;
        }
        for ways in ways {
            ways.add(func);
        }
    }
}

/// Turns ways that nobody takes into none. Returns whether there were any; the graph is another one then.
pub(super) fn forget_ways(func: &mut Function) -> bool {
    let last = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
    let ways: Vec<_> = last.filter_map(|inst| Some((inst, way(func, inst)?))).collect();
    for (inst, [_, rest]) in &ways {
        let args: Vec<BlockArg> = rest.args(&func.dfg.value_lists).collect();
        let to = rest.block(&func.dfg.value_lists);
        let mut at = FuncCursor::new(func).at_inst(*inst);
        at.use_srcloc(*inst);
        at.ins().jump(to, &args);
        at.remove_inst();
    }
    if ways.is_empty() {
        return false;
    }
    legalize::reachable(func);
    true
}

/// Ways back to a loop's header.
struct Ways {
    header: Block,
    /// The instructions before which they begin.
    places: Vec<Inst>,
    /// The same for a way from outside of the cycle that they make, if it is not entered at the header otherwise: a loop inside
    /// of it would stay one.
    entry: Option<Inst>,
    /// Whether they change no other block's dominators.
    is_plain: bool,
}

impl Ways {
    /// Adds the ways.
    fn add(&self, func: &mut Function) {
        for &before in self.places.iter().chain(&self.entry) {
            self.add_before(func, before);
        }
        if !self.is_plain {
            repair(func);
        }
    }

    fn add_before(&self, func: &mut Function, before: Inst) {
        let block = func.layout.inst_block(before).expect("it is in the layout");
        let rest = func.dfg.make_block();
        func.layout.split_block(rest, before);
        let types: Vec<Type> = func.dfg.block_param_types(self.header).collect();
        let place = func.srcloc(before);
        let mut at = FuncCursor::new(func).with_srcloc(place).at_bottom(block);
        let args: Vec<BlockArg> = types.into_iter().map(|ty| zero(&mut at, ty).into()).collect();
        let never = Intrinsic::Never.declare(at.func, I8);
        let call = at.ins().call(never, &[]);
        let never = at.func.dfg.first_result(call);
        at.ins().brif(never, self.header, &args, rest, &[]);
    }
}

/// Whether there is a [`zero`] of this type.
fn has_zero(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64 || ty == F32 || ty == F64
}

fn zero(at: &mut FuncCursor<'_>, ty: Type) -> Value {
    match ty {
        F32 => at.ins().f32const(0.0),
        F64 => at.ins().f64const(0.0),
        _ => at.ins().iconst(ty, 0),
    }
}

/// The targets of a branch that is a way which nobody takes: that of the way, and the other.
fn way(func: &Function, inst: Inst) -> Option<[BlockCall; 2]> {
    let InstructionData::Brif { arg, blocks, .. } = func.dfg.insts[inst] else { return None };
    let condition = func.dfg.value_def(func.dfg.resolve_aliases(arg)).inst()?;
    (Intrinsic::of_call(func, condition) == Some(Intrinsic::Never)).then_some(blocks)
}
