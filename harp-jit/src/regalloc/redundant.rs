//! Moves between registers and slots that hold the same already, or that another register holds.
//!
//! Where a value is in a register in one part of a loop and in its slot elsewhere, regalloc2 stores it at the end of every
//! round, although it was loaded from there and has not changed: it looks for such moves in single blocks only. Here each
//! register's slot is followed through the graph: a fact that holds on all ways to a place (available copies, as in Aho, Lam,
//! Sethi and Ullman, "Compilers", 2006, section 9.5.3).

use std::collections::BTreeSet;
use std::num::NonZero;

use regalloc2::{Allocation, Block, Edit, Function, Inst, InstOrEdit, OperandKind, Output, PReg};

/// The registers of both classes that are allocated, by their indices.
const REGISTERS: usize = 2 << PReg::MAX_BITS;

/// A slot's number, and 1.
type Slot = NonZero<u32>;

fn slot(place: Allocation) -> Option<Slot> {
    NonZero::new(place.as_stack()?.index() as u32 + 1)
}

/// For each register the slot that holds the same, if one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copies([Option<Slot>; REGISTERS]);

impl Copies {
    fn none() -> Copies {
        Copies([None; REGISTERS])
    }

    /// What holds on another way, too. Returns whether that is less.
    fn meet(&mut self, other: &Copies) -> bool {
        let mut is_less = false;
        for (here, there) in self.0.iter_mut().zip(other.0) {
            if here.is_some() && *here != there {
                (*here, is_less) = (None, true);
            }
        }
        is_less
    }

    /// Something is written there.
    fn forget(&mut self, place: Allocation) {
        if let Some(reg) = place.as_reg() {
            self.0[reg.index()] = None;
        } else if let Some(slot) = slot(place) {
            self.0.iter_mut().for_each(|copy| *copy = copy.filter(|&it| it != slot));
        }
    }

    /// A move is executed. Returns from where it may as well come; none if it changes nothing.
    fn copy(&mut self, from: Allocation, to: Allocation) -> Option<Allocation> {
        match (from.as_reg(), to.as_reg()) {
            (Some(reg), Some(to)) => self.0[to.index()] = self.0[reg.index()],
            (Some(reg), None) => {
                if self.0[reg.index()] == slot(to) {
                    return None;
                }
                self.forget(to);
                self.0[reg.index()] = slot(to);
            }
            (None, Some(reg)) => {
                if self.0[reg.index()] == slot(from) {
                    return None;
                }
                let holder = self.0.iter().position(|copy| *copy == slot(from));
                self.0[reg.index()] = slot(from);
                return Some(
                    holder.map_or(from, |holder| Allocation::reg(PReg::from_index(holder))),
                );
            }
            (None, None) => self.forget(to),
        }
        Some(from)
    }

    /// An instruction is executed.
    fn execute(&mut self, func: &impl Function, output: &Output, inst: Inst) {
        let operands = func.inst_operands(inst).iter().zip(output.inst_allocs(inst));
        for (_, &place) in operands.filter(|(operand, _)| operand.kind() == OperandKind::Def) {
            self.forget(place);
        }
        for reg in func.inst_clobbers(inst) {
            self.0[reg.index()] = None;
        }
    }
}

/// Removes such moves, or takes them from the other register.
pub(super) fn remove(func: &impl Function, output: &mut Output) {
    if output.num_spillslots == 0 {
        return;
    }
    let before = before_blocks(func, output);
    let mut sources = Vec::with_capacity(output.edits.len());
    for (number, copies) in before.into_iter().enumerate() {
        // What is not reached stays as it is.
        let mut copies = copies.unwrap_or_else(Copies::none);
        pass(func, output, Block::new(number), &mut copies, |source| sources.push(source));
    }
    debug_assert_eq!(sources.len(), output.edits.len(), "all moves are in blocks");
    // Blocks have their instructions one behind the other, and so their moves.
    let mut sources = sources.into_iter();
    output.edits.retain_mut(|(_, Edit::Move { from, .. })| match sources.next().flatten() {
        Some(source) => {
            *from = source;
            true
        }
        None => false,
    });
}

