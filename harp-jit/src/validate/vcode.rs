//! Translates VCode for the simulated warp, which runs one lane of it at a time.
//!
//! Instructions that if-conversion itself makes are computed exactly: constants, moves, operations on
//! predicates. Other machine instructions are opaque functions of their opcode, immediates and operands, or
//! effects.

use harp_isa::{Gpr, Opcode, OpcodeFlags, RegClass, WordSize};
use smallvec::{SmallVec, smallvec};

use super::clif::key;
use super::program::{Block, Compute, Edge, Kind, Op, Outcome, Program, Register, Text, mask};
use crate::vcode::{Callee, FrameWord, MInst, MOperand, Reg, Symbol, VCode};
use crate::width::Width;

impl<'a> Program<'a> {
    /// Translates `vcode`, code for a machine with words of this size, for a single lane.
    pub(super) fn of_vcode(vcode: &'a VCode, word: WordSize) -> Program<'a> {
        let mut program = Program::new(Text::VCode(vcode), vcode.blocks.len());
        program.masks = vec![mask(word.bits().into()); vcode.num_regs];
        let mut reader = Reader { program };
        for (id, block) in vcode.blocks() {
            let params = block.params.iter().map(|&param| reader.register(param));
            let params: SmallVec<[Register; 8]> = params.collect();
            let params = reader.program.list(params);
            let start = reader.program.ops.len();
            for at in block.insts.clone() {
                reader.inst(at, &vcode.insts[at]);
            }
            let ops = start..reader.program.ops.len();
            let join = vcode.insts[block.insts.clone()].first() == Some(&MInst::Join);
            reader.program.blocks[id.index()] = Block { params, ops, join, region_end: None };
            reader.program.count += 1;
        }
        reader.program
    }
}

struct Reader<'a> {
    program: Program<'a>,
}

