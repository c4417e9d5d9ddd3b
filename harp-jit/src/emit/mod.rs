//! Emission: VCode with registers assigned becomes machine code.
//!
//! Pseudo-instructions are expanded, the allocator's moves and the frame's code are put in, branches
//! get their final form: `split` stands right before its branch, with nothing between. `%ra` is the
//! scratch register; a function that needs it saves it first.

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::abi::RegisterRoles;
use harp_isa::{ArchId, Gpr, Instruction, Layout, Op, Opcode, Operand, Pred};

use crate::error::CompileError;
use crate::regalloc::{Allocated, Location, Step};
use crate::vcode::{BlockId, MInst, MOperand, VCode};

mod code;
mod constant;
mod frame;
mod layout;
mod moves;

use code::CodeBuffer;
pub(crate) use code::CodeTooLarge;
use frame::Frame;
pub(crate) use frame::lane_stack_bytes;

/// Machine code of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emitted {
    /// The encoded instructions; position independent.
    pub(crate) bytes: Vec<u8>,
    /// From which offset on code belongs to which place in the source, ascending.
    pub(crate) places: Vec<(u32, SourceLoc)>,
    /// The codes of `trap` instructions by offset, ascending.
    pub(crate) traps: Vec<(u32, TrapCode)>,
    /// Bytes of stack that the function takes.
    pub(crate) frame_bytes: u64,
}

/// Why a function cannot be emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EmitError {
    /// A jump does not reach.
    TooLarge(CodeTooLarge),
    /// The frame does not fit the address space of a lane.
    Frame { given: u64, limit: u64 },
    /// An instruction that cannot be encoded: a defect.
    Encode(harp_isa::EncodeError),
}

impl EmitError {
    pub(crate) fn explain(self, kernel: &str) -> CompileError {
        let limit = |what, given, limit| CompileError::Limit {
            kernel: kernel.to_owned(),
            what,
            given,
            limit,
        };
        match self {
            EmitError::TooLarge(CodeTooLarge { given, limit: most }) => {
                limit("a jump", given, most)
            }
            EmitError::Frame { given, limit: most } => limit("a stack frame", given, most),
            EmitError::Encode(error) => {
                CompileError::Internal { stage: "emission", message: error.to_string() }
            }
        }
    }
}

/// The largest stack that a lane can be given.
pub(crate) const MAX_LANE_STACK: u64 = 1 << 20;

/// Emits `vcode` with the registers and slots of `allocated`.
///
/// # Errors
///
/// If the code or the frame is larger than the machine can address.
pub(crate) fn emit(
    vcode: &VCode,
    allocated: &Allocated,
    arch: ArchId,
) -> Result<Emitted, EmitError> {
    let frame = Frame::new(vcode, allocated, arch);
    if frame.bytes() > MAX_LANE_STACK / 2 {
        return Err(EmitError::Frame { given: frame.bytes(), limit: MAX_LANE_STACK / 2 });
    }
    let mut emitter = Emitter {
        vcode,
        allocated,
        layout: Layout::new(arch),
        roles: RegisterRoles::new(arch),
        lane_stack_log2: frame.lane_stack_bytes().trailing_zeros(),
        word: arch.word(),
        code: CodeBuffer::new(arch, vcode.blocks.len()),
        frame,
    };
    for id in layout::order(vcode) {
        let block = &vcode.blocks[id.index()];
        emitter.code.bind(id);
        if id.index() == 0 {
            emitter.prolog();
        }
        for step in allocated.steps(id) {
            match step {
                Step::Move(edit) => emitter.edit(edit),
                Step::Inst(inst) => {
                    debug_assert!(block.insts.contains(&inst));
                    emitter.code.set_place(vcode.srclocs[inst]);
                    emitter.inst(inst);
                }
            }
        }
    }
    let frame_bytes = emitter.frame.bytes();
    let mut emitted = emitter.code.finish()?;
    emitted.frame_bytes = frame_bytes;
    Ok(emitted)
}

