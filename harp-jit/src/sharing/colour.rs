//! Shared registers as colours: each web of registers gets one for life, or none.

use harp_isa::{ArchId, Gpr, Pred, RegClass};
use hashbrown::{HashMap, HashSet};

use super::entry::Arrivals;
use super::liveness::Live;
use crate::vcode::{MInst, Reg, SharedReg, VCode};

/// Larger numbers cannot be told to the allocator.
const MAX_NUMBER: u8 = 62;

/// Uses in a loop count this many times as much as those around it.
const LOOP_WEIGHT: u64 = 10;

/// The loops deeper than this count no more.
const MAX_DEPTH: u32 = 6;

/// The shared registers of a machine.
#[derive(Debug)]
pub(super) struct Palette {
    gprs: Vec<Gpr>,
    preds: Vec<Pred>,
}

impl Palette {
    /// None if the machine has no shared registers.
    pub(super) fn new(arch: ArchId) -> Option<Palette> {
        let nameable = |number: &u8| *number <= MAX_NUMBER;
        let gprs = (0..arch.shared_gprs()).filter_map(|number| arch.shared_gpr(number));
        let gprs: Vec<Gpr> = gprs.filter(|gpr| nameable(&gpr.index())).collect();
        let preds = (0..arch.shared_preds()).filter_map(|number| arch.shared_pred(number));
        let preds = preds.filter(|pred| nameable(&pred.index())).collect();
        (!gprs.is_empty()).then_some(Palette { gprs, preds })
    }

    /// The register that is kept free for what is shared between two instructions only, if need be.
    pub(super) fn spare(&self) -> Option<SharedReg> {
        self.gprs.last().copied().map(SharedReg::Gpr)
    }

    /// Whether there are any of the class.
    pub(super) fn has(&self, class: RegClass) -> bool {
        self.count(class) > 0
    }

    fn count(&self, class: RegClass) -> usize {
        match class {
            RegClass::Gpr => self.gprs.len(),
            RegClass::Pred => self.preds.len(),
        }
    }

    fn get(&self, class: RegClass, colour: usize) -> SharedReg {
        match class {
            RegClass::Gpr => SharedReg::Gpr(self.gprs[colour]),
            RegClass::Pred => SharedReg::Pred(self.preds[colour]),
        }
    }
}

/// What is wanted of the places.
pub(super) struct Wishes<'a> {
    pub(super) arrivals: &'a Arrivals,
    /// Registers that come before all others.
    pub(super) first: &'a HashSet<Reg>,
    /// The place that is given to none.
    pub(super) kept_free: Option<SharedReg>,
}

/// Gives candidates a shared register; who gets none is to be a register of the lanes.
///
/// Parameters and their arguments form webs where they do not interfere, so that no copy is needed. Webs come in the order
/// of Briggs, Cooper and Torczon ("Improvements to graph coloring register allocation", 1994).
pub(super) fn colour(
    vcode: &VCode,
    live: Live,
    candidates: &[bool],
    palette: &Palette,
    wishes: &Wishes<'_>,
) -> HashMap<Reg, SharedReg> {
    let mut webs = Webs::new(vcode, live, candidates);
    webs.coalesce(vcode, candidates);
    let order = webs.order(palette, &weights(vcode), wishes.first);
    let wish = |web: usize| webs.members[web].iter().find_map(|&reg| wishes.arrivals.place(reg));
    let wished: Vec<Option<(SharedReg, bool)>> = (0..webs.members.len()).map(wish).collect();
    let mut places: HashMap<Reg, SharedReg> = HashMap::new();
    for web in order {
        let class = webs.members[web][0].class();
        let mut taken: HashSet<SharedReg> =
            webs.conflicts[web].iter().filter_map(|reg| places.get(reg)).copied().collect();
        taken.extend(wishes.kept_free);
        // What others wish for comes last.
        let others = webs.conflicts[web].iter().filter_map(|reg| wished[webs.of[reg.index()]]);
        let others: Vec<SharedReg> = others.map(|(place, _)| place).collect();
        let all = (0..palette.count(class)).map(|colour| palette.get(class, colour));
        let mut free: Vec<SharedReg> = all.filter(|place| !taken.contains(place)).collect();
        free.sort_by_key(|place| others.contains(place));
        let place = match wished[web] {
            Some((place, _)) if free.contains(&place) => Some(place),
            Some((_, true)) => None,
            _ => free.first().copied(),
        };
        if let Some(place) = place {
            places.extend(webs.members[web].iter().map(|&reg| (reg, place)));
        }
    }
    places
}

/// Registers that get the same place.
struct Webs {
    /// The web of each register.
    of: Vec<usize>,
    /// Each web's registers; none if it was added to another one.
    members: Vec<Vec<Reg>>,
    /// The registers that each web interferes with.
    conflicts: Vec<HashSet<Reg>>,
    /// Webs that cannot be shared.
    excluded: Vec<bool>,
}

