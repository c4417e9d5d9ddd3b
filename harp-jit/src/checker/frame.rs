//! Where the stack pointer is.

use harp_isa::abi::RegisterRoles;
use harp_isa::{Gpr, Instruction, Op, Operand, Role as Access, WordSize};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::code::Code;
use super::places::{Place, Places};
use super::record::Role;
use super::structure::Structure;
use super::value::{compute, sources};

/// How far the stack pointer is from where it was at the entry, before each instruction that is
/// reached; none if that is not known.
pub(super) fn heights(code: &Code<'_>, structure: &Structure) -> Vec<Option<i64>> {
    let mut heights = vec![None; code.insts.len()];
    let mut ends: Vec<Option<i64>> = vec![None; structure.blocks.len()];
    for (number, block) in structure.blocks.iter().enumerate() {
        // In reverse post-order, some way was seen before; all of them agree where it matters.
        let height = match number {
            0 => Some(0),
            _ => block.edges.iter().find_map(|edge| ends[edge.from]),
        };
        let mut stack = StackPointer::new(code, height);
        let insts = block.first..=block.last;
        for (known, inst) in heights[insts.clone()].iter_mut().zip(&code.insts[insts]) {
            *known = stack.height;
            stack.step(inst.instruction);
            if let Some(Role::Call { popped, .. }) = inst.note.map(|note| &note.role) {
                stack.height = stack.height.map(|height| height + popped);
                stack.constants.clear();
            }
        }
        ends[number] = stack.height;
    }
    heights
}

/// Follows the stack pointer through a block. Sizes of large frames are computed in registers.
struct StackPointer {
    register: Gpr,
    word: WordSize,
    height: Option<i64>,
    constants: HashMap<Place, u64>,
}

impl StackPointer {
    fn new(code: &Code<'_>, height: Option<i64>) -> StackPointer {
        let register = RegisterRoles::new(code.arch).stack_pointer();
        StackPointer { register, word: code.arch.word(), height, constants: HashMap::new() }
    }

    fn step(&mut self, Instruction { guard, op }: Instruction) {
        let mut written = None;
        Instruction::new(op).for_each_register(|operand, _, access| {
            if let (Operand::Gpr(reg), true) = (operand, access != Access::Use) {
                written = Some(reg);
            }
        });
        let Some(written) = written else { return };
        let constant = self.constant(op).filter(|_| guard.is_none());
        if written == self.register {
            let distance = match op {
                Op::Addi { src, imm, .. } if src == self.register => Some(imm),
                Op::Add { a, b, .. } if a == self.register => self.signed(b),
                Op::Add { a, b, .. } if b == self.register => self.signed(a),
                _ => None,
            };
            self.height = self.height.zip(distance).map(|(height, distance)| height + distance);
        }
        match constant {
            Some(constant) => self.constants.insert(Places::gpr(written), constant),
            None => self.constants.remove(&Places::gpr(written)),
        };
    }

    fn signed(&self, reg: Gpr) -> Option<i64> {
        self.constants.get(&Places::gpr(reg)).map(|&constant| self.word.sign_extend(constant))
    }

    fn constant(&self, op: Op) -> Option<u64> {
        if let Op::Ldi { imm, .. } = op {
            return Some(imm.cast_unsigned() & self.word.mask());
        }
        let operands = sources(op)?.into_iter().map(|place| self.constants.get(&place).copied());
        compute(op, &operands.collect::<Option<SmallVec<[u64; 2]>>>()?, self.word)
    }
}
