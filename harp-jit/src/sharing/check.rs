//! A check of where shared registers were placed, that knows nothing of how.
//!
//! It follows what the *warp* executes and keeps which virtual register each shared register of the machine holds. That
//! must be the one that an instruction reads. Where paths meet, only what all of them agree upon is known. The warp
//! goes along the edges of the code, and from each join to both sides of its split: lanes that took one side wait at the
//! join while the others run the other side. Here the splits that are open are carried along the paths.

use std::collections::BTreeMap;

use harp_isa::abi::SharedRoles;
use harp_isa::{ArchId, Gpr, Opcode, OpcodeFlags};
use thiserror::Error;

use crate::abi::EntryKind;
use crate::vcode::{BlockId, MInst, MOperand, Reg, SharedReg, VCode};

/// A shared register that does not have what an instruction takes from it, or one that cannot be there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Misplaced {
    #[error("{inst} in {block} reads {reg} from {place:?}, which holds {}", held(*holds))]
    Lost { block: BlockId, inst: String, reg: Reg, place: SharedReg, holds: Option<Reg> },
    #[error("{reg} in {block} is in {place:?}, a place of another class")]
    Class { block: BlockId, reg: Reg, place: SharedReg },
    #[error("{reg} is in {place:?}, which only kernels change")]
    OfKernel { reg: Reg, place: SharedReg },
    #[error("{block} joins, and its parameter {reg} is shared")]
    JoinParameter { block: BlockId, reg: Reg },
    #[error("{block} passes {arg} for {param}, which is in another place")]
    Argument { block: BlockId, param: Reg, arg: Reg },
    #[error(
        "{inst} in {block}, where the open splits depend on the path, writes {reg}, which is shared"
    )]
    Unknown { block: BlockId, inst: String, reg: Reg },
    #[error(
        "{inst} in {block} accesses a row of memory where it should not, or does not where it should"
    )]
    Row { block: BlockId, inst: String },
    #[error("{inst} in {block} loads for each lane what lanes must agree in")]
    LoadedByEach { block: BlockId, inst: String },
    #[error("{inst} in {block} takes {reg} from a register of the lanes' own only")]
    Operand { block: BlockId, inst: String, reg: Reg },
}

fn held(reg: Option<Reg>) -> String {
    reg.map_or("nothing that is known".to_owned(), |reg| reg.to_string())
}

/// Which virtual register each shared register holds, where that is known.
type Held = BTreeMap<SharedReg, Reg>;

/// What is known where a block is entered.
#[derive(Clone, Debug)]
struct Entry {
    held: Held,
    /// The blocks that end in the open splits, outermost first; none if that depends on the path.
    splits: Option<Vec<BlockId>>,
}

/// Checks every mention of a shared register.
///
/// # Errors
///
/// The first one that is wrong.
pub(crate) fn check(vcode: &VCode, arch: ArchId, entry: EntryKind) -> Result<(), Misplaced> {
    check_once(vcode)?;
    if vcode.shared.is_empty() {
        return Ok(());
    }
    let roles = SharedRoles::new(arch);
    if entry == EntryKind::Function
        && let Some((&reg, &place)) =
            vcode.shared.iter().find(|(_, place)| is_of_kernel(roles, **place))
    {
        return Err(Misplaced::OfKernel { reg, place });
    }
    let mut entries: Vec<Option<Entry>> = vec![None; vcode.blocks.len()];
    let mut todo = vec![BlockId::new(0)];
    if let Some(first) = entries.first_mut() {
        *first = Some(Entry { held: Held::new(), splits: Some(Vec::new()) });
    }
    while let Some(block) = todo.pop() {
        let Some(entry) = entries[block.index()].clone() else { continue };
        for (to, reached) in (Walk { vcode, block, roles }).leaves(entry) {
            if meet(&mut entries[to.index()], reached) {
                todo.push(to);
            }
        }
    }
    for (block, _) in vcode.blocks() {
        if let Some(entry) = entries[block.index()].clone() {
            Walk { vcode, block, roles }.check(entry)?;
        }
    }
    Ok(())
}

