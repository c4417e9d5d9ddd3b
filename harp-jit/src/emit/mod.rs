//! Emission: VCode with registers assigned becomes machine code.
//!
//! Pseudo-instructions are expanded, the allocator's moves and the frame's code are inserted, and branches
//! get their final form: `split` stands right before its branch, with nothing between. `%ra` is the scratch
//! register; a function that needs it saves it first.

use harp_isa::abi::{LaneField, RegisterRoles, stack_reserve_bytes, warp_alignment};
use harp_isa::{ArchId, Gpr, Instruction, Layout, Op, Opcode, Operand, Pred, RegClass};

use hashbrown::HashSet;
use smallvec::{SmallVec, smallvec};

use crate::error::CompileError;
use crate::forms;
use crate::regalloc::{Allocated, Location, Step};
use crate::vcode::{
    Access, BlockId, Callee, Contract, Fixed, MInst, MOperand, Reg, Scratch, VCode,
};
use harp_check::{Claims, Entry, Holder, Holders, Name, Named, Regs, Role, Selected};

mod body;
mod code;
mod communication;
mod constant;
mod frame;
mod layout;
mod moves;
mod placement;

pub(crate) use body::Body;
use code::CodeBuffer;
use communication::ShuffleTemps;
use frame::Frame;
pub(crate) use frame::{frame_room, lane_stack_bytes};
pub(crate) use layout::turn_branches;
pub(crate) use placement::{CodeTooLarge, Placed, Unplaced, place};

/// Machine instructions of one function, to be placed next to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emitted {
    pub(crate) body: Body,
    pub(crate) stack: StackUse,
    /// The size of the stacks that the function runs on.
    pub(crate) lane_stack_bytes: u64,
    /// The state at the function's entry, for the checker; which values are uniform is left open.
    pub(crate) entry: Entry,
    /// For the checker: the holders whose contents are undefined once a block was left.
    pub(crate) left_undefined: Vec<(BlockId, Holders)>,
}

/// How much stack a function uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackUse {
    /// Bytes of its frame.
    pub(crate) frame: u64,
    /// The largest total with its callees, in bytes; none if it is not known.
    pub(crate) total: Option<u64>,
    /// Whether it checks the stack's limit before it allocates its frame.
    pub(crate) checks: bool,
}

/// How emitted functions find the lane control block and the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneStack {
    /// A kernel, whose stack is as small as it needs; if it calls functions that use the lane control block,
    /// or might, its stack has the size given.
    OfKernel { shared: Option<u32> },
    /// A function on a stack of this many bytes.
    OfFunction { bytes: u32 },
}

/// Why a function cannot be emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EmitError {
    /// A jump does not reach its target.
    TooLarge(CodeTooLarge),
    /// The frame does not fit the address space of a lane.
    Frame { given: u64, limit: u64 },
    /// An instruction that cannot be encoded: a defect.
    Encode(harp_isa::EncodeError),
}

impl EmitError {
    pub(crate) fn explain(self, kernel: &str) -> CompileError {
        match self {
            EmitError::TooLarge(CodeTooLarge { given, limit }) => {
                CompileError::Limit { kernel: kernel.to_owned(), what: "a jump", given, limit }
            }
            EmitError::Frame { given, limit } => {
                CompileError::StackFrame { function: kernel.to_owned(), given, limit }
            }
            EmitError::Encode(error) => {
                CompileError::Internal { stage: "emission", message: error.to_string() }
            }
        }
    }
}

/// The largest stack that a lane of a kernel without calls can be given.
const MAX_LANE_STACK: u64 = 1 << 20;