impl Webs {
    /// One web for each candidate.
    fn new(vcode: &VCode, live: Live, candidates: &[bool]) -> Webs {
        let Live { conflicts, over_calls } = live;
        let mut webs = Webs {
            of: (0..vcode.num_regs).collect(),
            members: vec![Vec::new(); vcode.num_regs],
            conflicts,
            excluded: vec![false; vcode.num_regs],
        };
        let mut add = |reg: Reg| {
            if candidates[reg.index()] {
                webs.members[reg.index()] = vec![reg];
                webs.excluded[reg.index()] = over_calls.contains(&reg);
            }
        };
        for block in &vcode.blocks {
            block.params.iter().copied().for_each(&mut add);
        }
        for inst in &vcode.insts {
            inst.for_each_reg(|reg, access| {
                if access.is_def() {
                    add(reg);
                }
            });
        }
        webs
    }

    fn is_open(&self, web: usize) -> bool {
        !self.members[web].is_empty() && !self.excluded[web]
    }

    /// Unites parameters with their arguments where they do not interfere.
    fn coalesce(&mut self, vcode: &VCode, candidates: &[bool]) {
        for block in &vcode.blocks {
            let MInst::Jump { target, args } = &vcode.insts[block.insts.end - 1] else { continue };
            for (param, arg) in vcode.blocks[target.index()].params.iter().zip(args) {
                let [one, other] = [param, arg].map(|reg| self.of[reg.index()]);
                let both = candidates[param.index()] && candidates[arg.index()];
                if both && one != other && self.is_open(one) && self.is_open(other) {
                    let meets = self.conflicts[one].iter().any(|reg| self.of[reg.index()] == other);
                    if !meets {
                        self.unite(one, other);
                    }
                }
            }
        }
    }

    /// The order in which webs get their places. Those that interfere with fewer others than there are places come last, as
    /// there is a place for them in any case; once they are taken away, others are such. Where none is, the one that is
    /// worth least is taken away, and may get no place.
    fn order(&self, palette: &Palette, weights: &[u64], first: &HashSet<Reg>) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.members.len()).filter(|&web| self.is_open(web)).collect();
        let mut is_left = vec![false; self.members.len()];
        left.iter().for_each(|&web| is_left[web] = true);
        let others: Vec<HashSet<usize>> = (0..self.members.len())
            .map(|web| {
                let others = self.conflicts[web].iter().map(|reg| self.of[reg.index()]);
                others.filter(|&other| is_left[web] && is_left[other]).collect()
            })
            .collect();
        let mut degrees: Vec<usize> = others.iter().map(HashSet::len).collect();
        let worth = |web: usize| -> u64 {
            let members = &self.members[web];
            let comes_first = members.iter().any(|reg| first.contains(reg));
            let sum = members.iter().map(|reg| weights[reg.index()]).sum();
            if comes_first { u64::MAX } else { sum }
        };
        let worths: Vec<u64> = (0..self.members.len()).map(worth).collect();
        let is_easy = |web: usize, degrees: &[usize]| {
            degrees[web] < palette.count(self.members[web][0].class())
        };
        let mut easy: Vec<usize> =
            left.iter().copied().filter(|&web| is_easy(web, &degrees)).collect();
        let mut order = Vec::new();
        loop {
            let web = easy.pop().or_else(|| {
                left.retain(|&web| is_left[web]);
                let share = |web: &usize| worths[*web] / (1 + degrees[*web] as u64);
                left.iter().copied().min_by_key(share)
            });
            let Some(web) = web else { break };
            if !std::mem::replace(&mut is_left[web], false) {
                continue;
            }
            order.push(web);
            for &other in &others[web] {
                let was_easy = is_easy(other, &degrees);
                degrees[other] -= 1;
                if is_left[other] && !was_easy && is_easy(other, &degrees) {
                    easy.push(other);
                }
            }
        }
        order.reverse();
        order
    }

    fn unite(&mut self, into: usize, from: usize) {
        let members = std::mem::take(&mut self.members[from]);
        members.iter().for_each(|reg| self.of[reg.index()] = into);
        self.members[into].extend(members);
        let conflicts = std::mem::take(&mut self.conflicts[from]);
        self.conflicts[into].extend(conflicts);
    }
}

/// How much each register is used: its mentions, those in loops more.
fn weights(vcode: &VCode) -> Vec<u64> {
    let mut weights = vec![0_u64; vcode.num_regs];
    for ((_, block), depth) in vcode.blocks().zip(depths(vcode)) {
        let weight = LOOP_WEIGHT.pow(depth.min(MAX_DEPTH));
        for inst in &vcode.insts[block.insts.clone()] {
            inst.for_each_reg(|reg, _| weights[reg.index()] += weight);
        }
    }
    weights
}

/// In how many loops each block is.
pub(super) fn depths(vcode: &VCode) -> Vec<u32> {
    // How many loops begin at a block, less those that end before it. A loop's blocks lie between its header and its latch.
    let mut begin = vec![0_i32; vcode.blocks.len() + 1];
    for (latch, data) in vcode.blocks() {
        if let Some(header) = data.succs.iter().filter(|header| **header <= latch).min() {
            begin[header.index()] += 1;
            begin[latch.index() + 1] -= 1;
        }
    }
    let mut depth = 0;
    let blocks = begin[..vcode.blocks.len()].iter();
    blocks
        .map(|change| {
            depth += change;
            depth.unsigned_abs()
        })
        .collect()
}
