//! Tests of the checker by what it says of small functions.

use std::ops::Range;

use harp_check::{Bytes, CodeError, Entry, Note, Record, Regs, Role, check};
use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};
use smallvec::{SmallVec, smallvec};

mod messages;
mod proofs;
mod shared;

fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// A register that the lanes of a warp share. The second one is the kernel's.
fn s(index: u8) -> Gpr {
    r(8 + index)
}

/// The stack pointer.
fn sp() -> Gpr {
    r(6)
}

/// Tests a register.
fn test(dst: u8, src: u8) -> Instruction {
    Instruction::new(Op::Rtop { dst: p(dst), src: r(src) })
}

fn split(guard: u8) -> Instruction {
    Instruction::new(Op::Split {}).guarded_by(p(guard))
}

/// Goes on behind so many more instructions.
fn skip(guard: u8, count: i64) -> Instruction {
    jump(count).guarded_by(p(guard))
}

/// The same in all lanes.
fn jump(count: i64) -> Instruction {
    Instruction::new(Op::Jmpi { rel: 4 * count })
}

const JOIN: Instruction = Instruction { guard: None, op: Op::Join {} };

/// Back to the caller.
const RETURN: Instruction = Instruction { guard: None, op: Op::Jmpr { target: Gpr::new(7) } };

/// What most instructions are there for.
const PART: Role = Role::Part { guard: None, defines: None };

/// A function with arguments in the first two registers and a private word in its frame, on a machine whose lanes share two
/// registers and two predicates. Each instruction, of four
/// bytes, is a block of its own.
struct Function {
    code: Vec<Instruction>,
    roles: Vec<Role>,
    arguments: Vec<Gpr>,
    /// Those that are equal in all lanes.
    uniform: Vec<Gpr>,
    private: Range<i64>,
    /// Words of the frame that stores through pointers may change.
    exposed: Range<i64>,
    promises: Vec<(Gpr, Regs)>,
    kernel: bool,
}

impl Function {
    fn new(code: &[Instruction]) -> Function {
        Function {
            code: code.to_vec(),
            roles: vec![PART; code.len()],
            arguments: vec![r(0), r(1)],
            uniform: Vec::new(),
            private: -64..-60,
            exposed: 0..0,
            promises: Vec::new(),
            kernel: false,
        }
    }

    fn check(&self) -> Result<(), CodeError> {
        let arch: ArchId = "4w8/8/16/16+x+s2/2".parse().expect("a machine");
        let entry = Entry {
            arguments: self.arguments.clone(),
            uniform: self.uniform.clone(),
            private: vec![self.private.clone()],
            scratch: self.exposed.clone(),
            kernel: self.kernel,
            ..Entry::default()
        };
        let promises = self.promises.clone();
        let mut record = Record { entry, promises, ..Record::default() };
        let mut bytes = Vec::new();
        for ((block, instruction), role) in (0..).zip(&self.code).zip(&self.roles) {
            harp_isa::encode(instruction, arch, &mut bytes).expect("the machine has room for it");
            let target = |rel: i64| (i64::from(block) + 1 + rel / 4) as u32;
            let successors: SmallVec<[u32; 2]> = match (instruction.op, instruction.guard) {
                (Op::Jmpi { rel }, None) => smallvec![target(rel)],
                (Op::Jmpi { rel }, Some(_)) => smallvec![target(rel), block + 1],
                (Op::Jmpr { .. } | Op::Trap {}, _) => smallvec![],
                _ => smallvec![block + 1],
            };
            record.successors.push(successors);
            let note = Note { block, position: 0, undefined: smallvec![], role: role.clone() };
            record.notes.push((4 * block, note));
        }
        record.passes = vec![smallvec![]; self.code.len()];
        record.undefined = vec![smallvec![]; self.code.len()];
        check(Bytes { arch, bytes: &bytes, literals: &[], linked: &[] }, &record)
    }
}
