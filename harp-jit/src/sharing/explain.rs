//! Says of each value where it is, and why it is not shared, or has to be.
//!
//! The rules are applied once more to the finished code. What they drop first is dropped because of something that holds
//! with fewer candidates, too, so that a reason is found for each register.

use std::fmt;

use harp_isa::ArchId;

use super::candidates::{Candidates, Refused};
use super::colour::Palette;
use super::entry::Arrivals;
use super::mentions::Mentions;
use super::nesting::Nesting;
use super::rewrite::Loads;
use super::uniform::Uniform;
use super::{Setting, candidates, liveness};
use crate::source::{SourceMap, SourcePlace};
use crate::vcode::{BlockId, MInst, Reg, SharedReg, VCode};

/// A value of a function on a machine whose lanes share registers, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueReport {
    /// The value's name, as in the code before registers are allocated.
    pub name: String,
    /// The block that defines it, of that code.
    pub block: String,
    /// The instruction that defines it; none for a parameter of the block.
    pub instruction: Option<String>,
    /// The source place of the instruction.
    pub place: Option<SourcePlace>,
    /// The shared register that it is in; none if each lane has its own.
    pub shared: Option<String>,
    /// Why it is not shared, if it is not. Of a shared one, why lanes must have the same in it, if they must: a branch depends
    /// on it.
    pub reason: Option<String>,
}

impl fmt::Display for ValueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.shared.as_deref().unwrap_or("own");
        let inst = self.instruction.as_deref().unwrap_or("parameter");
        write!(f, "    {:6} {:6} {:5} {inst}", self.name, place, self.block)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        writeln!(f)
    }
}

/// The reason for values that are loaded once because lanes rely on it.
pub(super) const MUST_AGREE: &str = "it is loaded once for all lanes, as a branch depends on it";

/// What is explained.
struct Code<'a> {
    vcode: &'a VCode,
    nesting: &'a Nesting,
    uniform: Uniform,
    /// What the rules leave.
    chosen: Candidates,
    live: liveness::Live,
    /// For each register that the rules drop the first instruction that does not take it from a shared one, and why.
    refused: Vec<Option<(usize, Refused)>>,
}

/// Explains the places of all values of a function that went through [`share`](super::share); none if its machine has no shared
/// registers.
pub(crate) fn explain(vcode: &VCode, setting: Setting, sources: &SourceMap) -> Vec<ValueReport> {
    let Setting { arch, entry, .. } = setting;
    let Some(palette) = Palette::new(arch, entry) else { return Vec::new() };
    let nesting = Nesting::compute(vcode);
    let code = nesting.as_ref().map(|nesting| Code::new(vcode, nesting, setting, &palette));
    let mut values = Vec::new();
    for (id, block) in vcode.blocks() {
        for &param in &block.params {
            values.push(report(vcode, arch, code.as_ref(), (param, id, None), sources));
        }
        for index in block.insts.clone() {
            vcode.insts[index].for_each_reg(|reg, access| {
                if access.is_def() {
                    let value = (reg, id, Some(index));
                    values.push(report(vcode, arch, code.as_ref(), value, sources));
                }
            });
        }
    }
    values
}

fn report(
    vcode: &VCode,
    arch: ArchId,
    code: Option<&Code<'_>>,
    (reg, block, inst): (Reg, BlockId, Option<usize>),
    sources: &SourceMap,
) -> ValueReport {
    let shared = vcode.shared.get(&reg).map(|place| match *place {
        SharedReg::Gpr(gpr) => arch.gpr_name(gpr).to_string(),
        SharedReg::Pred(pred) => arch.pred_name(pred).to_string(),
    });
    let reason = match code {
        _ if shared.is_some() => vcode.once.contains(&reg).then(|| MUST_AGREE.to_owned()),
        None => Some("the open splits of a block depend on the way to it".to_owned()),
        Some(code) => Some(code.reason(reg, block, inst.map(|index| &vcode.insts[index]))),
    };
    ValueReport {
        name: reg.to_string(),
        block: block.to_string(),
        instruction: inst.map(|index| match &vcode.insts[index] {
            // It would name all arguments.
            MInst::Args { .. } => "argument".to_owned(),
            inst => inst.to_string(),
        }),
        place: inst.and_then(|index| sources.place(vcode.srclocs[index])).cloned(),
        shared,
        reason,
    }
}

