//! Where in the frame loads and stores go, and so what each instruction reads and writes.

use harp_isa::abi::RegisterRoles;
use harp_isa::{Gpr, Instruction, Op, Operand, Role as Access, WordSize};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::Code;
use crate::op::{compute, sources};
use crate::places::{Place, Places};
use crate::record::Role;
use crate::structure::Structure;

/// What an instruction writes, and what it reads.
pub(crate) struct Accessed {
    pub(crate) to: Option<Place>,
    pub(crate) from: SmallVec<[Place; 4]>,
}

/// The places that instructions access.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) code: &'a Code<'a>,
    pub(crate) places: &'a Places,
    /// Where in the frame each instruction accesses it, if that is known.
    accesses: Vec<Option<i64>>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(code: &'a Code<'a>, structure: &Structure, places: &'a Places) -> Frame<'a> {
        Frame { code, places, accesses: accesses(code, structure) }
    }

    /// What an instruction reads and writes, words of the frame included.
    pub(crate) fn accessed(&self, at: usize) -> Accessed {
        let op = self.code.insts[at].instruction.op;
        let mut accessed = Accessed { to: None, from: SmallVec::new() };
        Instruction::new(op).for_each_register(|operand, _, access| {
            let Some(place) = Places::operand(operand) else { return };
            if access != Access::Use {
                accessed.to = Some(place);
            }
            if access != Access::Def {
                accessed.from.push(place);
            }
        });
        match op {
            Op::St { .. } => accessed.to = self.slot(at),
            Op::Ld { .. } => accessed.from.extend(self.slot(at)),
            _ => {}
        }
        accessed
    }

    /// The word of the frame that an instruction accesses.
    pub(crate) fn slot(&self, at: usize) -> Option<Place> {
        self.places.slot(self.accesses[at]?)
    }

    /// Whether an instruction loads from the frame, and it is not known which word.
    pub(crate) fn reads_any_slot(&self, at: usize) -> bool {
        let Op::Ld { base, .. } = self.code.insts[at].instruction.op else { return false };
        // Large frames are accessed by way of the scratch register.
        let roles = RegisterRoles::new(self.code.arch);
        let bases = [roles.stack_pointer(), roles.return_address()];
        self.accesses[at].is_none() && bases.contains(&base)
    }
}

/// Where each load and store of a word goes, in bytes from the stack pointer at the entry; none if that is not
/// known, or not in the stack.
fn accesses(code: &Code<'_>, structure: &Structure) -> Vec<Option<i64>> {
    let mut accesses = vec![None; code.insts.len()];
    let mut ends: Vec<Option<i64>> = vec![None; structure.blocks.len()];
    for (number, block) in structure.blocks.iter().enumerate() {
        // In reverse post-order, some way was seen before; all of them agree where it matters.
        let height = match number {
            0 => Some(0),
            _ => block.edges.iter().find_map(|edge| ends[edge.from]),
        };
        let mut known = Known::new(code, height);
        let insts = block.first..=block.last;
        for (access, inst) in accesses[insts.clone()].iter_mut().zip(&code.insts[insts]) {
            *access = known.access(inst.instruction.op);
            known.step(inst.instruction);
            if let Some(Role::Call { popped, .. }) = inst.note.map(|note| &note.role) {
                known = Known::new(code, known.height().map(|height| height.wrapping_add(*popped)));
            }
        }
        ends[number] = known.height();
    }
    accesses
}

/// What a register holds.
#[derive(Clone, Copy, Debug)]
enum Held {
    Constant(u64),
    /// The stack pointer at the entry plus this.
    Stack(i64),
}

/// What registers hold, in a block. Large frames are accessed by way of others than the stack pointer.
struct Known {
    stack_pointer: Gpr,
    word: WordSize,
    held: HashMap<Place, Held>,
}

impl Known {
    fn new(code: &Code<'_>, height: Option<i64>) -> Known {
        let stack_pointer = RegisterRoles::new(code.arch).stack_pointer();
        let height = height.map(|height| (Places::gpr(stack_pointer), Held::Stack(height)));
        Known { stack_pointer, word: code.arch.word(), held: height.into_iter().collect() }
    }

