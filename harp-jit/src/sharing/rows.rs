//! Accesses to rows of memory: loads and stores whose addresses follow each other from lane to lane, at a shared address
//! (Lee et al., CGO 2013, section 3.5).
//!
//! A register is *affine* if it holds `start + stride * lane` in the lanes that execute its definition together, with a
//! start that they share and a stride that is known. Sums, differences and products with constants of affine registers
//! are affine; it begins with the lane's number, with the work-item's number in its group, and, in kernels that do not
//! know of groups, with its position in the grid. Where the stride of an address is what the access takes, the starts
//! are computed once, beside what lanes compute each for themselves, and the access takes the start in place of the
//! address. What then has no use any more is dropped.

use harp_isa::abi::{KernelEntry, LaneField};
use harp_isa::{ArchId, Opcode, OpcodeFlags, RegClass};
use hashbrown::{HashMap, HashSet};
use smallvec::smallvec;

use super::Setting;
use super::candidates::shared_result;
use super::colour::depths;
use super::nesting::Nesting;
use super::rewrite::copy;
use super::uniform::Uniform;
use crate::abi::EntryKind;
use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// What is known of registers and lanes before rows are looked for.
pub(super) struct Facts<'a> {
    pub(super) nesting: &'a Nesting,
    pub(super) uniform: &'a Uniform,
    pub(super) setting: Setting,
}

impl Facts<'_> {
    /// Whether all lanes that entered execute the block, lane 0 first: no split is open, and lanes that do not enter a
    /// kernel are the last ones.
    fn is_whole(&self, block: BlockId) -> bool {
        self.setting.entry == EntryKind::Kernel && self.nesting.is_outside(block)
    }
}

/// Accesses that were made of rows.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The start of the positions in the grid, if it is needed.
    pub(super) position: Option<Reg>,
    /// The address that each base was made for.
    bases: HashMap<Reg, Reg>,
    /// For each base the registers that must be shared beside it.
    taken: HashMap<Reg, Vec<Reg>>,
    /// Registers that addresses follow each other because of, as lanes have the same in them.
    pub(super) relied_on: HashSet<Reg>,
}

impl Made {
    /// The addresses whose accesses are not of rows, as a register that must be shared is not.
    pub(super) fn lost(&self, vcode: &VCode) -> Vec<Reg> {
        let is_own = |reg: &Reg| !vcode.shared.contains_key(reg);
        let is_lost = |(start, _): &(&Reg, &Reg)| {
            is_own(start) || self.taken.get(*start).is_some_and(|taken| taken.iter().any(is_own))
        };
        self.bases.iter().filter(is_lost).map(|(_, &address)| address).collect()
    }
}

/// The code with accesses of rows, but for those at the addresses in `left_out`. Their bases are noted down in it. None if
/// there are none.
pub(super) fn find(
    vcode: &VCode,
    arch: ArchId,
    strides: &Strides<'_>,
    left_out: &HashSet<Reg>,
) -> Option<(VCode, Made)> {
    let mut accesses = strides.accesses(vcode, arch, left_out);
    let plan = loop {
        if accesses.is_empty() {
            return None;
        }
        let plan = strides.plan(vcode, &accesses);
        let costly = strides.costly(vcode, &plan);
        let before = accesses.len();
        accesses.retain(|(_, base)| !costly[base.index()]);
        if accesses.len() == before {
            break plan;
        }
    };
    let mut vcode = vcode.clone();
    let starts = insert(&mut vcode, strides, &plan);
    let relied_on = strides.relied_on.clone();
    let mut made = Made { position: starts.position, relied_on, ..Made::default() };
    for inst in &mut vcode.insts {
        if let MInst::Op { opcode, guard: None, operands } = inst
            && let Some(base) = access(*opcode, operands)
            && accesses.contains(&(value_of(operands), base))
            && let Some(&start) = starts.of.get(&base)
        {
            operands[1] = MOperand::Use(start);
            made.bases.insert(start, base);
        }
    }
    vcode.rows = made.bases.keys().copied().collect();
    made.taken = starts.taken;
    drop_unused(&mut vcode);
    (!made.bases.is_empty()).then_some((vcode, made))
}

/// The address of a plain load or store, if it is in a register.
fn access(opcode: Opcode, operands: &[MOperand]) -> Option<Reg> {
    let flags = opcode.flags();
    let is_plain = flags.intersects(OpcodeFlags::LOAD | OpcodeFlags::STORE)
        && !flags.contains(OpcodeFlags::ATOMIC);
    match *operands {
        [MOperand::Def(_) | MOperand::Use(_), MOperand::Use(base), MOperand::Imm(_)]
            if is_plain =>
        {
            Some(base)
        }
        _ => None,
    }
}