/// What holds before each block; none for those that are not reached.
fn before_blocks(func: &impl Function, output: &Output) -> Vec<Option<Copies>> {
    let mut before: Vec<Option<Copies>> = vec![None; func.num_blocks()];
    before[func.entry_block().index()] = Some(Copies::none());
    let mut todo = BTreeSet::from([func.entry_block()]);
    while let Some(block) = todo.pop_first() {
        let Some(mut copies) = before[block.index()].clone() else { continue };
        pass(func, output, block, &mut copies, |_| {});
        for &next in func.block_succs(block) {
            let is_new = match &mut before[next.index()] {
                Some(known) => known.meet(&copies),
                unknown => unknown.replace(copies.clone()).is_none(),
            };
            if is_new {
                todo.insert(next);
            }
        }
    }
    before
}

/// Executes a block, and tells of each move from where it may as well come; none if it changes nothing.
fn pass(
    func: &impl Function,
    output: &Output,
    block: Block,
    copies: &mut Copies,
    mut see: impl FnMut(Option<Allocation>),
) {
    for step in output.block_insts_and_edits(func, block) {
        match step {
            InstOrEdit::Inst(inst) => copies.execute(func, output, inst),
            InstOrEdit::Edit(&Edit::Move { from, to }) => see(copies.copy(from, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use regalloc2::{RegClass, SpillSlot};

    use super::*;
    use crate::{CompileOptions, Execution, Linkage, Module};

    /// With six registers, what this loop does not change is in slots.
    const TEXT: &str = "function %f(i32, i32, i32, i32, i32, i32, i32) -> i32 {
        block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32, v5: i32, v6: i32):
            v9 = iconst.i32 0
            jump block1(v9, v6)
        block1(v10: i32, v11: i32):
            v12 = imul v10, v0
            v13 = iadd v12, v1
            v14 = bxor v13, v2
            v15 = imul v14, v3
            v16 = iadd v15, v4
            v17 = bxor v16, v5
            v18 = iconst.i32 -1
            v19 = iadd v11, v18
            brif v19, block1(v17, v19), block2
        block2:
            return v17
        }";

    #[test]
    fn loops_do_not_store_what_they_have_loaded() {
        let func = cranelift_reader::parse_functions(TEXT).unwrap().remove(0);
        let options = CompileOptions { execution: Execution::SingleLane, ..Default::default() };
        let mut module = Module::new("4w8/2/4/4".parse().unwrap(), options);
        let id = module.declare_function("f", Linkage::Export, &func.signature).unwrap();
        module.define_function(id, &func).unwrap();
        let text = module.finish().unwrap().functions()[0].disassembly();
        let offset = |line: &str| u64::from_str_radix(line.split_whitespace().next()?, 16).ok();
        let is_back = |line: &&str| line.contains("jmpi #0xffff");
        let last = text.lines().rfind(is_back).unwrap();
        let first = u64::from_str_radix(last.rsplit("to ").next().unwrap(), 16).unwrap();
        let inside = |line: &&str| offset(line).is_some_and(|at| at >= first);
        let the_loop: Vec<&str> =
            text.lines().filter(inside).take_while(|&line| line != last).collect();
        let with = |mnemonic| the_loop.iter().filter(|line| line.contains(mnemonic)).count();
        assert!(with(" ld ") > 0, "{text}");
        assert_eq!(with(" st "), 0, "{text}");
    }

    #[test]
    fn what_a_register_holds_is_not_loaded() {
        let [a, b] = [0, 1].map(|number| Allocation::reg(PReg::new(number, RegClass::Int)));
        let [one, other] = [0, 1].map(|number| Allocation::stack(SpillSlot::new(number)));
        let mut copies = Copies::none();
        assert_eq!(copies.copy(one, a), Some(one), "nothing is known yet");
        assert_eq!(copies.copy(a, one), None, "it is there");
        assert_eq!(copies.copy(one, a), None, "it has it");
        assert_eq!(copies.copy(one, b), Some(a), "another register has it");
        assert_eq!(copies.copy(b, other), Some(b), "this slot does not hold it yet");
        // Of two slots that hold what a register does, the last one is remembered.
        assert_eq!(copies.copy(one, b), Some(a), "it is found in the first register still");
        copies.forget(a);
        copies.forget(one);
        assert_eq!(copies.copy(one, b), Some(one), "something else was written there");
        let mut less = copies.clone();
        less.forget(b);
        assert!(copies.meet(&less) && !copies.meet(&less), "only what holds on both ways");
        assert_eq!(copies.copy(one, b), Some(one));
    }
}
