//! Converts one region after the other: appends the members' code to that of the head.

use std::ops::{Index, IndexMut};

use cranelift_codegen::ir::SourceLoc;
use harp_isa::{ArchId, Layout, Opcode, RegClass};
use hashbrown::{HashMap, HashSet};
use smallvec::{SmallVec, smallvec};

use super::functions::Function;
use super::guards::Guards;
use super::{Region, needs_guard};
use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// An instruction with its source location.
pub(super) type Placed = (MInst, SourceLoc);

/// An edge of a region.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    /// True in the lanes that take the edge.
    pub(super) predicate: Function,
    /// Arguments for the target's parameters.
    pub(super) args: SmallVec<[Reg; 4]>,
}

/// Registers that are replaced by others.
#[derive(Debug, Default)]
pub(super) struct Aliases(HashMap<Reg, Reg>);

impl Aliases {
    pub(super) fn resolve(&self, mut reg: Reg) -> Reg {
        while let Some(&next) = self.0.get(&reg) {
            reg = next;
        }
        reg
    }
}

/// How often each register is read, arguments included; the changes since the last region can be undone.
#[derive(Debug)]
pub(super) struct Uses {
    counts: Vec<usize>,
    before: Vec<(usize, usize)>,
}

impl Uses {
    pub(super) fn resize(&mut self, count: usize) {
        self.counts.resize(count, 0);
    }
}

impl Index<usize> for Uses {
    type Output = usize;

    fn index(&self, index: usize) -> &usize {
        &self.counts[index]
    }
}

impl IndexMut<usize> for Uses {
    fn index_mut(&mut self, index: usize) -> &mut usize {
        self.before.push((index, self.counts[index]));
        &mut self.counts[index]
    }
}