/// Emits `vcode` with the registers and slots of `allocated`. `unchecked_stack` gives the stack that a callee
/// uses without checking the limit, if it is known.
///
/// # Errors
///
/// If the frame is larger than the stack.
pub(crate) fn emit(
    vcode: &VCode,
    allocated: &Allocated,
    arch: ArchId,
    lane_stack: LaneStack,
    unchecked_stack: &dyn Fn(&str) -> Option<u64>,
    recording: bool,
) -> Result<Emitted, EmitError> {
    let frame = Frame::new(vcode, allocated, arch);
    let reserve = u64::from(stack_reserve_bytes(arch.word()));
    let total = total_stack(vcode, frame.bytes(), arch.word(), unchecked_stack);
    let checks = matches!(lane_stack, LaneStack::OfFunction { .. })
        && total.is_none_or(|total| total > reserve);
    // Below the frame there must be the reserve of functions that do not check the limit.
    let (given, limit, stack_bytes) = match lane_stack {
        LaneStack::OfKernel { shared: None } => {
            let all = total.unwrap_or_else(|| frame.bytes());
            let needed = lane_stack_bytes(all.min(MAX_LANE_STACK), arch);
            (all, MAX_LANE_STACK / 2, needed)
        }
        LaneStack::OfKernel { shared: Some(bytes) } | LaneStack::OfFunction { bytes } => {
            let room = frame_room(bytes.into(), arch).saturating_sub(reserve);
            (frame.bytes(), room, bytes.into())
        }
    };
    let stack = StackUse { frame: frame.bytes(), total, checks };
    // A stack may be too small for any frame, even an empty one.
    if given > limit || limit == 0 {
        return Err(EmitError::Frame { given, limit });
    }
    let mut emitter = Emitter {
        vcode,
        allocated,
        arch,
        layout: Layout::new(arch),
        roles: RegisterRoles::new(arch),
        lane_stack_log2: stack_bytes.trailing_zeros(),
        checks_stack: checks,
        word: arch.word(),
        // The frame and the moves add items.
        code: CodeBuffer::new(vcode.blocks.len(), 2 * vcode.insts.len(), recording),
        named: Vec::new(),
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
    let arguments = vcode.insts.iter().find_map(|inst| match inst {
        MInst::Args { defs } => Some(defs.iter().map(|&(_, reg)| reg).collect()),
        _ => None,
    });
    let entry = Entry {
        arguments: arguments.unwrap_or_default(),
        lane_stack_log2: stack_bytes.trailing_zeros(),
        private: emitter.frame.private(),
        scratch: emitter.frame.scratch(),
        ..Entry::default()
    };
    let left_undefined = emitter.code.left_undefined();
    let body = emitter.code.finish();
    Ok(Emitted { body, stack, lane_stack_bytes: stack_bytes, entry, left_undefined })
}

/// The frame plus the deepest callee, tail calls included; none if nothing is known about one of them.
fn total_stack(
    vcode: &VCode,
    frame: u64,
    word: harp_isa::WordSize,
    unchecked_stack: &dyn Fn(&str) -> Option<u64>,
) -> Option<u64> {
    let known = |callee: &Callee| match callee {
        Callee::Symbol { symbol, .. } => unchecked_stack(&vcode.symbols[symbol.index()]),
        Callee::Register { .. } => None,
    };
    vcode.insts.iter().try_fold(frame, |deepest, inst| {
        let depth = match inst {
            MInst::Call { callee, .. } => frame.checked_add(known(callee)?)?,
            MInst::TailCall { callee, shift, .. } => {
                let lower = shift.min(&0).unsigned_abs() * u64::from(word.bytes());
                lower.checked_add(known(callee)?)?
            }
            _ => 0,
        };
        Some(deepest.max(depth))
    })
}

/// The state of emission.
struct Emitter<'a> {
    vcode: &'a VCode,
    allocated: &'a Allocated,
    arch: ArchId,
    layout: Layout,
    roles: RegisterRoles,
    word: harp_isa::WordSize,
    frame: Frame,
    lane_stack_log2: u32,
    checks_stack: bool,
    code: CodeBuffer,
    /// The predicates that the current instruction reads, with the numbers of their virtual registers, if
    /// notes are kept.
    named: Vec<(Pred, Name)>,
}