    /// How far the stack pointer is from where it was at the entry.
    fn height(&self) -> Option<i64> {
        self.stack(self.stack_pointer)
    }

    fn access(&self, op: Op) -> Option<i64> {
        match op {
            Op::Ld { base, offset, .. } | Op::St { base, offset, .. } => {
                Some(self.stack(base)?.wrapping_add(offset))
            }
            _ => None,
        }
    }

    fn step(&mut self, Instruction { guard, op }: Instruction) {
        let mut written = None;
        Instruction::new(op).for_each_register(|operand, _, access| {
            if let (Operand::Gpr(reg), true) = (operand, access != Access::Use) {
                written = Some(reg);
            }
        });
        let Some(written) = written else { return };
        let held = self.result(op).filter(|_| guard.is_none());
        match held {
            Some(held) => self.held.insert(Places::gpr(written), held),
            None => self.held.remove(&Places::gpr(written)),
        };
    }

    fn result(&self, op: Op) -> Option<Held> {
        let sum =
            |base: Gpr, distance: i64| Some(Held::Stack(self.stack(base)?.wrapping_add(distance)));
        let address = match op {
            Op::Ldi { imm, .. } => Some(Held::Constant(imm.cast_unsigned() & self.word.mask())),
            Op::Addi { src, imm, .. } => sum(src, imm),
            Op::Subi { src, imm, .. } => sum(src, imm.wrapping_neg()),
            Op::Ori { src, imm: 0, .. } => sum(src, 0),
            Op::Add { a, b, .. } => match (self.distance(a), self.distance(b)) {
                (_, Some(distance)) => sum(a, distance),
                (Some(distance), _) => sum(b, distance),
                _ => None,
            },
            _ => None,
        };
        address.or_else(|| self.constant(op).map(Held::Constant))
    }

    fn stack(&self, reg: Gpr) -> Option<i64> {
        match self.held.get(&Places::gpr(reg)) {
            Some(&Held::Stack(height)) => Some(height),
            _ => None,
        }
    }

    fn distance(&self, reg: Gpr) -> Option<i64> {
        match self.held.get(&Places::gpr(reg)) {
            Some(&Held::Constant(constant)) => Some(self.word.sign_extend(constant)),
            _ => None,
        }
    }

    fn constant(&self, op: Op) -> Option<u64> {
        let constant = |place: Place| match self.held.get(&place) {
            Some(&Held::Constant(constant)) => Some(constant),
            _ => None,
        };
        let operands = sources(op)?.into_iter().map(constant);
        compute(op, &operands.collect::<Option<SmallVec<[u64; 2]>>>()?, self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{r, with_ops};

    #[test]
    fn words_of_large_frames_are_found() {
        let sp = RegisterRoles::new("4w8/8/16/16+x".parse().unwrap()).stack_pointer();
        let store = |base, offset| Op::St { value: r(0), base, offset };
        let ops = [
            Op::Addi { dst: sp, src: sp, imm: -512 },
            Op::Ldi { dst: r(1), imm: 256 },
            Op::Add { dst: r(1), a: r(1), b: sp },
            store(r(1), 8),
            store(sp, 4),
            store(r(2), 0),
        ];
        let accesses = with_ops(&ops, |frame, _| frame.accesses.clone());
        assert_eq!(accesses[3..6], [Some(-248), Some(-508), None]);
    }

    #[test]
    fn addresses_go_round() {
        let sp = RegisterRoles::new("4w8/8/16/16+x".parse().unwrap()).stack_pointer();
        let least = Op::Ldi { dst: r(1), imm: -262_144 };
        let below = Op::Add { dst: r(2), a: sp, b: r(1) };
        let again = Op::Add { dst: r(2), a: r(2), b: r(1) };
        let accesses = with_ops(&[least, below, again], |frame, _| {
            let mut known = Known::new(frame.code, Some(i64::MIN));
            frame.code.insts.iter().for_each(|inst| known.step(inst.instruction));
            frame.accesses.clone()
        });
        assert!(accesses.iter().all(Option::is_none));
    }
}
