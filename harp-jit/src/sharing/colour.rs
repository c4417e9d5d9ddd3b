//! Shared registers as colours: each web of registers gets one for life, or none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fixedbitset::FixedBitSet;
use harp_isa::abi::SharedRoles;
use harp_isa::{ArchId, Gpr, Pred, RegClass};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::candidates::Candidates;
use super::entry::Arrivals;
use super::liveness::Live;
use super::mentions::Mentions;
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
    candidates: &Candidates,
    mentions: &Mentions,
    palette: &Palette,
    wishes: &Wishes<'_>,
) -> HashMap<Reg, SharedReg> {
    let regs = candidates.regs();
    let mut webs = Webs::new(live, regs);
    webs.coalesce(vcode, candidates);
    let order = webs.order(palette, &weights(vcode, regs.len(), mentions), wishes.first);
    let wish = |web: &Vec<usize>| web.iter().find_map(|&it| wishes.arrivals.place(regs[it]));
    let wished: Vec<Option<SharedReg>> = webs.members.iter().map(wish).collect();
    let arguments = wishes.arrivals.arguments();
    let arrives = |web: usize| webs.members[web].iter().any(|&it| arguments == Some(regs[it]));
    let mut places: Vec<Option<SharedReg>> = vec![None; regs.len()];
    for web in order {
        let mut taken = Few::from_iter(wishes.kept_free);
        let mut others = Few::new();
        for &it in &webs.conflicts[web] {
            add(&mut taken, places[it]);
            add(&mut others, wished[webs.of[it]]);
        }
        let all = palette.places(webs.class(web), webs.over_calls[web]);
        let free: Few = all.filter(|place| !taken.contains(place)).collect();
        let wished = wished[web].filter(|place| free.contains(place));
        // What others wish for comes last.
        let first = free.iter().find(|place| !others.contains(place)).or(free.first()).copied();
        // In another place than where it arrives it costs a copy. What is kept over calls would have to be saved instead.
        let stays = arrives(web) && !webs.over_calls[web];
        let place = wished.or(first.filter(|_| !stays));
        webs.members[web].iter().for_each(|&it| places[it] = place);
    }
    regs.iter().zip(places).filter_map(|(&reg, place)| Some((reg, place?))).collect()
}

/// Some shared registers, of which a machine has few.
type Few = SmallVec<[SharedReg; 16]>;

fn add(places: &mut Few, place: Option<SharedReg>) {
    if let Some(place) = place.filter(|place| !places.contains(place)) {
        places.push(place);
    }
}

/// Candidates that get the same place. All are given by their numbers.
struct Webs<'a> {
    regs: &'a [Reg],
    /// The web of each candidate.
    of: Vec<usize>,
    /// Each web's candidates; none if it was added to another one.
    members: Vec<Vec<usize>>,
    /// The candidates that each web interferes with.
    conflicts: Vec<Vec<usize>>,
    /// Webs that are alive during a call.
    over_calls: FixedBitSet,
}

impl Webs<'_> {
    /// One web for each candidate.
    fn new(live: Live, regs: &[Reg]) -> Webs<'_> {
        let Live { conflicts, over_calls } = live;
        let members = (0..regs.len()).map(|it| vec![it]).collect();
        Webs { regs, of: (0..regs.len()).collect(), members, conflicts, over_calls }
    }

    fn class(&self, web: usize) -> RegClass {
        self.regs[web].class()
    }

    /// Unites parameters with their arguments where they do not interfere.
    fn coalesce(&mut self, vcode: &VCode, candidates: &Candidates) {
        for block in &vcode.blocks {
            let MInst::Jump { target, args } = &vcode.insts[block.insts.end - 1] else { continue };
            for (&param, &arg) in vcode.blocks[target.index()].params.iter().zip(args) {
                let both = candidates.number(param).zip(candidates.number(arg));
                let Some((one, other)) = both.map(|(one, other)| (self.of[one], self.of[other]))
                else {
                    continue;
                };
                // A web that is alive during a call has fewer places than others.
                let alike = self.over_calls[one] == self.over_calls[other];
                let mut meeting = self.conflicts[one].iter().map(|&it| self.of[it]);
                if alike && one != other && !meeting.any(|met| met == other) {
                    self.unite(one, other);
                }
            }
        }
    }

    /// The order in which webs get their places. Those that interfere with fewer others than there are places come last, as
    /// there is a place for them in any case; once they are taken away, others are such. Where none is, the one that is
    /// worth least is taken away, and may get no place.
    fn order(&self, palette: &Palette, weights: &[u64], first: &HashSet<Reg>) -> Vec<usize> {
        let left: Vec<usize> =
            (0..self.members.len()).filter(|&web| !self.members[web].is_empty()).collect();
        let mut is_left = vec![false; self.members.len()];
        left.iter().for_each(|&web| is_left[web] = true);
        let others: Vec<Vec<usize>> = (0..self.members.len()).map(|web| self.others(web)).collect();
        let mut degrees: Vec<usize> = others.iter().map(Vec::len).collect();
        let worth = |web: usize| -> u64 {
            let members = &self.members[web];
            let comes_first = members.iter().any(|&it| first.contains(&self.regs[it]));
            let sum = members.iter().map(|&it| weights[it]).sum();
            if comes_first { u64::MAX } else { sum }
        };
        let worths: Vec<u64> = (0..self.members.len()).map(worth).collect();
        let share = |web: usize, degrees: &[usize]| worths[web] / (1 + degrees[web] as u64);
        // Shares grow while others are taken away, so that those in the heap may be too small, but never too large.
        let mut shares: BinaryHeap<Reverse<(u64, usize)>> =
            left.iter().map(|&web| Reverse((share(web, &degrees), web))).collect();
        let counts = [RegClass::Gpr, RegClass::Pred]
            .map(|class| [false, true].map(|over_call| palette.places(class, over_call).count()));
        let is_easy = |web: usize, degrees: &[usize]| {
            let of_class = counts[usize::from(self.class(web) == RegClass::Pred)];
            degrees[web] < of_class[usize::from(self.over_calls[web])]
        };
        let mut easy: Vec<usize> =
            left.iter().copied().filter(|&web| is_easy(web, &degrees)).collect();
        let mut order = Vec::new();
        loop {
            let web = easy.pop().or_else(|| {
                while let Some(Reverse((known, web))) = shares.pop() {
                    let now = share(web, &degrees);
                    if is_left[web] && now == known {
                        return Some(web);
                    }
                    if is_left[web] {
                        shares.push(Reverse((now, web)));
                    }
                }
                None
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

    /// The webs that a web interferes with.
    fn others(&self, web: usize) -> Vec<usize> {
        let mut others: Vec<usize> = self.conflicts[web].iter().map(|&it| self.of[it]).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    fn unite(&mut self, into: usize, from: usize) {
        let members = std::mem::take(&mut self.members[from]);
        members.iter().for_each(|&it| self.of[it] = into);
        self.members[into].extend(members);
        let conflicts = std::mem::take(&mut self.conflicts[from]);
        self.conflicts[into].extend(conflicts);
    }
}

/// How much each candidate is used: its mentions, those in loops more.
fn weights(vcode: &VCode, count: usize, mentions: &Mentions) -> Vec<u64> {
    let mut weights = vec![0_u64; count];
    for (block, depth) in depths(vcode).into_iter().enumerate() {
        let weight = LOOP_WEIGHT.pow(depth.min(MAX_DEPTH));
        let used = mentions.of(block).iter().filter_map(|mention| mention.candidate());
        used.for_each(|candidate| weights[candidate] += weight);
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
