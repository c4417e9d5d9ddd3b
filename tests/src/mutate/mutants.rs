//! Broken copies of machine code, instruction for instruction as long as the original.

use std::fmt;

use harp_isa::{ArchId, Instruction, Op, OpcodeFlags, Operand, Pred, Role};

use crate::seeds::random_bytes;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A `join` is a `nop`.
    DroppedJoin,
    /// A `split` is a `nop`.
    DroppedSplit,
    /// A guarded instruction is not guarded.
    MissingGuard,
    /// A guarded instruction has another guard.
    WrongGuard,
    /// A branch goes where it should when it does not branch, and the other way round.
    SwappedTargets,
    /// What stands before a split stands between it and its branch, or there its predicate is inverted.
    EditInSplit,
    /// A split and its branch, or a vote, look at another predicate.
    WrongMask,
    /// A branch that splits does not, and nothing joins: it is taken to be uniform.
    UniformClaim,
    /// What lanes keep for themselves is in a register that they share.
    TakenAsShared,
}

/// All of them, with their names.
const KINDS: [(Kind, &str); 9] = [
    (Kind::DroppedJoin, "dropped join"),
    (Kind::DroppedSplit, "dropped split"),
    (Kind::MissingGuard, "missing guard"),
    (Kind::WrongGuard, "wrong guard"),
    (Kind::SwappedTargets, "swapped targets"),
    (Kind::EditInSplit, "edit in split"),
    (Kind::WrongMask, "wrong mask predicate"),
    (Kind::UniformClaim, "divergent taken as uniform"),
    (Kind::TakenAsShared, "taken as shared"),
];

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.into_iter().map(|(kind, _)| kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS[*self as usize].1)
    }
}

/// Broken code, all of it, with what was done, and where.
pub(super) struct Mutant {
    pub(super) kind: Kind,
    pub(super) code: Vec<u8>,
    pub(super) what: String,
}

/// Mutants of `code`, at most `each` of a kind; which, the seed decides.
pub(super) fn mutants(code: &[u8], arch: ArchId, seed: u64, each: usize) -> Vec<Mutant> {
    let original = Original::decode(code, arch);
    let mut chosen = Vec::new();
    for (number, kind) in Kind::all().enumerate() {
        let mut found = original.mutants(kind);
        let random = random_bytes(seed ^ (number as u64) << 56, each * 4);
        for four in random.as_chunks::<4>().0 {
            if !found.is_empty() {
                let index = u32::from_le_bytes(*four) as usize % found.len();
                chosen.push(found.swap_remove(index));
            }
        }
    }
    chosen
}

struct Original<'a> {
    arch: ArchId,
    code: &'a [u8],
    /// With their offsets; data among them is left out where it is no instruction.
    insts: Vec<(usize, Instruction)>,
}

/// What to put where.
type Edit = (usize, Instruction);

