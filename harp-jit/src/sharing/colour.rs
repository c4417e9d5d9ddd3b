//! Shared registers as colours: each web of registers gets one for life, or none.

use harp_isa::abi::SharedRoles;
use harp_isa::{ArchId, Gpr, Pred, RegClass};
use hashbrown::{HashMap, HashSet};

use super::entry::Arrivals;
use super::liveness::Live;
use crate::abi::EntryKind;
use crate::vcode::{MInst, Reg, SharedReg, VCode};

/// Larger numbers cannot be told to the allocator.
const MAX_NUMBER: u8 = 62;

/// Uses in a loop count this many times as much as those around it.
const LOOP_WEIGHT: u64 = 10;

/// The loops deeper than this count no more.
const MAX_DEPTH: u32 = 6;

/// The shared registers that code may use.
#[derive(Debug)]
pub(super) struct Palette {
    gprs: Vec<Gpr>,
    preds: Vec<Pred>,
    roles: SharedRoles,
}

impl Palette {
    /// None if the machine has no shared registers.
    pub(super) fn new(arch: ArchId, entry: EntryKind) -> Option<Palette> {
        let roles = SharedRoles::new(arch);
        let is_kernel = entry == EntryKind::Kernel;
        let nameable = |number: u8| number <= MAX_NUMBER;
        let gprs = (0..arch.shared_gprs()).filter_map(|number| arch.shared_gpr(number));
        let gprs = gprs.filter(|&gpr| nameable(gpr.index()));
        let gprs: Vec<Gpr> = gprs.filter(|&gpr| is_kernel || !roles.is_of_kernel(gpr)).collect();
        let preds = (0..arch.shared_preds()).filter_map(|number| arch.shared_pred(number));
        let preds = preds.filter(|&pred| nameable(pred.index()));
        let preds = preds.filter(|&pred| is_kernel || !roles.is_pred_of_kernel(pred)).collect();
        (!gprs.is_empty()).then_some(Palette { gprs, preds, roles })
    }

    /// The register that is kept free for what is shared between two instructions only, if need be.
    pub(super) fn spare(&self) -> Option<SharedReg> {
        self.gprs.last().copied().map(SharedReg::Gpr)
    }

    /// Whether there are any of the class.
    pub(super) fn has(&self, class: RegClass) -> bool {
        self.places(class, false).next().is_some()
    }

    /// The places of a class, lower numbers first; of those that are alive during a call, what calls do not change.
    fn places(&self, class: RegClass, is_over_call: bool) -> impl Iterator<Item = SharedReg> + '_ {
        let (gprs, preds): (&[Gpr], &[Pred]) = match class {
            RegClass::Gpr => (&self.gprs, &[]),
            RegClass::Pred => (&[], &self.preds),
        };
        let gprs = gprs.iter().filter(move |gpr| !is_over_call || self.roles.is_of_kernel(**gpr));
        let preds =
            preds.iter().filter(move |pred| !is_over_call || self.roles.is_pred_of_kernel(**pred));
        gprs.copied().map(SharedReg::Gpr).chain(preds.copied().map(SharedReg::Pred))
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
    let wished: Vec<Option<SharedReg>> = (0..webs.members.len()).map(wish).collect();
    let arguments = wishes.arrivals.arguments();
    let arrives = |web: usize| webs.members[web].iter().any(|&reg| arguments == Some(reg));
    let mut places: HashMap<Reg, SharedReg> = HashMap::new();
    for web in order {
        let class = webs.members[web][0].class();
        let mut taken: HashSet<SharedReg> =
            webs.conflicts[web].iter().filter_map(|reg| places.get(reg)).copied().collect();
        taken.extend(wishes.kept_free);
        // What others wish for comes last.
        let others = webs.conflicts[web].iter().filter_map(|reg| wished[webs.of[reg.index()]]);
        let others: Vec<SharedReg> = others.collect();
        let all = palette.places(class, webs.over_calls[web]);
        let mut free: Vec<SharedReg> = all.filter(|place| !taken.contains(place)).collect();
        free.sort_by_key(|place| others.contains(place));
        let wished = wished[web].filter(|place| free.contains(place));
        // In another place than where it arrives it costs a copy. What is kept over calls would have to be saved instead.
        let stays = arrives(web) && !webs.over_calls[web];
        let other = free.first().copied().filter(|_| !stays);
        let place = wished.or(other);
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
    /// Webs that are alive during a call.
    over_calls: Vec<bool>,
}

impl Webs {
    /// One web for each candidate.
    fn new(vcode: &VCode, live: Live, candidates: &[bool]) -> Webs {
        let Live { conflicts, over_calls } = live;
        let mut webs = Webs {
            of: (0..vcode.num_regs).collect(),
            members: vec![Vec::new(); vcode.num_regs],
            conflicts,
            over_calls: vec![false; vcode.num_regs],
        };
        let mut add = |reg: Reg| {
            if candidates[reg.index()] {
                webs.members[reg.index()] = vec![reg];
                webs.over_calls[reg.index()] = over_calls.contains(&reg);
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
        !self.members[web].is_empty()
    }

    /// Unites parameters with their arguments where they do not interfere.
    fn coalesce(&mut self, vcode: &VCode, candidates: &[bool]) {
        for block in &vcode.blocks {
            let MInst::Jump { target, args } = &vcode.insts[block.insts.end - 1] else { continue };
            for (param, arg) in vcode.blocks[target.index()].params.iter().zip(args) {
                let [one, other] = [param, arg].map(|reg| self.of[reg.index()]);
                let both = candidates[param.index()] && candidates[arg.index()];
                // A web that is alive during a call has fewer places than others.
                let alike = self.over_calls[one] == self.over_calls[other];
                if both && alike && one != other && self.is_open(one) && self.is_open(other) {
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
        let mut left: Vec<usize> =
            (0..self.members.len()).filter(|&web| self.is_open(web)).collect();
        let mut is_left = vec![false; self.members.len()];
        left.iter().for_each(|&web| is_left[web] = true);
        // Ascending: code must not depend on the order in which a set has its elements.
        let others: Vec<Vec<usize>> = (0..self.members.len())
            .map(|web| {
                let others = self.conflicts[web].iter().map(|reg| self.of[reg.index()]);
                let mut others: Vec<usize> =
                    others.filter(|&other| is_left[web] && is_left[other]).collect();
                others.sort_unstable();
                others.dedup();
                others
            })
            .collect();
        let mut degrees: Vec<usize> = others.iter().map(Vec::len).collect();
        let worth = |web: usize| -> u64 {
            let members = &self.members[web];
            let comes_first = members.iter().any(|reg| first.contains(reg));
            let sum = members.iter().map(|reg| weights[reg.index()]).sum();
            if comes_first { u64::MAX } else { sum }
        };
        let worths: Vec<u64> = (0..self.members.len()).map(worth).collect();
        let is_easy = |web: usize, degrees: &[usize]| {
            let class = self.members[web][0].class();
            degrees[web] < palette.places(class, self.over_calls[web]).count()
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
        self.over_calls[into] |= self.over_calls[from];
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
