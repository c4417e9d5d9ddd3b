//! Instructions in the form in which they are translated: families with an operation, so that immediates and
//! registers, base and extension share the code.

use cranelift_codegen::ir::AtomicRmwOp;
use harp_isa::{Gpr, Instruction, Op, Opcode, Pred, Sharing};

use crate::class::Class;
use crate::shape::Shape;

/// A source of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Src {
    Reg(u8),
    /// An immediate, cut to the word.
    Imm(u64),
}

/// How a comparison compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessUnsigned,
    FloatEqual,
    FloatLess,
    FloatLessOrEqual,
}

/// What two predicates are combined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
    /// The complement of the first.
    Not,
    /// Whether the first is true in any executing lane.
    Any,
    /// Whether it is true in all of them.
    All,
}

impl Logic {
    /// Whether it asks all executing lanes.
    pub(crate) fn is_vote(self) -> bool {
        matches!(self, Logic::Any | Logic::All)
    }
}

/// The bytes that an access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) bytes: usize,
    pub(crate) signed: bool,
    /// Whether it must be aligned, as words are.
    pub(crate) aligned: bool,
}

/// How an atomic operation changes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// To what is there combined with a register.
    Combine(AtomicRmwOp),
    /// To a register, if the destination's old value is there.
    Compare,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Nop,
    /// `dst` := the sources combined, by an opcode that `harp_emu::compute` knows, in its register form. There are
    /// `count` sources.
    Map {
        opcode: Opcode,
        dst: u8,
        sources: [Src; 3],
        count: usize,
    },
    /// `dst` := whether the sources compare.
    Test {
        compare: Compare,
        dst: u8,
        a: Src,
        b: Src,
    },
    Logic {
        logic: Logic,
        dst: u8,
        a: u8,
        b: u8,
    },
    /// `dst` := 1 or 0.
    FromPred {
        dst: u8,
        src: u8,
    },
    Load {
        dst: u8,
        base: u8,
        offset: u64,
        access: Access,
    },
    Store {
        value: u8,
        base: u8,
        offset: u64,
        access: Access,
    },
    /// `dst` := what is at an address and is changed at the same time.
    Atomic {
        update: Update,
        dst: u8,
        address: u8,
        value: u8,
        access: Access,
    },
    /// A constant of the warp or the machine: `csr` number `index`.
    Csr {
        dst: u8,
        index: u8,
    },
    /// Word number `index` of a predicate's executing lanes.
    Ballot {
        dst: u8,
        src: u8,
        index: u8,
    },
    Shuffle {
        dst: u8,
        value: u8,
        from: u8,
    },
    /// Jumps to a constant, after the link is written.
    Jump {
        link: Option<u8>,
        target: u64,
    },
    /// Jumps to a register's value.
    JumpTo {
        link: Option<u8>,
        target: u8,
    },
    Split,
    Join,
    /// The interpreter does it, and control goes on. It writes one general register and reads none.
    Foreign {
        dst: u8,
    },
    /// A `bar`: the core does it, and control goes on. It reads the barrier's number and how many warps it is for.
    Barrier {
        id: u8,
        warps: u8,
    },
    /// The interpreter does it, and nothing is known afterwards.
    Unknown,
}

/// What is known of lanes that are not active where an instruction stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The splits that are not joined.
    pub(crate) depth: usize,
    /// The registers that lanes which wait for the ends of those may read, as bits.
    pub(crate) read: u64,
}

/// An instruction and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inst {
    pub(crate) pc: u64,
    /// The address behind it.
    pub(crate) next: u64,
    pub(crate) guard: Option<u8>,
    pub(crate) body: Body,
    /// How lanes carry it out.
    pub(crate) sharing: Sharing,
    /// Whether it decides a jump, on which all active lanes must agree.
    pub(crate) decides: bool,
    /// Whether nobody reads what its register holds where its guard fails.
    pub(crate) is_faint: bool,
    /// What all lanes together have loaded whenever it was looked at, if it was.
    pub(crate) loaded: Option<Class>,
    /// What is known of lanes that are not active, if anything is.
    pub(crate) waiting: Option<Waiting>,
}

