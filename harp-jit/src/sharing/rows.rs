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

use super::candidates::shared_result;
use super::nesting::Nesting;
use super::uniform::Uniform;
use crate::vcode::{MInst, MOperand, Reg, VCode};

/// What is known of registers and lanes before rows are looked for.
pub(super) struct Facts<'a> {
    pub(super) nesting: &'a Nesting,
    pub(super) uniform: &'a Uniform,
    /// Whether the lanes of a warp have positions in the grid that follow each other.
    pub(super) by_rows: bool,
}

/// Makes accesses of rows, but for those at the addresses in `left_out`, and notes down their bases in `vcode`. Returns the
/// address that each base was made for.
pub(super) fn find(
    vcode: &mut VCode,
    arch: ArchId,
    facts: &Facts<'_>,
    left_out: &HashSet<Reg>,
) -> HashMap<Reg, Reg> {
    let strides = Strides::compute(vcode, facts);
    let accesses = strides.accesses(vcode, arch, left_out);
    if accesses.is_empty() {
        return HashMap::new();
    }
    let needed = strides.needed(vcode, &accesses);
    let starts = insert(vcode, &strides, &needed);
    let mut made = HashMap::new();
    for inst in &mut vcode.insts {
        if let MInst::Op { opcode, guard: None, operands } = inst
            && let Some(base) = access(*opcode, operands)
            && accesses.contains(&(value_of(operands), base))
            && let Some(&start) = starts.get(&base)
        {
            operands[1] = MOperand::Use(start);
            made.insert(start, base);
        }
    }
    vcode.rows = made.keys().copied().collect();
    drop_unused(vcode);
    made
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
struct Strides<'a> {
    facts: &'a Facts<'a>,
    /// By register; none if it is uniform or not known to be affine.
    of: Vec<Option<i64>>,
}

impl<'a> Strides<'a> {
    /// Definitions come before their uses, but for those of parameters, which are not looked at.
    fn compute(vcode: &VCode, facts: &'a Facts<'a>) -> Strides<'a> {
        let mut strides = Strides { facts, of: vec![None; vcode.num_regs] };
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
                }
            }
        }
        strides
    }

    /// The register in which an instruction gets numbers that follow each other from lane to lane.
    fn begins(&self, inst: &MInst) -> Option<(Reg, i64)> {
        match inst {
            MInst::Args { defs } if self.facts.by_rows => {
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

    /// The affine registers whose starts these accesses need.
    fn needed(&self, vcode: &VCode, accesses: &HashSet<(Option<Reg>, Reg)>) -> Vec<bool> {
        let mut needed = vec![false; vcode.num_regs];
        accesses.iter().for_each(|(_, base)| needed[base.index()] = true);
        // Backwards, as definitions come before their uses.
        for inst in vcode.insts.iter().rev() {
            let MInst::Op { operands, .. } = inst else { continue };
            if !value_of(operands).is_some_and(|reg| needed[reg.index()]) {
                continue;
            }
            if self.begins(inst).is_some() || !matches!(operands.first(), Some(MOperand::Def(_))) {
                continue;
            }
            for operand in &operands[1..] {
                if let MOperand::Use(reg) = operand
                    && self.of[reg.index()].is_some()
                {
                    needed[reg.index()] = true;
                }
            }
        }
        needed
    }
}

/// Computes the starts of these registers behind their definitions. Returns them.
fn insert(vcode: &mut VCode, strides: &Strides<'_>, needed: &[bool]) -> HashMap<Reg, Reg> {
    let mut starts: HashMap<Reg, Reg> = HashMap::new();
    let old = std::mem::take(&mut vcode.insts);
    let mut old = old.into_iter().zip(std::mem::take(&mut vcode.srclocs));
    for index in 0..vcode.blocks.len() {
        let first = vcode.insts.len();
        let count = vcode.blocks[index].insts.len();
        for (inst, srcloc) in old.by_ref().take(count) {
            let mut behind = Vec::new();
            if let Some((reg, _)) = strides.begins(&inst).filter(|(reg, _)| needed[reg.index()]) {
                let start = vcode.new_reg(RegClass::Gpr);
                starts.insert(reg, start);
                vcode.promises.uniform.insert(start);
                behind = begin(vcode, &inst, reg, start);
            } else if let MInst::Op { opcode, guard: None, operands } = &inst
                && let Some(&MOperand::Def(reg)) = operands.first()
                && needed[reg.index()]
            {
                let start = vcode.new_reg(RegClass::Gpr);
                let mut operands = operands.clone();
                for operand in &mut operands {
                    match operand {
                        MOperand::Def(def) => *def = start,
                        MOperand::Use(used) => *used = starts.get(used).copied().unwrap_or(*used),
                        _ => {}
                    }
                }
                starts.insert(reg, start);
                behind = vec![MInst::Op { opcode: *opcode, guard: None, operands }];
            }
            vcode.insts.push(inst);
            vcode.insts.extend(behind);
            vcode.srclocs.resize(vcode.insts.len(), srcloc);
        }
        vcode.blocks[index].insts = first..vcode.insts.len();
    }
    starts
}

/// The start of the numbers that `inst` gives lanes in `reg`: what lane 0 has, or would have.
fn begin(vcode: &mut VCode, inst: &MInst, reg: Reg, start: Reg) -> Vec<MInst> {
    if let MInst::Op { .. } | MInst::LaneWord { field: LaneField::Lane, .. } = inst {
        return vec![MInst::Const { dst: start, value: 0 }];
    }
    let lane = vcode.new_reg(RegClass::Gpr);
    let op = |opcode, operands| MInst::Op { opcode, guard: None, operands };
    vec![
        op(Opcode::Tid, smallvec![MOperand::Def(lane)]),
        op(Opcode::Sub, smallvec![MOperand::Def(start), MOperand::Use(reg), MOperand::Use(lane)]),
    ]
}

/// Drops instructions without effects whose results have no use.
fn drop_unused(vcode: &mut VCode) {
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
    let mut all =
        std::mem::take(&mut vcode.insts).into_iter().zip(std::mem::take(&mut vcode.srclocs));
    let mut kept = kept.into_iter();
    for index in 0..vcode.blocks.len() {
        let first = vcode.insts.len();
        let count = vcode.blocks[index].insts.len();
        for ((inst, srcloc), _) in
            all.by_ref().take(count).zip(kept.by_ref()).filter(|(_, kept)| *kept)
        {
            vcode.insts.push(inst);
            vcode.srclocs.push(srcloc);
        }
        vcode.blocks[index].insts = first..vcode.insts.len();
    }
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
        _ => shared_result(inst),
    }
}