impl Reader<'_> {
    fn register(&mut self, reg: Reg) -> Register {
        let index = reg.index();
        if reg.class() == RegClass::Pred {
            self.program.masks[index] = 1;
        }
        Register::try_from(index).expect("registers are numbered with 32 bits")
    }

    /// The registers that an instruction reads and writes, each in the order of its operands.
    fn accesses(&mut self, inst: &MInst) -> [SmallVec<[Register; 4]>; 2] {
        let mut found = [SmallVec::new(), SmallVec::new()];
        inst.for_each_reg(|reg, access| {
            found[usize::from(access.is_def())].push(self.register(reg));
        });
        found
    }

    fn inst(&mut self, at: usize, inst: &MInst) {
        if let MInst::Op { opcode, guard, operands } = inst {
            return self.op(at, *opcode, *guard, operands);
        }
        let [read, written] = self.accesses(inst);
        let any = || written.iter().map(|_| Outcome::Any).collect();
        let effect = |key| Kind::Effect { key, outcomes: any(), writes_frame: false };
        let on_frame = |key| Kind::Effect { key, outcomes: any(), writes_frame: true };
        let kind = match inst {
            MInst::Join => return,
            MInst::Const { value, .. } => Kind::Constant(value.cast_unsigned()),
            MInst::Undef { .. } => Kind::Undefined { own: true },
            MInst::LaneWord { field, .. } => {
                Kind::Ask(key(&("lane", *field as usize)), Width::Thread)
            }
            MInst::GroupWord { field, .. } => Kind::Opaque(key(&("group", *field as usize))),
            MInst::FrameValue { value, .. } => {
                Kind::Ask(key(&("frame", *value as usize)), Width::Thread)
            }
            MInst::Address { symbol, .. } => {
                Kind::Ask(key(&("address", symbol.index())), Width::Thread)
            }
            MInst::Args { .. } => Kind::Ask(key(&"arguments"), Width::Thread),
            MInst::LoadWord { word, .. } => Kind::Frame(frame_word("load", *word)),
            MInst::StoreWord { word, .. } => on_frame(frame_word("store", *word)),
            MInst::Call { callee, args, .. } => {
                let fixed: Vec<Gpr> = args.iter().map(|&(_, gpr)| gpr).collect();
                on_frame(key(&("call", named(callee), fixed)))
            }
            MInst::TailCall { callee, args, .. } => {
                let fixed: Vec<Gpr> = args.iter().map(|&(_, gpr)| gpr).collect();
                Kind::Return { key: key(&("tail call", named(callee), fixed)) }
            }
            MInst::Barrier { .. } => effect(key(&"barrier")),
            MInst::Shuffle { .. } => effect(key(&"shuffle")),
            MInst::Any { .. } => effect(key(&"any")),
            MInst::OfSomeLane { .. } => effect(key(&"of some lane")),
            MInst::Trap { code } => Kind::Trap { key: key(&("trap", code)) },
            MInst::Jump { target, args } => {
                let args: SmallVec<[Register; 4]> =
                    args.iter().map(|&arg| self.register(arg)).collect();
                Kind::Jump(Edge { target: target.index(), args: self.program.list(args) })
            }
            MInst::CondBr { taken, not_taken, split, .. } => {
                let edges = [taken, not_taken].map(|to| Edge { target: to.index(), args: 0..0 });
                Kind::Branch { edges, split: *split }
            }
            MInst::Ret { results } => {
                let fixed: Vec<Gpr> = results.iter().map(|&(_, gpr)| gpr).collect();
                Kind::Return { key: key(&("return", fixed)) }
            }
            MInst::Op { .. } => Kind::Unknown,
        };
        let (args, results) = (self.program.list(read), self.program.list(written));
        self.program.ops.push(Op { kind, args, results, guard: None, kept: None, source: at });
    }

    fn op(&mut self, at: usize, opcode: Opcode, guard: Option<Reg>, operands: &[MOperand]) {
        let (mut args, mut results) = (SmallVec::<[_; 4]>::new(), SmallVec::<[_; 1]>::new());
        let mut immediates = SmallVec::<[i64; 4]>::new();
        let mut kept = None;
        for operand in operands {
            match *operand {
                MOperand::Def(reg) => results.push(self.register(reg)),
                MOperand::Mod { old, new } => {
                    results.push(self.register(new));
                    kept = Some(self.register(old));
                }
                MOperand::Use(reg) => args.push(self.register(reg)),
                MOperand::Imm(imm) => immediates.push(imm),
                // An immediate follows, so this marker is unambiguous.
                MOperand::StackSlots => immediates.extend([i64::MIN; 2]),
            }
        }
        let own = || key(&(opcode as usize, &immediates));
        let flags = opcode.flags();
        let kind = match (opcode, &immediates[..]) {
            (Opcode::Ldi, &[imm]) => Kind::Constant(imm.cast_unsigned()),
            (Opcode::Ori, [0]) => Kind::Compute(Compute::Copy),
            (Opcode::Andp, _) => Kind::Compute(Compute::And),
            (Opcode::Orp, _) => Kind::Compute(Compute::Or),
            (Opcode::Xorp, _) => Kind::Compute(Compute::Xor),
            (Opcode::Notp, _) => Kind::Compute(Compute::Not),
            _ if flags.intersects(EFFECTS) => {
                let outcomes = results.iter().map(|_| Outcome::Any).collect();
                Kind::Effect { key: own(), outcomes, writes_frame: false }
            }
            _ if flags.intersects(OpcodeFlags::DIVIDES) => Kind::Effect {
                key: own(),
                outcomes: smallvec![Outcome::OfOperands; results.len()],
                writes_frame: false,
            },
            _ if args.is_empty() => Kind::Ask(own(), Width::Thread),
            _ => Kind::Opaque(own()),
        };
        let guard = guard.map(|guard| self.register(guard));
        let (args, results) = (self.program.list(args), self.program.list(results));
        self.program.ops.push(Op { kind, args, results, guard, kept, source: at });
    }
}

/// Instructions whose effects are visible, or whose results depend on more than the operands.
const EFFECTS: OpcodeFlags = OpcodeFlags::LOAD
    .union(OpcodeFlags::STORE)
    .union(OpcodeFlags::ATOMIC)
    .union(OpcodeFlags::CROSS_LANE)
    .union(OpcodeFlags::CONTROL)
    .union(OpcodeFlags::ONCE_PER_WARP)
    .union(OpcodeFlags::PRIVILEGED);

fn frame_word(what: &str, word: FrameWord) -> u64 {
    match word {
        FrameWord::Outgoing(number) => key(&("outgoing", what, number)),
        FrameWord::Incoming(number) => key(&("incoming", what, number)),
    }
}

/// The symbol of the callee, if it has one.
fn named(callee: &Callee) -> Option<usize> {
    callee.symbol().map(Symbol::index)
}
