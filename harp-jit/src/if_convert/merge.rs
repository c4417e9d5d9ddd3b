//! Block parameters as predicated moves.
//!
//! One of the incoming values is taken as it is; each other one is moved over it where its edges are taken. A
//! move's predicate must be right only in the lanes that reach the block, so a condition often serves without
//! the guard around it. A value computed for the parameter alone needs no move: its instruction writes over
//! the old value itself, under the predicate.

use harp_isa::{Opcode, RegClass};
use smallvec::{SmallVec, smallvec};

use super::convert::{Converter, Edge};
use super::functions::Function;
use super::needs_guard;
use crate::vcode::{MInst, MOperand, Reg};

/// A value that arrives on some of a block's edges.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    value: Reg,
    /// True where one of these edges is taken.
    predicate: Function,
}

/// The predicates that a predicated move of a predicate needs: the guard, the value, the old value and the
/// new one. The last two share a register, but the old value needs another one if it stays live.
const PREDICATES_OF_A_MOVE: usize = 4;

/// How a value is written over another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In place: its instruction, at this index in the code and already guarded, writes over the old value.
    InPlace(usize),
    /// Its instruction, at this index, moves down to the merge and is guarded there.
    Sink(usize),
    /// A move instruction.
    Move,
}

impl Converter<'_> {
    /// Returns a register with argument `index` of the edge that was taken, valid where `care` is true.
    pub(super) fn merge(&mut self, edges: &[Edge], index: usize, care: Function) -> Reg {
        let mut arrivals = self.arrivals(edges, index);
        let costs: Vec<_> = arrivals.iter().map(|arrival| self.cost(arrival, care)).collect();
        // The costliest value is not moved; of several, the first, whose instruction precedes the others'.
        let dearest = (0..arrivals.len()).rev().max_by_key(|&at| costs[at]);
        let first = arrivals.remove(dearest.expect("a member of a region has an entry"));
        let mut merged = first.value;
        for arrival in arrivals {
            merged = self.write_over(merged, &arrival, care);
        }
        merged
    }

    /// The distinct values of argument `index`.
    fn arrivals(&mut self, edges: &[Edge], index: usize) -> SmallVec<[Arrival; 4]> {
        let mut arrivals: SmallVec<[Arrival; 4]> = SmallVec::new();
        for edge in edges {
            let value = edge.args[index];
            self.uses[value.index()] -= 1;
            match arrivals.iter_mut().find(|arrival| arrival.value == value) {
                Some(arrival) => {
                    arrival.predicate = self.guards.or(arrival.predicate, edge.predicate);
                }
                None => arrivals.push(Arrival { value, predicate: edge.predicate }),
            }
        }
        // Any other value will do in place of an undefined one.
        let is_defined = |arrival: &Arrival| !self.undefined.contains(&arrival.value);
        match arrivals.iter().any(is_defined) {
            true => arrivals.retain(|arrival| is_defined(arrival)),
            false => arrivals.truncate(1),
        }
        arrivals
    }

    /// The approximate number of instructions for writing a value over another one.
    fn cost(&mut self, arrival: &Arrival, care: Function) -> usize {
        let way = self.way(None, arrival, care);
        let is_predicate_made = matches!(way, Way::InPlace(_))
            || self.guards.agreeing(arrival.predicate, care).is_some();
        usize::from(way == Way::Move) + usize::from(!is_predicate_made)
    }

    /// The cheapest way to write a value over `old`, or over an undefined value.
    fn way(&mut self, old: Option<Reg>, arrival: &Arrival, care: Function) -> Way {
        let Some(&home) = self.homes.get(&arrival.value) else { return Way::Move };
        if self.uses[arrival.value.index()] > 0 {
            return Way::Move;
        }
        match &self.code[home] {
            Some((MInst::Const { value, .. }, _)) if self.layout.fits(Opcode::Ldi, *value) => {
                Way::Sink(home)
            }
            Some((MInst::Op { opcode, guard, operands }, _))
                if operands.first() == Some(&MOperand::Def(arrival.value)) =>
            {
                match guard {
                    None if needs_guard(*opcode) || self.asks_too_much(operands) => Way::Move,
                    None => Way::Sink(home),
                    Some(_) => self.in_place(home, old, arrival, care),
                }
            }
            _ => Way::Move,
        }
    }

    /// Whether a guarded instruction with these operands needs more predicates than the machine has.
    fn asks_too_much(&self, operands: &[MOperand]) -> bool {
        if !matches!(operands.first(), Some(MOperand::Def(reg)) if reg.class() == RegClass::Pred) {
            // Besides its guard, an instruction with a general register as its result reads at most one
            // predicate.
            return false;
        }
        let is_predicate = |operand: &&MOperand| match operand {
            MOperand::Def(reg) | MOperand::Use(reg) => reg.class() == RegClass::Pred,
            _ => false,
        };
        // The guard, and the old value, which may stay live.
        2 + operands.iter().filter(is_predicate).count() > self.predicates
    }

    /// Whether a guarded instruction can write over `old` at its present place.
    fn in_place(
        &mut self,
        home: usize,
        old: Option<Reg>,
        arrival: &Arrival,
        care: Function,
    ) -> Way {
        let Some(&guard) = self.guarded.get(&home) else { return Way::Move };
        let is_before = |old| self.homes.get(&old).is_none_or(|&defined| defined < home);
        let fits = old.is_none_or(is_before) && self.guards.agree(guard, arrival.predicate, care);
        if fits { Way::InPlace(home) } else { Way::Move }
    }

    /// Returns a register with `arrival`'s value where its edges are taken, and `old` elsewhere.
    fn write_over(&mut self, old: Reg, arrival: &Arrival, care: Function) -> Reg {
        let new = self.vcode.new_reg(old.class());
        self.uses.resize(self.vcode.num_regs);
        self.uses[old.index()] += 1;
        let way = self.way(Some(old), arrival, care);
        let destination = MOperand::Mod { old, new };
        if let Way::InPlace(home) = way {
            if let Some((MInst::Op { operands, .. }, _)) = &mut self.code[home] {
                operands[0] = destination;
            }
            self.homes.insert(new, home);
            self.redefine(arrival.value, new);
            return new;
        }
        let predicate = match self.guards.agreeing(arrival.predicate, care) {
            Some(register) => register,
            None => self.register(arrival.predicate),
        };
        let moved = match way {
            Way::Sink(home) => self.code[home].take(),
            _ => None,
        };
        let (opcode, operands) = match moved {
            Some((MInst::Op { opcode, mut operands, .. }, _)) => {
                operands[0] = destination;
                self.redefine(arrival.value, new);
                (opcode, operands)
            }
            Some((MInst::Const { value, .. }, _)) => {
                (Opcode::Ldi, smallvec![destination, MOperand::Imm(value)])
            }
            _ => {
                self.uses[arrival.value.index()] += 1;
                let source = MOperand::Use(arrival.value);
                match new.class() {
                    RegClass::Gpr => {
                        (Opcode::Ori, smallvec![destination, source, MOperand::Imm(0)])
                    }
                    RegClass::Pred if self.predicates < PREDICATES_OF_A_MOVE => {
                        return self.blend(predicate, arrival.value, old);
                    }
                    RegClass::Pred => (Opcode::Orp, smallvec![destination, source, source]),
                }
            }
        };
        self.push(MInst::Op { opcode, guard: Some(predicate), operands });
        new
    }

    /// Returns a predicate with `value` where `predicate` is true and `old` elsewhere. The instructions need
    /// two predicates each: they flip the bits of `old` that differ.
    fn blend(&mut self, predicate: Reg, value: Reg, old: Reg) -> Reg {
        let differ = self.combine(Opcode::Xorp, value, old);
        let changed = self.combine(Opcode::Andp, differ, predicate);
        self.combine(Opcode::Xorp, old, changed)
    }
}
