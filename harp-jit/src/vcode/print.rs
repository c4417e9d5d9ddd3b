//! Prints VCode as text.

use std::fmt;

use harp_isa::RegClass;

use super::{Access, BlockId, Callee, FrameWord, MInst, MOperand, Reg, Symbol, VCode};

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            RegClass::Gpr => write!(f, "%v{}", self.index),
            RegClass::Pred => write!(f, "@v{}", self.index),
        }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Display for VCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, block) in self.blocks() {
            write!(f, "{id}(")?;
            write_list(f, &block.params)?;
            writeln!(f, "):")?;
            for inst in &self.insts[block.insts.clone()] {
                writeln!(f, "    {inst}")?;
            }
        }
        Ok(())
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for FrameWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameWord::Outgoing(word) => write!(f, "out{word}"),
            FrameWord::Incoming(word) => write!(f, "in{word}"),
        }
    }
}

impl fmt::Display for MOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MOperand::Def(reg) | MOperand::Use(reg) => write!(f, "{reg}"),
            MOperand::Mod { old, new } => write!(f, "{new}<-{old}"),
            MOperand::Imm(imm) => write!(f, "#{imm}"),
            MOperand::StackSlots => f.write_str("slots"),
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sym{}", self.0)
    }
}

/// A machine instruction as in assembly, a jump with its arguments; other instructions with name, registers
/// and other details.
impl fmt::Display for MInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            MInst::Op { opcode, guard, operands } => {
                if let Some(guard) = guard {
                    write!(f, "{guard} ? ")?;
                }
                write!(f, "{} ", opcode.mnemonic())?;
                return write_list(f, operands);
            }
            MInst::Jump { target, args } => {
                write!(f, "jump {target}(")?;
                write_list(f, args)?;
                return f.write_str(")");
            }
            MInst::Args { .. } => "args",
            MInst::LoadWord { .. } => "load_word",
            MInst::StoreWord { .. } => "store_word",
            MInst::FrameValue { .. } => "frame_value",
            MInst::Address { .. } => "address",
            MInst::Call { .. } => "call",
            MInst::TailCall { .. } => "tail_call",
            MInst::Const { .. } => "const",
            MInst::Undef { .. } => "undef",
            MInst::LaneWord { .. } => "lane_word",
            MInst::GroupWord { .. } => "group_word",
            MInst::Barrier { .. } => "barrier",
            MInst::Shuffle { .. } => "shuffle",
            MInst::Any { .. } => "any",
            MInst::OfSomeLane { .. } => "of_some_lane",
            MInst::Join => "join",
            MInst::Trap { .. } => "trap",
            MInst::CondBr { split: true, .. } => "split_br",
            MInst::CondBr { split: false, .. } => "br",
            MInst::Ret { .. } => "ret",
        };
        let mut operands = self.registers();
        operands.extend(self.details());
        f.write_str(name)?;
        f.write_str(if operands.is_empty() { "" } else { " " })?;
        write_list(f, &operands)
    }
}

impl MInst {
    /// The visible registers, written ones first, each with the machine register that it must be in.
    fn registers(&self) -> Vec<String> {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        self.for_each_reg(|reg, access| match access {
            Access::Temp => {}
            Access::FixedUse(place) => read.push(format!("{reg}={place}")),
            Access::FixedDef(place) => written.push(format!("{reg}={place}")),
            _ if access.is_def() => written.push(reg.to_string()),
            _ => read.push(reg.to_string()),
        });
        written.append(&mut read);
        written
    }

    /// The details of an instruction besides its registers.
    fn details(&self) -> Vec<String> {
        match self {
            MInst::LoadWord { word, .. } | MInst::StoreWord { word, .. } => vec![word.to_string()],
            MInst::FrameValue { value, .. } => vec![format!("{value:?}")],
            MInst::Address { symbol, .. } => vec![symbol.to_string()],
            MInst::Call { callee, popped, .. } => {
                let popped = (*popped > 0).then(|| format!("popped {popped}"));
                callee.name().into_iter().chain(popped).collect()
            }
            MInst::TailCall { callee, target, shift, .. } => {
                let by = format!("by {target}");
                callee.name().into_iter().chain([by, format!("shift {shift}")]).collect()
            }
            MInst::Const { value, .. } => vec![format!("{value:#x}")],
            MInst::LaneWord { field, .. } => vec![format!("{field:?}")],
            MInst::GroupWord { field, .. } => vec![format!("{field:?}")],
            MInst::Trap { code } => vec![code.to_string()],
            MInst::CondBr { taken, not_taken, .. } => {
                vec![taken.to_string(), not_taken.to_string()]
            }
            MInst::Op { .. }
            | MInst::Args { .. }
            | MInst::Undef { .. }
            | MInst::Barrier { .. }
            | MInst::Shuffle { .. }
            | MInst::Any { .. }
            | MInst::OfSomeLane { .. }
            | MInst::Join
            | MInst::Jump { .. }
            | MInst::Ret { .. } => Vec::new(),
        }
    }
}

impl Callee {
    /// The callee's name; none for a callee in a register, which is among the instruction's registers.
    fn name(self) -> Option<String> {
        match self {
            Callee::Symbol { symbol, .. } => Some(symbol.to_string()),
            Callee::Register { .. } => None,
        }
    }
}