impl Inst {
    pub(crate) fn new(pc: u64, size: usize, instruction: Instruction, shape: Shape) -> Inst {
        let next = shape.cut(pc.wrapping_add(size as u64));
        let guard = instruction.guard.map(Pred::index);
        Inst {
            pc,
            next,
            guard,
            body: body(instruction.op, next, shape),
            sharing: instruction.op.sharing(shape.arch),
            decides: false,
            is_faint: false,
            loaded: None,
            waiting: None,
        }
    }

    /// Whether the first executing lane does it for all.
    pub(crate) fn is_once(&self) -> bool {
        self.sharing == Sharing::Once
    }

    /// Whether other instructions than the next may follow, or other lanes execute.
    pub(crate) fn ends_block(&self) -> bool {
        matches!(
            self.body,
            Body::Jump { .. }
                | Body::JumpTo { .. }
                | Body::Split
                | Body::Join
                | Body::Foreign { .. }
                | Body::Barrier { .. }
                | Body::Unknown
        )
    }

    /// Whether control may go on behind it, be it after a call.
    pub(crate) fn goes_on(&self) -> bool {
        let leaves = matches!(
            self.body,
            Body::Jump { link: None, .. } | Body::JumpTo { link: None, .. } | Body::Unknown
        );
        self.guard.is_some() || !leaves
    }

    /// Whether others do it, and a warp comes back behind.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.body, Body::Foreign { .. } | Body::Barrier { .. })
    }

    /// The general registers that it reads and those that it writes.
    pub(crate) fn registers(&self) -> (Vec<u8>, Option<u8>) {
        let reg = |src: Src| match src {
            Src::Reg(r) => Some(r),
            Src::Imm(_) => None,
        };
        match self.body {
            Body::Map { dst, sources, count, .. } => {
                (sources[..count].iter().filter_map(|&src| reg(src)).collect(), Some(dst))
            }
            Body::Test { a, b, .. } => (reg(a).into_iter().chain(reg(b)).collect(), None),
            Body::Load { dst, base, .. } => (vec![base], Some(dst)),
            Body::Store { value, base, .. } => (vec![value, base], None),
            Body::Csr { dst, .. } | Body::Ballot { dst, .. } | Body::FromPred { dst, .. } => {
                (Vec::new(), Some(dst))
            }
            Body::Shuffle { dst, value, from } => (vec![value, from], Some(dst)),
            Body::Jump { link, .. } => (Vec::new(), link),
            Body::JumpTo { link, target } => (vec![target], link),
            Body::Atomic { update, dst, address, value, .. } => {
                let expected = (update == Update::Compare).then_some(dst);
                ([address, value].into_iter().chain(expected).collect(), Some(dst))
            }
            Body::Foreign { dst } => (Vec::new(), Some(dst)),
            Body::Barrier { id, warps } => (vec![id, warps], None),
            Body::Nop | Body::Logic { .. } | Body::Split | Body::Join | Body::Unknown => {
                (Vec::new(), None)
            }
        }
    }

    /// The predicates that it reads, as bits.
    pub(crate) fn preds_read(&self) -> u64 {
        let read = match self.body {
            Body::Logic { a, b, .. } => 1 << a | 1 << b,
            Body::FromPred { src, .. } | Body::Ballot { src, .. } => 1 << src,
            _ => 0,
        };
        read | self.guard.map_or(0, |guard| 1u64 << guard)
    }

    /// The predicate that it writes.
    pub(crate) fn pred_written(&self) -> Option<u8> {
        match self.body {
            Body::Test { dst, .. } | Body::Logic { dst, .. } => Some(dst),
            _ => None,
        }
    }
}

/// Whether an operation traps where its second source is zero.
pub(crate) fn divides(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Div | Opcode::Mod | Opcode::Divs | Opcode::Mods)
}