/// The register that an access loads or stores.
fn value_of(operands: &[MOperand]) -> Option<Reg> {
    match operands.first() {
        Some(&MOperand::Def(reg) | &MOperand::Use(reg)) => Some(reg),
        _ => None,
    }
}

/// The strides of affine registers.
pub(super) struct Strides<'a> {
    facts: &'a Facts<'a>,
    /// By register; none if it is uniform or not known to be affine.
    of: Vec<Option<i64>>,
    /// Uniform registers that affine ones were computed from.
    relied_on: HashSet<Reg>,
}

impl<'a> Strides<'a> {
    /// Definitions come before their uses, but for those of parameters, which are not looked at.
    pub(super) fn compute(vcode: &VCode, facts: &'a Facts<'a>) -> Strides<'a> {
        let of = vec![None; vcode.num_regs];
        let mut strides = Strides { facts, of, relied_on: HashSet::new() };
        for (id, block) in vcode.blocks().filter(|(id, _)| facts.nesting.is_known(*id)) {
            for inst in &vcode.insts[block.insts.clone()] {
                let found = strides.begins(inst).or_else(|| {
                    let MInst::Op { opcode, guard: None, operands } = inst else { return None };
                    let stride = strides.of_op(
                        *opcode,
                        operands,
                        |reg| facts.uniform.is_uniform_in(reg, id, facts.nesting),
                        |reg| facts.uniform.is_defined_around(reg, id, facts.nesting),
                    )?;
                    Some((value_of(operands)?, stride))
                });
                if let Some((reg, stride)) = found.filter(|(_, stride)| *stride != 0) {
                    strides.of[reg.index()] = Some(stride);
                    inst.for_each_reg(|used, access| {
                        if !access.is_def() && strides.of[used.index()].is_none() {
                            strides.relied_on.insert(used);
                        }
                    });
                }
            }
        }
        strides
    }

    /// The register in which an instruction gets numbers that follow each other from lane to lane.
    fn begins(&self, inst: &MInst) -> Option<(Reg, i64)> {
        match inst {
            MInst::Args { defs } if self.facts.setting.by_rows => {
                let x = defs.iter().find(|(_, place)| *place == KernelEntry::GLOBAL_ID_X);
                x.map(|&(reg, _)| (reg, 1))
            }
            MInst::LaneWord { dst, field: LaneField::Lane | LaneField::LocalIndex } => {
                Some((*dst, 1))
            }
            MInst::Op { opcode: Opcode::Tid, guard: None, operands } => {
                Some((value_of(operands)?, 1))
            }
            _ => None,
        }
    }

    fn of_op(
        &self,
        opcode: Opcode,
        operands: &[MOperand],
        is_uniform: impl Fn(Reg) -> bool,
        is_around: impl Fn(Reg) -> bool,
    ) -> Option<i64> {
        let stride = |reg: Reg| match is_uniform(reg) {
            true => Some(0),
            false => self.of[reg.index()].filter(|_| is_around(reg)),
        };
        match *operands {
            [MOperand::Def(_), MOperand::Use(a), MOperand::Use(b)] => match opcode {
                Opcode::Add => Some(stride(a)?.wrapping_add(stride(b)?)),
                Opcode::Sub => Some(stride(a)?.wrapping_sub(stride(b)?)),
                _ => None,
            },
            [MOperand::Def(_), MOperand::Use(a), MOperand::Imm(imm)] => match opcode {
                Opcode::Addi | Opcode::Subi => stride(a),
                Opcode::Ori if imm == 0 => stride(a),
                Opcode::Muli => Some(stride(a)?.wrapping_mul(imm)),
                Opcode::Shli => stride(a)?.checked_shl(u32::try_from(imm).ok()?),
                _ => None,
            },
            _ => None,
        }
    }

    /// The loads and stores whose addresses follow each other: values and addresses.
    fn accesses(
        &self,
        vcode: &VCode,
        arch: ArchId,
        left_out: &HashSet<Reg>,
    ) -> HashSet<(Option<Reg>, Reg)> {
        let mut found = HashSet::new();
        let Facts { nesting, uniform, .. } = self.facts;
        for (id, block) in vcode.blocks() {
            for inst in &vcode.insts[block.insts.clone()] {
                let MInst::Op { opcode, guard: None, operands } = inst else { continue };
                let Some(base) = access(*opcode, operands) else { continue };
                let (value, bytes) = (value_of(operands), opcode.access_bytes(arch.word()));
                // A store of what lanes share would be done once.
                let is_stored = opcode.flags().contains(OpcodeFlags::STORE);
                let is_own = value.is_some_and(|value| !is_stored || !uniform.is_uniform(value));
                let follows = self.of[base.index()]
                    .is_some_and(|stride| Some(stride) == bytes.map(i64::from));
                let is_around = uniform.is_defined_around(base, id, nesting);
                if is_own && follows && is_around && !left_out.contains(&base) {
                    found.insert((value, base));
                }
            }
        }
        found
    }

    /// How to get the starts that these accesses need.
    fn plan(&self, vcode: &VCode, accesses: &HashSet<(Option<Reg>, Reg)>) -> Plan {
        let none = vec![false; vcode.num_regs];
        let mut plan = Plan { used: none.clone(), needed: none.clone(), copied: none };
        // Backwards, as definitions come before their uses.
        for (id, block) in vcode.blocks().collect::<Vec<_>>().into_iter().rev() {
            for inst in vcode.insts[block.insts.clone()].iter().rev() {
                self.plan_inst(inst, id, accesses, &mut plan);
            }
        }
        plan
    }

    fn plan_inst(
        &self,
        inst: &MInst,
        block: BlockId,
        accesses: &HashSet<(Option<Reg>, Reg)>,
        plan: &mut Plan,
    ) {
        if let MInst::Op { opcode, guard: None, operands } = inst
            && let Some(base) = access(*opcode, operands)
            && accesses.contains(&(value_of(operands), base))
        {
            plan.needed[base.index()] = true;
            if let MOperand::Use(value) = operands[0] {
                plan.used[value.index()] = true;
            }
            return;
        }
        if pure_result(inst).is_none_or(|reg| plan.used[reg.index()]) {
            inst.for_each_reg(|reg, access| plan.used[reg.index()] |= !access.is_def());
        }
        let MInst::Op { operands, .. } = inst else { return };
        let Some(&MOperand::Def(reg)) = operands.first() else { return };
        if !plan.needed[reg.index()] || self.begins(inst).is_some() {
            return;
        }
        if plan.used[reg.index()] && self.facts.is_whole(block) {
            plan.copied[reg.index()] = true;
            return;
        }
        for operand in &operands[1..] {
            if let MOperand::Use(reg) = operand {
                let is_affine = self.of[reg.index()].is_some();
                plan.needed[reg.index()] |= is_affine;
                plan.used[reg.index()] |= !is_affine;
            }
        }
    }

    /// The registers whose starts would make a loop longer: they are computed in it, as are the registers themselves.
    fn costly(&self, vcode: &VCode, plan: &Plan) -> Vec<bool> {
        let mut costly = vec![false; vcode.num_regs];
        for ((_, block), depth) in vcode.blocks().zip(depths(vcode)) {
            for inst in &vcode.insts[block.insts.clone()] {
                let Some(reg) = result(inst).filter(|reg| plan.needed[reg.index()]) else {
                    continue;
                };
                let mut is_costly = depth > 0 && plan.used[reg.index()];
                if !plan.copied[reg.index()] {
                    inst.for_each_reg(|used, access| {
                        is_costly |= !access.is_def() && costly[used.index()];
                    });
                }
                costly[reg.index()] = is_costly;
            }
        }
        costly
    }
}