/// Checks that what lanes must agree in is computed from loads that are executed once.
fn check_once(vcode: &VCode) -> Result<(), Misplaced> {
    let mut must_agree = vec![false; vcode.num_regs];
    vcode.once.iter().for_each(|reg| must_agree[reg.index()] = true);
    // Backwards, as definitions come before their uses, but for those of parameters. They are not looked at.
    for (block, data) in vcode.blocks().collect::<Vec<_>>().into_iter().rev() {
        for inst in vcode.insts[data.insts.clone()].iter().rev() {
            let MInst::Op { opcode, operands, .. } = inst else { continue };
            let Some(&MOperand::Def(reg)) = operands.first() else { continue };
            if !must_agree[reg.index()] || vcode.shared.contains_key(&reg) {
                continue;
            }
            let is_load = opcode.flags().contains(OpcodeFlags::LOAD);
            if is_load && !vcode.promises.read_only.contains(&reg) {
                return Err(Misplaced::LoadedByEach { block, inst: inst.to_string() });
            }
            inst.for_each_reg(|used, access| must_agree[used.index()] |= !access.is_def());
        }
    }
    Ok(())
}

/// Whether functions do not change it.
fn is_of_kernel(roles: SharedRoles, place: SharedReg) -> bool {
    match place {
        SharedReg::Gpr(gpr) => roles.is_of_kernel(gpr),
        SharedReg::Pred(pred) => roles.is_pred_of_kernel(pred),
    }
}

/// Leaves what both agree upon; whether that is less than before.
fn meet(known: &mut Option<Entry>, other: Entry) -> bool {
    let Some(entry) = known else {
        *known = Some(other);
        return true;
    };
    let before = (entry.held.len(), entry.splits.is_some());
    entry.held.retain(|place, reg| other.held.get(place) == Some(reg));
    if entry.splits != other.splits {
        entry.splits = None;
        entry.held.clear();
    }
    before != (entry.held.len(), entry.splits.is_some())
}

struct Walk<'a> {
    vcode: &'a VCode,
    block: BlockId,
    roles: SharedRoles,
}