fn body(op: Op, next: u64, shape: Shape) -> Body {
    let reg = |gpr: Gpr| Src::Reg(gpr.index());
    let imm = |value: i64| Src::Imm(shape.cut(value.cast_unsigned()));
    let one = |dst: Gpr, a: Gpr| Body::Map {
        opcode: op.opcode(),
        dst: dst.index(),
        sources: [reg(a), Src::Imm(0), Src::Imm(0)],
        count: 1,
    };
    let map = |opcode, dst: Gpr, a: Src, b: Src| Body::Map {
        opcode,
        dst: dst.index(),
        sources: [a, b, Src::Imm(0)],
        count: 2,
    };
    let two = |dst: Gpr, a: Gpr, b: Gpr| map(op.opcode(), dst, reg(a), reg(b));
    let three = |acc: Gpr, a: Gpr, b: Gpr| Body::Map {
        opcode: op.opcode(),
        dst: acc.index(),
        sources: [reg(a), reg(b), reg(acc)],
        count: 3,
    };
    let test = |compare, dst: Pred, a: Src, b: Src| Body::Test { compare, dst: dst.index(), a, b };
    let logic = |logic, dst: Pred, a: Pred, b: Pred| Body::Logic {
        logic,
        dst: dst.index(),
        a: a.index(),
        b: b.index(),
    };
    let load = |dst: Gpr, base: Gpr, offset: i64, bytes, signed, aligned| Body::Load {
        dst: dst.index(),
        base: base.index(),
        offset: shape.cut(offset.cast_unsigned()),
        access: Access { bytes, signed, aligned },
    };
    let store = |value: Gpr, base: Gpr, offset: i64, bytes, aligned| Body::Store {
        value: value.index(),
        base: base.index(),
        offset: shape.cut(offset.cast_unsigned()),
        access: Access { bytes, signed: false, aligned },
    };
    let by = |rel: i64| shape.cut(next.wrapping_add_signed(rel));
    let word = shape.bytes();
    let atomic = |update, dst: Gpr, address: Gpr, value: Gpr, bytes| Body::Atomic {
        update,
        dst: dst.index(),
        address: address.index(),
        value: value.index(),
        access: Access { bytes, signed: false, aligned: true },
    };
    let combine =
        |op, dst, address, value, bytes| atomic(Update::Combine(op), dst, address, value, bytes);
    match op {
        Op::Nop {} => Body::Nop,
        Op::Neg { dst, src }
        | Op::Not { dst, src }
        | Op::Itof { dst, src }
        | Op::Ftoi { dst, src }
        | Op::Utof { dst, src }
        | Op::Ftou { dst, src }
        | Op::Fsqrt { dst, src }
        | Op::Ftrunc { dst, src }
        | Op::Fcvtsd { dst, src }
        | Op::Fcvtds { dst, src }
        | Op::Fsqrts { dst, src } => one(dst, src),
        Op::And { dst, a, b }
        | Op::Or { dst, a, b }
        | Op::Xor { dst, a, b }
        | Op::Add { dst, a, b }
        | Op::Sub { dst, a, b }
        | Op::Mul { dst, a, b }
        | Op::Div { dst, a, b }
        | Op::Mod { dst, a, b }
        | Op::Shl { dst, a, b }
        | Op::Sra { dst, a, b }
        | Op::Srl { dst, a, b }
        | Op::Divs { dst, a, b }
        | Op::Mods { dst, a, b }
        | Op::Mulh { dst, a, b }
        | Op::Mulhu { dst, a, b }
        | Op::Fadd { dst, a, b }
        | Op::Fsub { dst, a, b }
        | Op::Fmul { dst, a, b }
        | Op::Fdiv { dst, a, b }
        | Op::Fmin { dst, a, b }
        | Op::Fmax { dst, a, b }
        | Op::Fadds { dst, a, b }
        | Op::Fsubs { dst, a, b }
        | Op::Fmuls { dst, a, b }
        | Op::Fdivs { dst, a, b } => two(dst, a, b),
        Op::Shr { dst, a, b } => map(right(shape), dst, reg(a), reg(b)),
        Op::Andi { dst, src, imm: k } => map(Opcode::And, dst, reg(src), imm(k)),
        Op::Ori { dst, src, imm: k } => map(Opcode::Or, dst, reg(src), imm(k)),
        Op::Xori { dst, src, imm: k } => map(Opcode::Xor, dst, reg(src), imm(k)),
        Op::Addi { dst, src, imm: k } => map(Opcode::Add, dst, reg(src), imm(k)),
        Op::Subi { dst, src, imm: k } => map(Opcode::Add, dst, reg(src), imm(k.wrapping_neg())),
        Op::Muli { dst, src, imm: k } => map(Opcode::Mul, dst, reg(src), imm(k)),
        Op::Divi { dst, src, imm: k } => map(Opcode::Div, dst, reg(src), imm(k)),
        Op::Modi { dst, src, imm: k } => map(Opcode::Mod, dst, reg(src), imm(k)),
        Op::Shli { dst, src, imm: k } => map(Opcode::Shl, dst, reg(src), imm(k)),
        Op::Shri { dst, src, imm: k } => map(right(shape), dst, reg(src), imm(k)),
        Op::Ldi { dst, imm: k } => map(Opcode::Or, dst, imm(k), Src::Imm(0)),
        Op::Fneg { dst, src } => {
            map(Opcode::Xor, dst, reg(src), Src::Imm(1 << (shape.word.bits() - 1)))
        }
        Op::Fabs { dst, src } => map(Opcode::And, dst, reg(src), Src::Imm(shape.word.mask() >> 1)),
        Op::Ffma { acc, a, b } | Op::Ffmas { acc, a, b } => three(acc, a, b),
        Op::Rtop { dst, src } => test(Compare::NotEqual, dst, reg(src), Src::Imm(0)),
        Op::Iszero { dst, src } => test(Compare::Equal, dst, reg(src), Src::Imm(0)),
        Op::Isneg { dst, src } => test(Compare::Less, dst, reg(src), Src::Imm(0)),
        Op::Eqp { dst, a, b } => test(Compare::Equal, dst, reg(a), reg(b)),
        Op::Ltp { dst, a, b } => test(Compare::Less, dst, reg(a), reg(b)),
        Op::Ltup { dst, a, b } => test(Compare::LessUnsigned, dst, reg(a), reg(b)),
        Op::Feqp { dst, a, b } => test(Compare::FloatEqual, dst, reg(a), reg(b)),
        Op::Fltp { dst, a, b } => test(Compare::FloatLess, dst, reg(a), reg(b)),
        Op::Flep { dst, a, b } => test(Compare::FloatLessOrEqual, dst, reg(a), reg(b)),
        Op::Andp { dst, a, b } => logic(Logic::And, dst, a, b),
        Op::Orp { dst, a, b } => logic(Logic::Or, dst, a, b),
        Op::Xorp { dst, a, b } => logic(Logic::Xor, dst, a, b),
        Op::Notp { dst, src } => logic(Logic::Not, dst, src, src),
        Op::Anyp { dst, src } => logic(Logic::Any, dst, src, src),
        Op::Allp { dst, src } => logic(Logic::All, dst, src, src),
        Op::Ptor { dst, src } => Body::FromPred { dst: dst.index(), src: src.index() },
        Op::Ld { dst, base, offset } => load(dst, base, offset, shape.bytes(), false, true),
        Op::Ldb { dst, base, offset } => load(dst, base, offset, 1, false, false),
        Op::Ldbs { dst, base, offset } => load(dst, base, offset, 1, true, false),
        Op::Ldh { dst, base, offset } => load(dst, base, offset, 2, false, false),
        Op::Ldhs { dst, base, offset } => load(dst, base, offset, 2, true, false),
        Op::Ldw { dst, base, offset } => load(dst, base, offset, 4, false, false),
        Op::Ldws { dst, base, offset } => load(dst, base, offset, 4, true, false),
        Op::St { value, base, offset } => store(value, base, offset, shape.bytes(), true),
        Op::Stb { value, base, offset } => store(value, base, offset, 1, false),
        Op::Sth { value, base, offset } => store(value, base, offset, 2, false),
        Op::Stw { value, base, offset } => store(value, base, offset, 4, false),
        Op::Tid { dst } => Body::Csr { dst: dst.index(), index: 0 },
        Op::Csr { dst, index: index @ (0..=5 | 8 | 9) } => {
            Body::Csr { dst: dst.index(), index: index.unsigned_abs() as u8 }
        }
        Op::Csr { dst, index: 6 } => Body::Foreign { dst: dst.index() },
        Op::Ballot { dst, src, index: index @ 0..=1 } => {
            Body::Ballot { dst: dst.index(), src: src.index(), index: index.unsigned_abs() as u8 }
        }
        Op::Shfl { dst, value, lane } => {
            Body::Shuffle { dst: dst.index(), value: value.index(), from: lane.index() }
        }
        Op::Jmpi { rel } => Body::Jump { link: None, target: by(rel) },
        Op::Jali { link, rel } => Body::Jump { link: Some(link.index()), target: by(rel) },
        Op::Jmpr { target } => Body::JumpTo { link: None, target: target.index() },
        Op::Jalr { link, target } => {
            Body::JumpTo { link: Some(link.index()), target: target.index() }
        }
        Op::Split {} => Body::Split,
        Op::Join {} => Body::Join,
        Op::Bar { id, warps } => Body::Barrier { id: id.index(), warps: warps.index() },
        Op::AmoAdd { dst, addr, value } => combine(AtomicRmwOp::Add, dst, addr, value, word),
        Op::AmoAnd { dst, addr, value } => combine(AtomicRmwOp::And, dst, addr, value, word),
        Op::AmoOr { dst, addr, value } => combine(AtomicRmwOp::Or, dst, addr, value, word),
        Op::AmoXor { dst, addr, value } => combine(AtomicRmwOp::Xor, dst, addr, value, word),
        Op::AmoMin { dst, addr, value } => combine(AtomicRmwOp::Smin, dst, addr, value, word),
        Op::AmoMax { dst, addr, value } => combine(AtomicRmwOp::Smax, dst, addr, value, word),
        Op::AmoMinu { dst, addr, value } => combine(AtomicRmwOp::Umin, dst, addr, value, word),
        Op::AmoMaxu { dst, addr, value } => combine(AtomicRmwOp::Umax, dst, addr, value, word),
        Op::AmoSwap { dst, addr, value } => combine(AtomicRmwOp::Xchg, dst, addr, value, word),
        Op::Cas { dst, addr, new } => atomic(Update::Compare, dst, addr, new, word),
        Op::AmoAddw { dst, addr, value } => combine(AtomicRmwOp::Add, dst, addr, value, 4),
        Op::AmoAndw { dst, addr, value } => combine(AtomicRmwOp::And, dst, addr, value, 4),
        Op::AmoOrw { dst, addr, value } => combine(AtomicRmwOp::Or, dst, addr, value, 4),
        Op::AmoXorw { dst, addr, value } => combine(AtomicRmwOp::Xor, dst, addr, value, 4),
        Op::AmoMinw { dst, addr, value } => combine(AtomicRmwOp::Smin, dst, addr, value, 4),
        Op::AmoMaxw { dst, addr, value } => combine(AtomicRmwOp::Smax, dst, addr, value, 4),
        Op::AmoMinuw { dst, addr, value } => combine(AtomicRmwOp::Umin, dst, addr, value, 4),
        Op::AmoMaxuw { dst, addr, value } => combine(AtomicRmwOp::Umax, dst, addr, value, 4),
        Op::AmoSwapw { dst, addr, value } => combine(AtomicRmwOp::Xchg, dst, addr, value, 4),
        Op::Casw { dst, addr, new } => atomic(Update::Compare, dst, addr, new, 4),
        Op::Csr { .. }
        | Op::Ballot { .. }
        | Op::Halt {}
        | Op::Trap {}
        | Op::Clone { .. }
        | Op::Jalis { .. }
        | Op::Jalrs { .. }
        | Op::Jmprt { .. }
        | Op::Wspawn { .. }
        | Op::Di {}
        | Op::Ei {}
        | Op::Tlbadd { .. }
        | Op::Tlbflush {}
        | Op::Jmpru { .. }
        | Op::Skep { .. }
        | Op::Reti {}
        | Op::Tlbrm { .. } => Body::Unknown,
    }
}

/// What `shr` does.
fn right(shape: Shape) -> Opcode {
    if shape.bytes() == 4 { Opcode::Srl } else { Opcode::Sra }
}