/// What becomes of registers where some accesses are of rows.
struct Plan {
    /// Whether lanes need it themselves.
    used: Vec<bool>,
    /// Whether its start is needed.
    needed: Vec<bool>,
    /// Whether the start is copied from lane 0, which has the register in any case.
    copied: Vec<bool>,
}

/// The starts that were computed.
#[derive(Default)]
struct Starts {
    of: HashMap<Reg, Reg>,
    /// The start of the positions in the grid.
    position: Option<Reg>,
    /// For starts that are right only where they are shared, as they are taken from the first lane, and for those that
    /// are computed of such: which ones that are.
    taken: HashMap<Reg, Vec<Reg>>,
}

/// Computes the starts that the plan needs behind the definitions.
fn insert(vcode: &mut VCode, strides: &Strides<'_>, plan: &Plan) -> Starts {
    let mut starts = Starts::default();
    let old = std::mem::take(&mut vcode.insts);
    let mut old = old.into_iter().zip(std::mem::take(&mut vcode.srclocs));
    for index in 0..vcode.blocks.len() {
        let is_whole = strides.facts.is_whole(BlockId::new(index));
        let place = Place { arch: strides.facts.setting.arch, is_whole };
        let first = vcode.insts.len();
        let count = vcode.blocks[index].insts.len();
        for (inst, srcloc) in old.by_ref().take(count) {
            let defined = strides.begins(&inst).map(|(reg, _)| reg).or_else(|| result(&inst));
            let needed = defined.filter(|reg| plan.needed[reg.index()]);
            let behind = needed.map(|reg| starts.add(vcode, &inst, reg, place, plan));
            vcode.insts.push(inst);
            vcode.insts.extend(behind.into_iter().flatten());
            vcode.srclocs.resize(vcode.insts.len(), srcloc);
        }
        vcode.blocks[index].insts = first..vcode.insts.len();
    }
    starts
}