impl Walk<'_> {
    fn insts(&self) -> &[MInst] {
        &self.vcode.insts[self.vcode.blocks[self.block.index()].insts.clone()]
    }

    fn place(&self, reg: Reg) -> Option<SharedReg> {
        self.vcode.shared.get(&reg).copied()
    }

    /// Where the warp goes from the block, and with what.
    fn leaves(&self, mut entry: Entry) -> Vec<(BlockId, Entry)> {
        let mut leaves = Vec::new();
        if let Some(MInst::Join) = self.insts().first()
            && let Some(split) = entry.splits.as_mut().and_then(Vec::pop)
        {
            // The sides begin below the split that they are of.
            let mut side = entry.clone();
            side.splits.iter_mut().for_each(|splits| splits.push(split));
            for &to in &self.vcode.blocks[split.index()].succs {
                leaves.push((to, side.clone()));
            }
        }
        self.insts().iter().for_each(|inst| self.write(inst, &mut entry.held));
        match self.insts().last() {
            Some(MInst::Jump { target, args }) => {
                let params = &self.vcode.blocks[target.index()].params;
                let passed = params.iter().zip(args).filter_map(|(&param, arg)| {
                    let place = self.place(param)?;
                    (entry.held.get(&place) == Some(arg)).then_some((place, param))
                });
                let passed: Vec<_> = passed.collect();
                entry.held.extend(passed);
                leaves.push((*target, entry));
            }
            Some(MInst::CondBr { split, .. }) => {
                if *split {
                    entry.splits.iter_mut().for_each(|splits| splits.push(self.block));
                }
                for &to in &self.vcode.blocks[self.block.index()].succs {
                    leaves.push((to, entry.clone()));
                }
            }
            _ => {}
        }
        leaves
    }

    /// What the shared registers hold after an instruction.
    fn write(&self, inst: &MInst, held: &mut Held) {
        if let MInst::Call { .. } = inst {
            held.retain(|place, _| is_of_kernel(self.roles, *place));
        }
        inst.for_each_reg(|reg, access| {
            if access.is_def()
                && let Some(place) = self.place(reg)
            {
                held.insert(place, reg);
            }
        });
    }

    fn check(&self, mut entry: Entry) -> Result<(), Misplaced> {
        let block = self.block;
        if let Some(MInst::Join) = self.insts().first() {
            let params = &self.vcode.blocks[block.index()].params;
            if let Some(&reg) = params.iter().find(|param| self.place(**param).is_some()) {
                return Err(Misplaced::JoinParameter { block, reg });
            }
        }
        for inst in self.insts() {
            self.check_places(inst, &entry)?;
            self.check_form(inst)?;
            self.write(inst, &mut entry.held);
        }
        Ok(())
    }

    /// Whether each register is where the instruction finds it.
    fn check_places(&self, inst: &MInst, entry: &Entry) -> Result<(), Misplaced> {
        let block = self.block;
        let mut result = Ok(());
        inst.for_each_reg(|reg, access| {
            let Some(place) = self.place(reg).filter(|_| result.is_ok()) else { return };
            let holds = entry.held.get(&place).copied();
            if place.class() != reg.class() {
                result = Err(Misplaced::Class { block, reg, place });
            } else if access.is_def() {
                if entry.splits.is_none() {
                    result = Err(Misplaced::Unknown { block, inst: inst.to_string(), reg });
                }
            } else if holds != Some(reg) {
                let inst = inst.to_string();
                result = Err(Misplaced::Lost { block, inst, reg, place, holds });
            }
        });
        result?;
        let MInst::Jump { target, args } = inst else { return Ok(()) };
        let params = &self.vcode.blocks[target.index()].params;
        let moved = |(param, arg): &(&Reg, &Reg)| self.place(**param) != self.place(**arg);
        match params.iter().zip(args).find(moved) {
            Some((&param, &arg)) => Err(Misplaced::Argument { block, param, arg }),
            None => Ok(()),
        }
    }

    /// Whether the instruction has a form with these registers shared, and means the same in it.
    fn check_form(&self, inst: &MInst) -> Result<(), Misplaced> {
        let block = self.block;
        let refused = |reg| Err(Misplaced::Operand { block, inst: inst.to_string(), reg });
        match inst {
            MInst::Op { opcode, operands, .. } => {
                if self.is_row(*opcode, operands) != self.is_wanted_row(operands) {
                    return Err(Misplaced::Row { block, inst: inst.to_string() });
                }
                // One of both would be another register than the other.
                let other = operands.iter().find_map(|operand| match *operand {
                    MOperand::Mod { old, new } => {
                        (self.place(old).is_some() || self.place(new).is_some()).then_some(new)
                    }
                    _ => None,
                });
                other.map_or(Ok(()), refused)
            }
            MInst::CondBr { condition, split: true, .. } if self.place(*condition).is_some() => {
                refused(*condition)
            }
            MInst::Args { defs } => {
                let arrives = |(reg, gpr): &(Reg, Gpr)| {
                    self.place(*reg).is_none_or(|place| place == SharedReg::Gpr(*gpr))
                };
                defs.iter().find(|def| !arrives(def)).map_or(Ok(()), |(reg, _)| refused(*reg))
            }
            // Into a lane's own register it would load from a row.
            MInst::GroupWord { dst, block, .. }
                if self.place(*dst).is_none() && self.place(*block).is_some() =>
            {
                refused(*block)
            }
            MInst::GroupWord { .. }
            | MInst::Barrier { .. }
            | MInst::Const { .. }
            | MInst::Address { .. }
            | MInst::LaneWord { .. }
            | MInst::Jump { .. }
            | MInst::CondBr { .. } => Ok(()),
            _ => {
                let mut shared = None;
                inst.for_each_reg(|reg, _| shared = shared.or(self.place(reg).map(|_| reg)));
                shared.map_or(Ok(()), refused)
            }
        }
    }

    /// Whether its address was computed for a row.
    fn is_wanted_row(&self, operands: &[MOperand]) -> bool {
        matches!(operands, [_, MOperand::Use(base), ..] if self.vcode.rows.contains(base))
    }

    /// Whether it is a load or store of a lane's own register at a shared address.
    fn is_row(&self, opcode: Opcode, operands: &[MOperand]) -> bool {
        let flags = opcode.flags();
        if flags.contains(OpcodeFlags::ATOMIC)
            || !flags.intersects(OpcodeFlags::LOAD | OpcodeFlags::STORE)
        {
            return false;
        }
        let [value, MOperand::Use(base), ..] = operands else { return false };
        let value = match *value {
            MOperand::Def(reg) | MOperand::Use(reg) | MOperand::Mod { new: reg, .. } => reg,
            MOperand::Imm(_) | MOperand::StackSlots => return false,
        };
        self.place(*base).is_some() && self.place(value).is_none()
    }
}