impl<'a> Original<'a> {
    fn decode(code: &'a [u8], arch: ArchId) -> Original<'a> {
        let insts = harp_isa::disassemble(code, 0, arch);
        let insts = insts.filter_map(|(at, decoded)| Some((at as usize, decoded.ok()?)));
        Original { arch, code, insts: insts.collect() }
    }

    fn mutants(&self, kind: Kind) -> Vec<Mutant> {
        let all = 0..self.insts.len();
        let edits: Vec<Vec<Edit>> = all.flat_map(|at| self.edits(kind, at)).collect();
        edits.into_iter().filter_map(|edits| self.apply(kind, &edits)).collect()
    }

    /// None if the instructions are not as long as those that they replace.
    fn apply(&self, kind: Kind, edits: &[Edit]) -> Option<Mutant> {
        let mut code = self.code.to_vec();
        let mut what = Vec::new();
        for (index, instruction) in edits {
            let (offset, old) = &self.insts[*index];
            let mut bytes = Vec::new();
            harp_isa::encode(instruction, self.arch, &mut bytes).ok()?;
            let end = self.insts.get(index + 1).map_or(code.len(), |(next, _)| *next);
            if bytes.len() != end - offset {
                return None;
            }
            code[*offset..end].copy_from_slice(&bytes);
            let (old, new) = (old.display(self.arch), instruction.display(self.arch));
            what.push(format!("{offset:#x} `{old}` is `{new}`"));
        }
        (code != self.code).then(|| Mutant { kind, code, what: what.join(", ") })
    }

    /// The ways to break the code at one instruction.
    fn edits(&self, kind: Kind, at: usize) -> Vec<Vec<Edit>> {
        let inst = self.insts[at].1;
        let nop = Instruction::new(Op::Nop {});
        let is_split = self.is_split(at);
        let flags = inst.op.opcode().flags();
        let plain = !flags.intersects(OpcodeFlags::CONTROL | OpcodeFlags::ONCE_PER_WARP);
        match kind {
            Kind::DroppedJoin if matches!(inst.op, Op::Join {}) => vec![vec![(at, nop)]],
            Kind::DroppedSplit if is_split => vec![vec![(at, nop)]],
            Kind::MissingGuard if plain && inst.guard.is_some() => {
                vec![vec![(at, Instruction::new(inst.op))]]
            }
            Kind::WrongGuard if !is_split && (at == 0 || !self.is_split(at - 1)) => {
                let others = inst.guard.into_iter().flat_map(|guard| self.others(guard));
                others.map(|other| vec![(at, inst.guarded_by(other))]).collect()
            }
            Kind::SwappedTargets => self.swapped(at).into_iter().collect(),
            Kind::EditInSplit if is_split => self.edits_in_split(at),
            Kind::WrongMask => self.wrong_masks(at),
            Kind::UniformClaim if is_split => {
                vec![[at].into_iter().chain(self.join_of(at)).map(|at| (at, nop)).collect()]
            }
            Kind::TakenAsShared => self.taken_as_shared(at).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn is_split(&self, at: usize) -> bool {
        matches!(self.insts[at].1.op, Op::Split {})
    }

    /// Two other predicates.
    fn others(&self, pred: Pred) -> Vec<Pred> {
        let preds = self.arch.preds();
        let next = |by: u8| Pred::new((pred.index() + by) % preds);
        [next(1), next(preds - 1)].into_iter().filter(|&other| other != pred).collect()
    }

    /// Where a jump within the code leads.
    fn target(&self, at: usize) -> Option<i64> {
        match self.insts[at].1.op {
            Op::Jmpi { rel } => Some(self.end(at) + rel),
            _ => None,
        }
    }

    fn end(&self, at: usize) -> i64 {
        self.insts.get(at + 1).map_or(self.code.len(), |(next, _)| *next) as i64
    }

    fn index_at(&self, offset: i64) -> Option<usize> {
        self.insts.iter().position(|(at, _)| *at as i64 == offset)
    }

    fn to(&self, at: usize, target: i64) -> Edit {
        let rel = target - self.end(at);
        (at, Instruction { op: Op::Jmpi { rel }, ..self.insts[at].1 })
    }

    /// The branch at `at` with its targets swapped: with the jump behind it, or, where it falls through,
    /// with the next branch.
    fn swapped(&self, at: usize) -> Option<Vec<Edit>> {
        self.insts[at].1.guard?;
        let target = self.target(at)?;
        let other = (at + 1..self.insts.len()).find(|&other| self.target(other).is_some())?;
        let direct = other == at + 1 && self.insts[other].1.guard.is_none();
        if !direct && self.insts[other].1.guard.is_none() {
            return None;
        }
        Some(vec![self.to(at, self.target(other)?), self.to(other, target)])
    }

    fn edits_in_split(&self, at: usize) -> Vec<Vec<Edit>> {
        let (Some(before), split) = (at.checked_sub(1), self.insts[at].1) else {
            return Vec::new();
        };
        let moved = self.insts[before].1;
        let warp = OpcodeFlags::CONTROL | OpcodeFlags::ONCE_PER_WARP | OpcodeFlags::CROSS_LANE;
        if moved.op.opcode().flags().intersects(warp) {
            return Vec::new();
        }
        let guard = split.guard.unwrap_or(Pred::new(0));
        let inverted = Instruction::new(Op::Notp { dst: guard, src: guard });
        vec![vec![(before, split), (at, moved)], vec![(before, split), (at, inverted)]]
    }

    fn wrong_masks(&self, at: usize) -> Vec<Vec<Edit>> {
        let inst = self.insts[at].1;
        let guarded = |index: usize, pred| (index, self.insts[index].1.guarded_by(pred));
        let voted = |src, op: &dyn Fn(Pred) -> Op| {
            let ops = self.others(src).into_iter().map(op);
            ops.map(|op| vec![(at, Instruction { op, ..inst })]).collect()
        };
        let others = |pred| self.others(pred).into_iter();
        match (inst.op, inst.guard) {
            (Op::Split {}, Some(guard)) if at + 1 < self.insts.len() => {
                others(guard).map(|p| vec![guarded(at, p), guarded(at + 1, p)]).collect()
            }
            (Op::Anyp { dst, src }, _) => voted(src, &|src| Op::Anyp { dst, src }),
            (Op::Allp { dst, src }, _) => voted(src, &|src| Op::Allp { dst, src }),
            (Op::Ballot { dst, src, index }, _) => {
                voted(src, &|src| Op::Ballot { dst, src, index })
            }
            // A vote by way of memory stores the address itself.
            (Op::St { value, base, .. }, Some(guard)) if value == base => {
                others(guard).map(|p| vec![guarded(at, p)]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A shared register that is not used in the place of the one that an instruction writes, wherever that is mentioned,
    /// if it is not mentioned before.
    fn taken_as_shared(&self, at: usize) -> Option<Vec<Edit>> {
        let mut written = None;
        self.insts[at].1.for_each_register(|operand, _, role| {
            written = written.or((role == Role::Def).then_some(operand));
        });
        let own = written.filter(|&operand| !self.arch.is_shared(operand))?;
        let shared: Vec<Operand> = match own {
            Operand::Pred(_) => {
                (0..).map_while(|n| Some(self.arch.shared_pred(n)?.into())).collect()
            }
            _ => (0..).map_while(|n| Some(self.arch.shared_gpr(n)?.into())).collect(),
        };
        let is_free =
            |&&shared: &&Operand| !self.insts.iter().any(|(_, inst)| mentions(inst, shared));
        let &shared = shared.iter().find(is_free)?;
        if self.insts[..at].iter().any(|(_, inst)| mentions(inst, own)) {
            return None;
        }
        let places = self.insts.iter().enumerate().skip(at);
        let places = places.filter(|(_, (_, inst))| mentions(inst, own));
        places.map(|(index, (_, inst))| Some((index, renamed(inst, own, shared)?))).collect()
    }

    /// The join that closes the split at `at`, if its sides get to one.
    fn join_of(&self, at: usize) -> Option<usize> {
        let mut seen = vec![false; self.insts.len()];
        let mut todo = vec![(at + 1, 1)];
        while let Some((here, depth)) = todo.pop() {
            if here >= self.insts.len() || std::mem::replace(&mut seen[here], true) {
                continue;
            }
            let inst = self.insts[here].1;
            let depth = match inst.op {
                Op::Join {} if depth == 1 => return Some(here),
                Op::Join {} => depth - 1,
                Op::Split {} => depth + 1,
                _ => depth,
            };
            let target = self.target(here).and_then(|target| self.index_at(target));
            let ends = inst.guard.is_none()
                && matches!(inst.op, Op::Jmpi { .. } | Op::Jmpr { .. } | Op::Trap {});
            todo.extend(target.map(|target| (target, depth)));
            if !ends {
                todo.push((here + 1, depth));
            }
        }
        None
    }
}

fn mentions(inst: &Instruction, register: Operand) -> bool {
    let mut found = inst.guard.map(Operand::Pred) == Some(register);
    inst.op.for_each_operand(|operand| found |= operand == register);
    found
}

/// The instruction with another register in the place of one.
fn renamed(inst: &Instruction, from: Operand, to: Operand) -> Option<Instruction> {
    let name = |operand| if operand == from { to } else { operand };
    let mut operands = Vec::new();
    inst.op.for_each_operand(|operand| operands.push(name(operand)));
    let guard = inst.guard.map(|guard| match name(guard.into()) {
        Operand::Pred(guard) => guard,
        _ => guard,
    });
    Some(Instruction { guard, op: Op::from_operands(inst.op.opcode(), &operands).ok()? })
}