impl<'a> Code<'a> {
    /// Applies the rules once more.
    fn new(
        vcode: &'a VCode,
        nesting: &'a Nesting,
        setting: Setting,
        palette: &Palette,
    ) -> Code<'a> {
        let uniform = Uniform::compute(vcode, nesting, setting);
        let arrivals = Arrivals::new(vcode, setting.arch, setting.entry, None);
        let loads = Loads::default();
        let chosen = candidates::choose(vcode, nesting, &uniform, palette, &arrivals, &loads);
        let live = liveness::Live::compute(vcode, nesting, &chosen, &Mentions::new(vcode, &chosen));
        let mut refused = vec![None; vcode.num_regs];
        for (block, data) in vcode.blocks() {
            let place = candidates::Place { vcode, nesting, uniform: &uniform, block };
            let is_chosen = |reg| chosen.number(reg).is_some();
            for index in data.insts.clone() {
                let note = |reg: Reg, why| {
                    refused[reg.index()].get_or_insert((index, why));
                };
                place.refused(&vcode.insts[index], |reg| !is_chosen(reg), is_chosen, note);
            }
        }
        Code { vcode, nesting, uniform, chosen, live, refused }
    }

    /// Why the register is not shared, which `inst` defines, or the block whose parameter it is.
    fn reason(&self, reg: Reg, block: BlockId, inst: Option<&MInst>) -> String {
        if !self.uniform.is_uniform(reg) {
            return match inst {
                Some(inst) => self.differs(inst, block),
                None => self.param_differs(reg, block),
            };
        }
        if let Some(number) = self.chosen.number(reg) {
            return match self.live.over_calls.contains(number) {
                true => "it is needed after a call, and no register for that was left".to_owned(),
                false => "no shared register was left".to_owned(),
            };
        }
        if inst.is_some_and(|inst| candidates::shared_result(inst).is_none()) {
            return "its instruction has no shared result".to_owned();
        }
        self.refused(reg).unwrap_or_else(|| "there is no shared register of its kind".to_owned())
    }

    /// Why lanes may have different results of the instruction.
    fn differs(&self, inst: &MInst, block: BlockId) -> String {
        if !self.nesting.is_known(block) {
            return "no return is reachable from there".to_owned();
        }
        let mut operands = Vec::new();
        inst.for_each_reg(|reg, access| {
            if !access.is_def() {
                operands.push(reg);
            }
        });
        match inst {
            MInst::Op { guard: Some(guard), .. } => {
                return format!("it is written only where {guard} holds");
            }
            MInst::Op { operands, .. } if super::uniform::is_row(self.vcode, operands) => {
                return "each lane has its element of a row".to_owned();
            }
            _ => {}
        }
        let differs = |reg: &&Reg| !self.uniform.is_uniform_in(**reg, block, self.nesting);
        match operands.iter().find(differs) {
            Some(reg) if self.uniform.is_uniform(*reg) => {
                format!("{reg} is from before lanes left a split")
            }
            Some(reg) => format!("lanes have different {reg}"),
            None => "its instruction gives each lane its own".to_owned(),
        }
    }

    /// Why lanes may have different values of a block's parameter.
    fn param_differs(&self, reg: Reg, block: BlockId) -> String {
        let data = &self.vcode.blocks[block.index()];
        if !self.nesting.is_known(block) {
            return "no return is reachable from there".to_owned();
        }
        if matches!(self.vcode.insts[data.insts.start], MInst::Join) {
            return "lanes come from different sides of a split".to_owned();
        }
        let index = data.params.iter().position(|&param| param == reg);
        let passed = data.preds.iter().filter_map(|from| {
            let last = self.vcode.blocks[from.index()].insts.end - 1;
            match &self.vcode.insts[last] {
                MInst::Jump { args, .. } => Some((*from, args[index?])),
                _ => None,
            }
        });
        let mut differing = passed
            .filter(|&(from, arg)| !self.uniform.is_uniform_in(arg, from, self.nesting))
            .map(|(_, arg)| format!("lanes have different {arg}"));
        differing.next().unwrap_or_else(|| "lanes may come with different values".to_owned())
    }

    /// The use that does not take it from a shared register.
    fn refused(&self, reg: Reg) -> Option<String> {
        let (index, why) = self.refused[reg.index()]?;
        let inst = &self.vcode.insts[index];
        Some(match why {
            Refused::LeftSplit => format!("`{inst}` uses it where lanes have left a split"),
            Refused::Operand => format!("`{inst}` takes it from the lanes' own registers"),
        })
    }
}