impl Emitter<'_> {
    fn op(&mut self, op: Op) {
        self.code.push(Instruction::new(op));
    }

    /// Whether the immediate fits the instruction and means the same on all machines with this id.
    fn fits(&self, opcode: Opcode, imm: i64) -> bool {
        forms::fits(self.arch, opcode, imm)
    }

    fn guarded(&mut self, guard: Pred, op: Op) {
        self.note_guard(guard);
        self.code.push(Instruction::new(op).guarded_by(guard));
    }

    /// `dst = value`, in as many instructions as needed.
    fn constant(&mut self, dst: Gpr, value: i64) {
        for op in constant::sequence(dst, value, self.layout, self.word) {
            self.op(op);
        }
    }

    /// Notes that the next item is guarded, by a predicate that the current instruction reads or by another
    /// one.
    fn note_guard(&mut self, guard: Pred) {
        let guard = self.named.iter().find(|&&(reg, _)| reg == guard).map(|&(_, name)| name);
        self.code.set_role(Role::Part { guard, defines: None });
    }

    /// Emits an instruction, with notes on it if they are kept.
    fn inst(&mut self, index: usize) {
        if !self.code.is_recording() {
            return self.emit_inst(index);
        }
        let inst = &self.vcode.insts[index];
        let places = Places::new(inst, self.allocated, index);
        let predicates = places.predicates(|access| !access.is_def());
        self.named = predicates.map(|(reg, place)| (place, name(reg))).collect();
        self.emit_inst(index);
        self.named.clear();
        if !matches!(inst, MInst::Op { .. } | MInst::Undef { .. })
            && let Some((reg, _)) = places.predicates(Access::is_def).next()
        {
            self.code.defines(name(reg));
        }
    }

    fn emit_inst(&mut self, index: usize) {
        let inst = &self.vcode.insts[index];
        if let MInst::Op { opcode, guard, operands } = inst {
            return self.machine_inst(index, *opcode, guard.is_some(), operands);
        }
        let at = Places::new(inst, self.allocated, index);
        match *inst {
            MInst::Op { .. } | MInst::Args { .. } => {}
            MInst::Undef { dst } => {
                let holder = match at.of(dst) {
                    Location::Gpr(reg) => Holder::Gpr(reg),
                    Location::Pred(reg) => Holder::Pred(reg),
                    Location::Slot { index } => {
                        let bytes = self.frame.bytes().cast_signed();
                        Holder::Frame(self.frame.spill_offset(index) - bytes)
                    }
                };
                self.code.set_undefined(holder);
            }
            MInst::Const { dst, value } => self.constant(at.gpr(dst), value),
            MInst::LaneWord { dst, field } => self.lane_word(at.gpr(dst), field),
            MInst::GroupWord { dst, block, field } => {
                let offset = field.offset(self.word).into();
                self.op(Op::Ld { dst: at.gpr(dst), base: at.gpr(block), offset });
            }
            MInst::Any { dst, src, scratch: Scratch { address, offset }, temp } => {
                let word = (at.gpr(address), offset.into());
                self.any(at.pred(dst), at.pred(src), word, at.gpr(temp));
            }
            MInst::Barrier { id, warps } => {
                self.op(Op::Bar { id: at.gpr(id), warps: at.gpr(warps) });
            }
            MInst::Shuffle { dst, value, lane, temps, preds } => {
                let temps = ShuffleTemps {
                    gprs: temps.map(|temp| at.gpr(temp)),
                    preds: preds.map(|temp| at.pred(temp)),
                };
                self.shuffle(at.gpr(dst), at.gpr(value), at.gpr(lane), temps);
            }
            MInst::OfSomeLane { dst, src, scratch: Scratch { address, offset } } => {
                let (base, offset) = (at.gpr(address), offset.into());
                self.op(Op::St { value: at.gpr(src), base, offset });
                self.op(Op::Ld { dst: at.gpr(dst), base, offset });
            }
            MInst::Join => self.op(Op::Join {}),
            MInst::Trap { code } => {
                self.code.set_trap(code);
                self.op(Op::Trap {});
            }
            MInst::Jump { target, .. } => self.code.jump(None, target),
            MInst::CondBr { condition, taken, not_taken, split, site } => {
                let condition = at.pred(condition);
                if let Some(site) = site {
                    self.code.set_branch(site);
                }
                if split {
                    self.guarded(condition, Op::Split {});
                }
                self.note_guard(condition);
                self.code.jump(Some(condition), taken);
                self.code.jump(None, not_taken);
            }
            MInst::LoadWord { dst, word } => {
                self.load_word(at.gpr(dst), self.frame.word_offset(word));
            }
            MInst::StoreWord { src, word } => {
                self.store_word(at.gpr(src), self.frame.word_offset(word));
            }
            MInst::FrameValue { dst, value } => self.frame_value(at.gpr(dst), value),
            MInst::Address { dst, symbol } => self.code.address(at.gpr(dst), symbol),
            MInst::Call { callee, popped, ref args, ref results } => {
                self.code.set_role(Role::Call {
                    hands: fixed(args),
                    asks: self.asked(callee),
                    returns: fixed(results),
                    popped: i64::from(popped) * i64::from(self.word.bytes()),
                    depends: self.promised(callee, results.iter().map(|&(_, place)| place)),
                });
                match callee {
                    Callee::Symbol { symbol, far } => self.code.call(symbol, far),
                    Callee::Register { address, .. } => {
                        let link = self.roles.return_address();
                        let target = at.gpr(address);
                        self.op(Op::Jalr { link, target });
                    }
                }
                self.move_stack_pointer(-i64::from(popped) * i64::from(self.word.bytes()));
            }
            MInst::TailCall { callee, target, shift, ref args } => {
                self.epilog(shift * i64::from(self.word.bytes()));
                let depends = self.promised(callee, self.promises());
                let (hands, asks) = (fixed(args), self.asked(callee));
                self.code.set_role(Role::Leave { hands, asks, depends });
                match callee {
                    Callee::Symbol { symbol, .. } => self.code.tail_jump(symbol, target),
                    Callee::Register { .. } => self.op(Op::Jmpr { target }),
                }
            }
            MInst::Ret { ref results } => {
                let popped = i64::from(self.vcode.frame.popped_words);
                self.epilog(popped * i64::from(self.word.bytes()));
                let depends = self.promises().map(|place| (place, smallvec![place])).collect();
                let (hands, asks) = (fixed(results), Regs::new());
                self.code.set_role(Role::Leave { hands, asks, depends });
                self.op(Op::Jmpr { target: self.roles.return_address() });
            }
        }
    }

    /// A vote by base instructions: all lanes clear the warp's scratch word, those where `src` holds store
    /// its address, which is not 0, and all read it.
    fn any(&mut self, dst: Pred, src: Pred, (base, offset): (Gpr, i64), temp: Gpr) {
        self.op(Op::Ldi { dst: temp, imm: 0 });
        self.op(Op::St { value: temp, base, offset });
        self.guarded(src, Op::St { value: base, base, offset });
        self.op(Op::Ld { dst: temp, base, offset });
        self.op(Op::Rtop { dst, src: temp });
    }

    fn machine_inst(&mut self, index: usize, opcode: Opcode, guarded: bool, operands: &[MOperand]) {
        let in_slots = operands.contains(&MOperand::StackSlots);
        let mut regs = self.allocated.operands(index);
        let guard = guarded.then(|| match regs.next() {
            Some(Location::Pred(reg)) => reg,
            other => unreachable!("{other:?} where a predicate was asked for"),
        });
        let mut register = || match regs.next() {
            Some(Location::Gpr(reg)) => Operand::Gpr(reg),
            Some(Location::Pred(reg)) => Operand::Pred(reg),
            _ => unreachable!("instructions ask for registers, one an operand"),
        };
        let mut placed: SmallVec<[Operand; 4]> = SmallVec::new();
        for operand in operands {
            placed.push(match operand {
                MOperand::StackSlots => Operand::Gpr(self.roles.stack_pointer()),
                MOperand::Def(_) | MOperand::Use(_) => register(),
                MOperand::Mod { .. } => {
                    let old = register();
                    let new = register();
                    debug_assert_eq!(old, new, "the allocator reuses the register");
                    new
                }
                MOperand::Imm(imm) => Operand::Imm(*imm),
            });
        }
        if in_slots && let [.., base, Operand::Imm(offset)] = placed.as_mut_slice() {
            let place = self.frame.stack_slot_offset(*offset);
            let (register, rest) = self.stack_address(opcode, place);
            (*base, *offset) = (Operand::Gpr(register), rest);
        }
        let op = Op::from_operands(opcode, &placed)
            .expect("instruction selection fills operands to the table's description");
        if self.code.is_recording() {
            let selected = self.selected(&self.vcode.insts[index]);
            self.code.set_role(Role::Selected(selected));
        }
        self.code.push(Instruction { guard, op });
    }

    /// The record of a machine instruction for the checker.
    fn selected(&self, inst: &MInst) -> Selected {
        let MInst::Op { opcode, guard, operands } = inst else {
            unreachable!("only machine instructions are told about")
        };
        let is_pred = |reg: &Reg| reg.class() == RegClass::Pred;
        let predicates = operands.iter().filter_map(|operand| match *operand {
            MOperand::Def(reg) if is_pred(&reg) => Some(Named::Def(name(reg))),
            MOperand::Use(reg) if is_pred(&reg) => Some(Named::Use(name(reg))),
            MOperand::Mod { old, new } if is_pred(&new) => {
                Some(Named::Mod { old: name(old), new: name(new) })
            }
            _ => None,
        });
        let defined = operands.iter().find_map(|operand| match *operand {
            MOperand::Def(reg) => Some((reg, true)),
            MOperand::Mod { new, .. } => Some((new, false)),
            _ => None,
        });
        let is_promised =
            |known: &HashSet<Reg>| defined.is_some_and(|(reg, _)| known.contains(&reg));
        let promises = &self.vcode.promises;
        let claims = Claims {
            read_only: is_promised(&promises.read_only),
            uniform: is_promised(&promises.uniform),
            old_is_dead: guard.is_some() && defined.is_some_and(|(_, is_whole)| is_whole),
        };
        Selected {
            opcode: *opcode,
            guard: guard.map(name),
            predicates: predicates.collect(),
            claims,
            steers: is_promised(&promises.steering),
        }
    }

    fn contract(&self, callee: Callee) -> Option<&Contract> {
        self.vcode.promises.callees.get(&callee.symbol()?)
    }

    /// The arguments that the callee assumes to be uniform.
    fn asked(&self, callee: Callee) -> Regs {
        self.contract(callee).map(|contract| contract.arguments.clone()).unwrap_or_default()
    }

    /// Of these results, those that the callee guarantees to be uniform if some arguments are.
    fn promised(&self, callee: Callee, results: impl Iterator<Item = Gpr>) -> Vec<(Gpr, Regs)> {
        let known = self.contract(callee).map_or(&[][..], |contract| &contract.results);
        let known = |place| known.iter().find(|(result, _)| *result == place).cloned();
        results.filter_map(known).collect()
    }

    /// The results that callers know to be uniform if some arguments are.
    fn promises(&self) -> impl Iterator<Item = Gpr> {
        self.vcode.promises.own.results.iter().map(|&(place, _)| place)
    }

    /// The address of the control block of the warp's lane 0, or, where stacks are not aligned for that, of the lane's own.
    fn first_block(&mut self, dst: Gpr) {
        self.round_down(dst, warp_alignment(self.arch, 1 << self.lane_stack_log2).ilog2());
    }

    /// `dst` := the stack pointer with so many low bits cleared.
    fn round_down(&mut self, dst: Gpr, bits: u32) {
        self.op(Op::Shri { dst, src: self.roles.stack_pointer(), imm: bits.into() });
        self.op(Op::Shli { dst, src: dst, imm: bits.into() });
    }

    /// Loads a word of the lane control block, which lies at the base of the lane's stack: at the stack
    /// pointer with its low bits cleared. The group is that of lane 0, from one address.
    fn lane_word(&mut self, dst: Gpr, field: LaneField) {
        match field {
            LaneField::Group => self.first_block(dst),
            _ => self.round_down(dst, self.lane_stack_log2),
        }
        self.op(Op::Ld { dst, base: dst, offset: field.offset(self.word).into() });
    }
}

