//! The frame words that loads and stores access, and so the places that each instruction reads and writes.

use harp_isa::abi::RegisterRoles;
use harp_isa::{Gpr, Instruction, Op, Role as Access, WordSize};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::Code;
use crate::op::{Form, compute, registers, sources, sum};
use crate::places::{Place, Places};
use crate::record::Role;
use crate::structure::Structure;

/// The places that an instruction writes, and those that it reads.
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

    /// The places that an instruction reads and writes, words of the frame included.
    pub(crate) fn accessed(&self, at: usize) -> Accessed {
        let op = self.code.insts[at].instruction.op;
        let mut accessed = Accessed { to: None, from: SmallVec::new() };
        for (operand, access) in registers(op) {
            let place = Places::operand(operand);
            accessed.to = place.filter(|_| access != Access::Use).or(accessed.to);
            accessed.from.extend(place.filter(|_| access != Access::Def));
        }
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
            if let Op::Ld { base, offset, .. } | Op::St { base, offset, .. } = inst.instruction.op {
                *access = known.stack(base).map(|height| height.wrapping_add(offset));
            }
            known.step(inst.instruction);
            if let Some(Role::Call { popped, .. }) = inst.note.map(|note| &note.role) {
                known = Known::new(code, known.height().map(|height| height.wrapping_add(*popped)));
            }
        }
        ends[number] = known.height();
    }
    accesses
}

/// What registers hold, in a block. Large frames are accessed by way of others than the stack pointer.
struct Known {
    stack_pointer: Gpr,
    word: WordSize,
    held: HashMap<Place, Form>,
}

impl Known {
    fn new(code: &Code<'_>, height: Option<i64>) -> Known {
        let stack_pointer = RegisterRoles::new(code.arch).stack_pointer();
        let height = height.map(|height| (Places::gpr(stack_pointer), Form::Stack(height)));
        Known { stack_pointer, word: code.arch.word(), held: height.into_iter().collect() }
    }

    /// How far the stack pointer is from where it was at the entry.
    fn height(&self) -> Option<i64> {
        self.stack(self.stack_pointer)
    }

    fn stack(&self, reg: Gpr) -> Option<i64> {
        match self.held(Places::gpr(reg)) {
            Form::Stack(height) => Some(height),
            _ => None,
        }
    }

    fn held(&self, place: Place) -> Form {
        self.held.get(&place).copied().unwrap_or(Form::Unknown)
    }

    fn step(&mut self, Instruction { guard, op }: Instruction) {
        let result = if guard.is_none() { self.result(op) } else { Form::Unknown };
        for (operand, access) in registers(op) {
            if let (Some(place), true) = (Places::operand(operand), access != Access::Use) {
                self.held.insert(place, result);
            }
        }
    }

    fn result(&self, op: Op) -> Form {
        if let Op::Ldi { imm, .. } = op {
            return Form::Constant(imm.cast_unsigned() & self.word.mask());
        }
        let sum = sum(op, |reg| self.held(Places::gpr(reg)), self.word);
        if sum != Form::Unknown {
            return sum;
        }
        let mut numbers: SmallVec<[u64; 2]> = SmallVec::new();
        for place in sources(op).unwrap_or_default() {
            match self.held(place) {
                Form::Constant(number) => numbers.push(number),
                // Nothing is added to it.
                form if matches!(op, Op::Ori { imm: 0, .. }) => return form,
                _ => return Form::Unknown,
            }
        }
        compute(op, &numbers, self.word).map_or(Form::Unknown, Form::Constant)
    }
}