/// The state of emission.
struct Emitter<'a> {
    vcode: &'a VCode,
    allocated: &'a Allocated,
    layout: Layout,
    roles: RegisterRoles,
    word: harp_isa::WordSize,
    frame: Frame,
    lane_stack_log2: u32,
    code: CodeBuffer,
}

impl Emitter<'_> {
    fn op(&mut self, op: Op) {
        self.code.push(Instruction::new(op));
    }

    fn guarded(&mut self, guard: Pred, op: Op) {
        self.code.push(Instruction::new(op).guarded_by(guard));
    }

    /// `dst = value`, in as many instructions as that takes.
    fn constant(&mut self, dst: Gpr, value: i64) {
        for op in constant::sequence(dst, value, self.layout, self.word) {
            self.op(op);
        }
    }

    fn inst(&mut self, index: usize) {
        let mut regs = self.allocated.operands(index);
        let mut gpr = || expect_gpr(regs.next());
        match &self.vcode.insts[index] {
            MInst::Op { opcode, guard, operands } => {
                self.machine_inst(index, *opcode, guard.is_some(), operands);
            }
            MInst::Args { .. } => {}
            MInst::Const { value, .. } => {
                let dst = gpr();
                self.constant(dst, *value);
            }
            MInst::LaneWord { field, .. } => {
                let dst = gpr();
                self.lane_word(dst, *field);
            }
            MInst::Join => self.op(Op::Join {}),
            MInst::Trap { code } => {
                self.code.set_trap(*code);
                self.op(Op::Trap {});
            }
            MInst::Jump { target, .. } => self.code.jump(None, *target),
            MInst::CondBr { taken, not_taken, split, .. } => {
                let condition = expect_pred(regs.next());
                if *split {
                    self.guarded(condition, Op::Split {});
                }
                self.code.jump(Some(condition), *taken);
                self.code.jump(None, *not_taken);
            }
            MInst::Ret => self.epilog(),
        }
    }

    fn machine_inst(&mut self, index: usize, opcode: Opcode, guarded: bool, operands: &[MOperand]) {
        let mut regs = self.allocated.operands(index);
        let guard = guarded.then(|| expect_pred(regs.next()));
        let mut register = || match regs.next() {
            Some(Location::Gpr(reg)) => Operand::Gpr(reg),
            Some(Location::Pred(reg)) => Operand::Pred(reg),
            _ => unreachable!("instructions ask for registers, one an operand"),
        };
        let operands: Vec<Operand> = operands
            .iter()
            .map(|operand| match operand {
                MOperand::Def(_) | MOperand::Use(_) => register(),
                MOperand::Mod { .. } => {
                    let old = register();
                    let new = register();
                    debug_assert_eq!(old, new, "the allocator reuses the register");
                    new
                }
                MOperand::Imm(imm) => Operand::Imm(*imm),
            })
            .collect();
        let op = Op::from_operands(opcode, &operands)
            .expect("instruction selection fills operands to the table's description");
        self.code.push(Instruction { guard, op });
    }

    /// Loads a word of the lane control block, which lies at the base of the lane's stack: the
    /// stack pointer with its low bits cut off.
    fn lane_word(&mut self, dst: Gpr, field: harp_isa::abi::LaneField) {
        let bits = i64::from(self.lane_stack_log2);
        self.op(Op::Shri { dst, src: self.roles.stack_pointer(), imm: bits });
        self.op(Op::Shli { dst, src: dst, imm: bits });
        self.op(Op::Ld { dst, base: dst, offset: field.offset(self.word).into() });
    }
}

fn expect_gpr(location: Option<Location>) -> Gpr {
    match location {
        Some(Location::Gpr(reg)) => reg,
        other => unreachable!("{other:?} where a general register was asked for"),
    }
}

fn expect_pred(location: Option<Location>) -> Pred {
    match location {
        Some(Location::Pred(reg)) => reg,
        other => unreachable!("{other:?} where a predicate was asked for"),
    }
}

/// A label: where a block begins.
type Label = BlockId;