/// The checker's name of a predicate.
pub(crate) fn name(reg: Reg) -> Name {
    Name::try_from(reg.index()).expect("registers are numbered with 32 bits")
}

/// The registers that the calling convention requires.
fn fixed(fixed: &Fixed) -> Regs {
    fixed.iter().map(|&(_, reg)| reg).collect()
}

/// The places of an instruction's registers.
struct Places(SmallVec<[(Reg, Access, Location); 6]>);

impl Places {
    fn new(inst: &MInst, allocated: &Allocated, index: usize) -> Places {
        let mut places = SmallVec::new();
        let mut locations = allocated.operands(index);
        inst.for_each_reg(|reg, access| {
            if access != Access::Passed {
                let location = locations.next().expect("every operand is allocated");
                places.push((reg, access, location));
            }
        });
        Places(places)
    }

    fn of(&self, reg: Reg) -> Location {
        let place = self.0.iter().find(|(named, ..)| *named == reg);
        place.expect("the instruction names it").2
    }

    fn gpr(&self, reg: Reg) -> Gpr {
        match self.of(reg) {
            Location::Gpr(reg) => reg,
            other => unreachable!("{other:?} where a general register was asked for"),
        }
    }

    fn pred(&self, reg: Reg) -> Pred {
        match self.of(reg) {
            Location::Pred(reg) => reg,
            other => unreachable!("{other:?} where a predicate was asked for"),
        }
    }

    /// The predicates with these accesses.
    fn predicates(&self, wanted: impl Fn(Access) -> bool) -> impl Iterator<Item = (Reg, Pred)> {
        self.0.iter().filter_map(move |&(reg, access, location)| match location {
            Location::Pred(place) if wanted(access) => Some((reg, place)),
            _ => None,
        })
    }
}

/// A label: where a block begins.
type Label = BlockId;