/// Converts the regions of one function.
pub(super) struct Converter<'a> {
    pub(super) vcode: &'a mut VCode,
    pub(super) layout: Layout,
    /// The number of the machine's predicates: an instruction must not need more.
    pub(super) predicates: usize,
    pub(super) uses: Uses,
    /// Registers with undefined values.
    pub(super) undefined: HashSet<Reg>,
    aliases: Aliases,
    // The remaining fields belong to the current region.
    pub(super) guards: Guards,
    /// The code; none where an instruction has moved further down.
    pub(super) code: Vec<Option<Placed>>,
    /// The indices in the code where the region's registers are defined.
    pub(super) homes: HashMap<Reg, usize>,
    /// The guards of guarded instructions, by their indices in the code.
    pub(super) guarded: HashMap<usize, Function>,
    /// The source location of added instructions.
    place: SourceLoc,
    /// Registers that are not promised to be uniform any more.
    broken: Vec<Reg>,
    /// Registers of which facts have moved to others.
    moved: Vec<(Reg, Reg)>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(vcode: &'a mut VCode, arch: ArchId) -> Converter<'a> {
        let mut counts = vec![0; vcode.num_regs];
        let mut undefined = HashSet::new();
        for inst in &vcode.insts {
            if let MInst::Undef { dst } = inst {
                undefined.insert(*dst);
            }
            inst.for_each_reg(|reg, access| {
                counts[reg.index()] += usize::from(!access.is_def());
            });
        }
        let uses = Uses { counts, before: Vec::new() };
        Converter {
            vcode,
            layout: Layout::new(arch),
            predicates: arch.preds().into(),
            uses,
            undefined,
            aliases: Aliases::default(),
            guards: Guards::new(),
            code: Vec::new(),
            homes: HashMap::new(),
            guarded: HashMap::new(),
            place: SourceLoc::default(),
            broken: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Undoes the last region, before which there were `num_regs` registers.
    pub(super) fn forget(&mut self, num_regs: usize) {
        while let Some((index, count)) = self.uses.before.pop() {
            self.uses.counts[index] = count;
        }
        self.vcode.num_regs = num_regs;
        self.uses.resize(num_regs);
        self.aliases.0.clear();
        while let Some((old, new)) = self.moved.pop() {
            self.vcode.promises.move_to(new, old);
        }
        self.vcode.promises.uniform.extend(self.broken.drain(..));
    }

    /// Forgets that a register is promised to be uniform: it holds among the lanes of its block, and others execute the
    /// definition now, or keep another value.
    fn break_promise(&mut self, reg: Reg) {
        if self.vcode.promises.uniform.remove(&reg) {
            self.broken.push(reg);
        }
    }

    /// An instruction that has defined `old` defines `new`.
    pub(super) fn redefine(&mut self, old: Reg, new: Reg) {
        self.break_promise(old);
        self.vcode.promises.move_to(old, new);
        self.moved.push((old, new));
    }

    /// The replacements of parameters that have only one value.
    pub(super) fn into_aliases(self) -> Aliases {
        self.aliases
    }

    /// The code of a region's head followed by its `members`, and the number of branches it replaces.
    pub(super) fn region(&mut self, region: Region, members: &[BlockId]) -> (Vec<Placed>, usize) {
        self.uses.before.clear();
        self.moved.clear();
        self.broken.clear();
        self.guards = Guards::new();
        self.homes.clear();
        self.guarded.clear();
        let mut edges: HashMap<BlockId, Vec<Edge>> = HashMap::new();
        let mut branches = 0;
        for &block in std::iter::once(&region.head).chain(members) {
            let guard = if block == region.head {
                Function::TRUE
            } else {
                self.enter(block, &edges.remove(&block).unwrap_or_default())
            };
            let leaving = self.block(block, guard, block == region.head);
            branches += usize::from(leaving.len() == 2);
            for (target, edge) in leaving {
                edges.entry(target).or_default().push(edge);
            }
        }
        let leaving = edges.remove(&region.end).unwrap_or_default();
        let args = self.values(&leaving, Function::TRUE);
        self.push(MInst::Jump { target: region.end, args });
        (self.code.drain(..).flatten().collect(), branches)
    }

    /// Defines the parameters of a member and returns the member's guard.
    fn enter(&mut self, block: BlockId, edges: &[Edge]) -> Function {
        let guard =
            edges.iter().fold(Function::FALSE, |any, edge| self.guards.or(any, edge.predicate));
        let params = self.vcode.blocks[block.index()].params.clone();
        for (param, value) in params.into_iter().zip(self.values(edges, guard)) {
            self.uses[value.index()] += self.uses[param.index()];
            self.aliases.0.insert(param, value);
        }
        guard
    }

    /// The values of all parameters at the end of `edges`, valid in the lanes where `care` is true.
    fn values(&mut self, edges: &[Edge], care: Function) -> SmallVec<[Reg; 4]> {
        let count = edges.first().map_or(0, |edge| edge.args.len());
        let mut values = SmallVec::new();
        for index in 0..count {
            let value = self.merge(edges, index, care);
            // The value counts as read as long as merges are to come.
            self.uses[value.index()] += 1;
            values.push(value);
        }
        values.iter().for_each(|value: &Reg| self.uses[value.index()] -= 1);
        values
    }

    /// Appends the code of a block, and returns the edges that leave it.
    fn block(
        &mut self,
        block: BlockId,
        guard: Function,
        is_head: bool,
    ) -> SmallVec<[(BlockId, Edge); 2]> {
        let mut leaving = SmallVec::new();
        for at in self.vcode.blocks[block.index()].insts.clone() {
            let mut inst = self.vcode.insts[at].clone();
            inst.rewrite_regs(|reg| *reg = self.aliases.resolve(*reg));
            self.place = self.vcode.srclocs[at];
            if !is_head {
                inst.for_each_reg(|reg, access| {
                    if access.is_def() {
                        self.break_promise(reg);
                    }
                });
            }
            match inst {
                MInst::Jump { target, args } => {
                    leaving.push((target, Edge { predicate: guard, args }));
                }
                MInst::CondBr { condition, taken, not_taken, .. } => {
                    let condition = self.guards.condition(condition);
                    let otherwise = self.guards.not(condition);
                    for (target, literal) in [(taken, condition), (not_taken, otherwise)] {
                        let predicate = self.guards.and(guard, literal);
                        leaving.push((target, Edge { predicate, args: smallvec![] }));
                    }
                }
                MInst::Op { opcode, .. } if !is_head && needs_guard(opcode) => {
                    self.push_guarded(inst, guard);
                }
                _ => self.push(inst),
            }
        }
        leaving
    }

    /// Appends an instruction that only the lanes of `guard` may execute.
    fn push_guarded(&mut self, mut inst: MInst, guard: Function) {
        if guard != Function::TRUE
            && let MInst::Op { guard: given, .. } = &mut inst
        {
            let own = self.register(guard);
            *given = Some(match *given {
                None => {
                    // The instruction is pushed next.
                    self.guarded.insert(self.code.len(), guard);
                    own
                }
                Some(given) => self.combine(Opcode::Andp, own, given),
            });
        }
        self.push(inst);
    }

    /// Creates a predicate computed from two others.
    pub(super) fn combine(&mut self, opcode: Opcode, a: Reg, b: Reg) -> Reg {
        let result = self.vcode.new_reg(RegClass::Pred);
        self.uses.resize(self.vcode.num_regs);
        let operands = smallvec![MOperand::Def(result), MOperand::Use(a), MOperand::Use(b)];
        self.push(MInst::Op { opcode, guard: None, operands });
        result
    }

    /// Returns a register with a function of the conditions, which must not be constant.
    pub(super) fn register(&mut self, function: Function) -> Reg {
        let mut made = Vec::new();
        let register = self.guards.register(function, self.vcode, |inst| made.push(inst));
        made.into_iter().for_each(|inst| self.push(inst));
        register
    }

    /// Appends an instruction.
    pub(super) fn push(&mut self, inst: MInst) {
        let at = self.code.len();
        inst.for_each_reg(|reg, access| {
            if access.is_def() {
                self.homes.insert(reg, at);
            }
        });
        self.code.push(Some((inst, self.place)));
    }
}
