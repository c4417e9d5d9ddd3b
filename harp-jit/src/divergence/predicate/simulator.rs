//! One lane that executes VCode: what conversion must not change.
//!
//! A register that the lane never wrote holds junk, and so does what a guarded instruction defines
//! that the lane skips.

use harp_isa::{Opcode, RegClass};

use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// Something that a lane did and others could see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Load { address: i32 },
    Store { address: i32, value: i32 },
    Swap { address: i32, value: i32 },
    Divide { dividend: i32, divisor: i32 },
    Returned(Vec<i32>),
}

struct Lane<'a> {
    vcode: &'a VCode,
    registers: Vec<i32>,
    junk: u32,
    events: Vec<Event>,
}

/// What the lane with number `lane` does, and how many instructions it takes, jumps to the block that
/// follows not counted.
pub(super) fn run(vcode: &VCode, lane: i32, junk: u32) -> (Vec<Event>, usize) {
    let mut state = Lane { vcode, registers: Vec::new(), junk, events: Vec::new() };
    state.registers = (0..vcode.num_regs).map(|_| state.junk()).collect();
    let mut block = BlockId::new(0);
    let mut steps = 0;
    for _ in 0..1000 {
        let data = &vcode.blocks[block.index()];
        let mut next = None;
        for inst in &vcode.insts[data.insts.clone()] {
            next = state.step(inst, lane);
            let falls =
                matches!(inst, MInst::Jump { target, .. } if target.index() == block.index() + 1);
            steps += usize::from(!falls);
        }
        match next {
            Some(target) => block = target,
            None => return (state.events, steps),
        }
    }
    panic!("the program does not end:\n{vcode}");
}

impl Lane<'_> {
    fn junk(&mut self) -> i32 {
        self.junk = self.junk.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.junk >> 7).cast_signed()
    }

    fn get(&self, reg: Reg) -> i32 {
        let value = self.registers[reg.index()];
        if reg.class() == RegClass::Pred { value & 1 } else { value }
    }

    /// Returns where to go at the end of a block.
    fn step(&mut self, inst: &MInst, lane: i32) -> Option<BlockId> {
        match inst {
            MInst::Const { dst, value } => self.registers[dst.index()] = *value as i32,
            MInst::LaneWord { dst, .. } => self.registers[dst.index()] = lane,
            MInst::Op { opcode, guard, operands } => self.op(*opcode, *guard, operands),
            MInst::Jump { target, args } => {
                let values: Vec<_> = args.iter().map(|&arg| self.get(arg)).collect();
                let params = &self.vcode.blocks[target.index()].params;
                for (param, value) in params.iter().zip(values) {
                    self.registers[param.index()] = value;
                }
                return Some(*target);
            }
            MInst::CondBr { condition, taken, not_taken, .. } => {
                return Some(if self.get(*condition) == 1 { *taken } else { *not_taken });
            }
            MInst::Ret { results } => {
                let results = results.iter().map(|&(reg, _)| self.get(reg)).collect();
                self.events.push(Event::Returned(results));
            }
            other => panic!("{other} is not simulated"),
        }
        None
    }

    fn op(&mut self, opcode: Opcode, guard: Option<Reg>, operands: &[MOperand]) {
        let executes = guard.is_none_or(|guard| self.get(guard) == 1);
        let mut destination = None;
        let mut sources = Vec::new();
        let mut kept = None;
        for operand in operands {
            match *operand {
                MOperand::Def(reg) => destination = Some(reg),
                MOperand::Mod { old, new } => {
                    destination = Some(new);
                    kept = Some(self.get(old));
                }
                MOperand::Use(reg) => sources.push(self.get(reg)),
                MOperand::Imm(imm) => sources.push(imm as i32),
                MOperand::StackSlots => panic!("there are no slots"),
            }
        }
        let result = if executes {
            self.result(opcode, &sources)
        } else {
            kept.unwrap_or_else(|| self.junk())
        };
        if let Some(destination) = destination {
            self.registers[destination.index()] = result;
        }
    }

    fn result(&mut self, opcode: Opcode, sources: &[i32]) -> i32 {
        let (x, y) = (sources[0], sources.get(1).copied().unwrap_or(0));
        match opcode {
            Opcode::Ldi => x,
            Opcode::Add | Opcode::Addi => x.wrapping_add(y),
            Opcode::Xor => x ^ y,
            Opcode::Ori => x | y,
            Opcode::Andi => x & y,
            Opcode::Div => {
                assert_ne!(y, 0, "division by zero in\n{}", self.vcode);
                self.events.push(Event::Divide { dividend: x, divisor: y });
                x.cast_unsigned().wrapping_div(y.cast_unsigned()).cast_signed()
            }
            Opcode::Ld => {
                self.events.push(Event::Load { address: x.wrapping_add(y) });
                // Depends on all that happened before.
                x.wrapping_mul(31).wrapping_add(self.events.len() as i32)
            }
            Opcode::St => {
                let address = y.wrapping_add(sources[2]);
                self.events.push(Event::Store { address, value: x });
                0
            }
            Opcode::AmoSwap => {
                self.events.push(Event::Swap { address: x, value: y });
                x.wrapping_mul(17).wrapping_add(self.events.len() as i32)
            }
            Opcode::Rtop => i32::from(x != 0),
            Opcode::Iszero => i32::from(x == 0),
            Opcode::Notp => x ^ 1,
            Opcode::Andp => x & y,
            Opcode::Orp => x | y,
            Opcode::Xorp => x ^ y,
            _ => panic!("{} is not simulated", opcode.mnemonic()),
        }
    }
}