/// Where a start is computed.
#[derive(Clone, Copy)]
struct Place {
    arch: ArchId,
    /// Whether all lanes are there.
    is_whole: bool,
}

/// The result of an operation that may be affine.
fn result(inst: &MInst) -> Option<Reg> {
    match inst {
        MInst::Op { guard: None, operands, .. } => match operands.first() {
            Some(&MOperand::Def(reg)) => Some(reg),
            _ => None,
        },
        _ => None,
    }
}

impl Starts {
    /// The code for the start of `reg`, which `inst` defines.
    fn add(
        &mut self,
        vcode: &mut VCode,
        inst: &MInst,
        reg: Reg,
        Place { arch, is_whole }: Place,
        plan: &Plan,
    ) -> Vec<MInst> {
        let start = vcode.new_reg(RegClass::Gpr);
        self.of.insert(reg, start);
        vcode.promises.uniform.insert(start);
        let is_copied = plan.copied[reg.index()];
        let code = match inst {
            MInst::Args { .. } => {
                self.position = Some(start);
                return vec![copy(start, reg)];
            }
            MInst::Op { opcode: Opcode::Tid, .. }
            | MInst::LaneWord { field: LaneField::Lane, .. } => {
                return vec![MInst::Const { dst: start, value: 0 }];
            }
            MInst::LaneWord { .. } if !is_whole => {
                return less_lane(vcode, arch, start, reg).into();
            }
            MInst::LaneWord { field, .. } if !plan.used[reg.index()] => {
                MInst::LaneWord { dst: start, field: *field }
            }
            MInst::Op { opcode, operands, .. } if !is_copied => {
                let mut operands = operands.clone();
                for operand in &mut operands {
                    match operand {
                        MOperand::Def(def) => *def = start,
                        MOperand::Use(used) => *used = self.of.get(used).copied().unwrap_or(*used),
                        _ => {}
                    }
                }
                let op = MInst::Op { opcode: *opcode, guard: None, operands };
                self.follow(start, &op);
                return vec![op];
            }
            _ => copy(start, reg),
        };
        self.taken.insert(start, vec![start]);
        vec![code]
    }

    /// Notes down what is taken from the first lane of what `op` computes `start` of.
    fn follow(&mut self, start: Reg, op: &MInst) {
        let mut taken = Vec::new();
        op.for_each_reg(|reg, access| {
            let known = self.taken.get(&reg).filter(|_| !access.is_def());
            taken.extend(known.into_iter().flatten().copied());
        });
        if !taken.is_empty() {
            taken.push(start);
            self.taken.insert(start, taken);
        }
    }
}

/// The number in a register less that of the lane: what lane 0 has, or would have.
pub(super) fn less_lane(vcode: &mut VCode, arch: ArchId, dst: Reg, reg: Reg) -> [MInst; 2] {
    let lane = vcode.new_reg(RegClass::Gpr);
    let op = |opcode, operands| MInst::Op { opcode, guard: None, operands };
    let number = match arch.has_extension() {
        true => op(Opcode::Tid, smallvec![MOperand::Def(lane)]),
        false => MInst::LaneWord { dst: lane, field: LaneField::Lane },
    };
    let operands = smallvec![MOperand::Def(dst), MOperand::Use(reg), MOperand::Use(lane)];
    [number, op(Opcode::Sub, operands)]
}

/// Drops instructions without effects whose results have no use.
pub(super) fn drop_unused(vcode: &mut VCode) {
    let mut used = vec![false; vcode.num_regs];
    let mut kept = vec![true; vcode.insts.len()];
    // Backwards, as definitions come before their uses. Jumps use all that they pass.
    for (index, inst) in vcode.insts.iter().enumerate().rev() {
        let result = pure_result(inst);
        kept[index] = result.is_none_or(|reg| used[reg.index()]);
        if kept[index] {
            inst.for_each_reg(|reg, access| used[reg.index()] |= !access.is_def());
        }
    }
    vcode.retain_insts(|index, _| kept[index]);
}

/// The result of an instruction that does nothing but compute it.
fn pure_result(inst: &MInst) -> Option<Reg> {
    use OpcodeFlags as F;
    let acts = F::CONTROL
        | F::ONCE_PER_WARP
        | F::LOAD
        | F::STORE
        | F::ATOMIC
        | F::CROSS_LANE
        | F::PRIVILEGED
        | F::DIVIDES;
    match inst {
        MInst::Op { opcode, guard, .. } if guard.is_some() || opcode.flags().intersects(acts) => {
            None
        }
        MInst::FrameValue { dst, .. } => Some(*dst),
        _ => shared_result(inst),
    }
}
