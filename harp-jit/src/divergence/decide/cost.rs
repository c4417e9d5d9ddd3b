//! The cost of each technique for a region: expected instructions of a warp, per execution of the region's
//! head.
//!
//! Lengths are those of code: of the machine instructions selected for each block, and, for predicated
//! regions, of a trial conversion. So guards, merges and what they save are counted as they will be, except
//! for the allocator's moves. How often a warp takes which path is estimated.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};
use harp_isa::{ArchId, Layout, Opcode as Machine};

use super::def_use::{comparison, depends_on_lane};
use super::regions::Candidate;
use super::report::OddsReport;
use super::{Facts, Prepared};
use crate::analysis::{Flow, Uniformity, edges};
use crate::constant;
use crate::if_convert::{self, Trial};
use crate::intrinsic::Intrinsic;
use crate::isel::BlockIds;
use crate::vcode::{MInst, VCode};

/// How warps decide at a branch, as shares of its executions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Odds {
    /// All lanes find the condition true.
    pub(crate) all_true: f64,
    /// All lanes find it false.
    pub(crate) all_false: f64,
    /// They disagree.
    pub(crate) divergent: f64,
}

/// What a region costs under each technique.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Costs {
    /// As branches, with `split` and `join` where lanes may disagree; regions inside use the cheaper
    /// technique.
    pub(crate) branches: f64,
    /// The whole region predicated.
    pub(crate) predicated: f64,
}

/// A region and its costs.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub(super) candidate: Candidate,
    pub(super) costs: Costs,
}

/// The inputs of an estimate.
pub(super) struct Model<'a> {
    facts: Facts<'a>,
    /// The number of instructions of each block, without those that end it.
    lengths: SecondaryMap<Block, f64>,
    /// The jumps at the end of each block for edges that it does not fall through.
    jumps: SecondaryMap<Block, Jumps>,
}

/// Jumps that are executed for each edge out of a block: 0 where the code falls through.
#[derive(Clone, Copy, Debug, Default)]
struct Jumps {
    when_true: f64,
    when_false: f64,
}

/// The cost of a branch in a predicated region, in predicates and moves, if no trial conversion was made.
const PREDICATED_BRANCH: f64 = 2.0;

/// The cost of a guard in front of a part of a linear region: the variable that steers lanes, a split, the
/// branch and the joins.
const LINEAR_GUARD: f64 = 5.0;

impl<'a> Model<'a> {
    /// `vcode` is code for the function without splits; `blocks` maps its blocks.
    pub(super) fn new(facts: Facts<'a>, vcode: &VCode, blocks: &BlockIds) -> Model<'a> {
        let count = facts.prepared.func.dfg.num_blocks();
        let mut lengths = SecondaryMap::with_capacity(count);
        let mut jumps = SecondaryMap::with_capacity(count);
        let layout = Layout::new(facts.arch);
        for block in facts.prepared.facts.flow().blocks() {
            let id = blocks.of(block);
            let data = &vcode.blocks[id.index()];
            let code = &vcode.insts[data.insts.clone()];
            lengths[block] = code.iter().map(|inst| length(inst, layout)).sum();
            let falls = |from: crate::vcode::BlockId, to: crate::vcode::BlockId| {
                f64::from(u8::from(to.index() != from.index() + 1))
            };
            jumps[block] = match code.last() {
                Some(MInst::Jump { target, .. }) => {
                    Jumps { when_true: falls(id, *target), when_false: 0.0 }
                }
                // The conditional jump is executed on both edges.
                Some(MInst::CondBr { not_taken, .. }) => {
                    Jumps { when_true: 1.0, when_false: 1.0 + falls(id, *not_taken) }
                }
                _ => Jumps { when_true: 1.0, when_false: 0.0 },
            };
        }
        Model { facts, lengths, jumps }
    }

    fn func(&self) -> &'a Function {
        &self.facts.prepared.func
    }

    fn uniformity(&self) -> &'a Uniformity {
        let Prepared { facts, .. } = self.facts.prepared;
        facts
    }

    fn flow(&self) -> &Flow {
        self.uniformity().flow()
    }

    /// How warps decide at the end of `block`.
    pub(super) fn odds(&self, block: Block) -> Odds {
        let divergent = self.uniformity().branch_divergence(block).is_some();
        let inst = self.func().layout.last_inst(block);
        let counts = inst
            .and_then(|inst| self.facts.branches.id(inst))
            .and_then(|id| self.facts.profile?.branch(id))
            .filter(|counts| counts.executed > 0);
        if let Some(counts) = counts {
            let part = |count: u64| count as f64 / counts.executed as f64;
            return Odds {
                all_true: part(counts.unanimous_true),
                all_false: part(counts.unanimous_false),
                divergent: part(counts.divergent),
            };
        }
        match inst.map(|inst| self.func().dfg.insts[inst]) {
            Some(InstructionData::Brif { arg, blocks, .. }) => {
                let sides = blocks.map(|call| call.block(&self.func().dfg.value_lists));
                match expected(self.func(), sides) {
                    Some(likely) => hinted(self.facts.arch, likely, divergent),
                    None => guess(self.func(), self.facts.arch, arg, divergent),
                }
            }
            _ => Odds { all_true: 1.0, all_false: 0.0, divergent: 0.0 },
        }
    }

    /// The cost of ending `block` once.
    fn ending(&self, block: Block) -> f64 {
        let Jumps { when_true, when_false } = self.jumps[block];
        let Odds { all_true, all_false, divergent } = self.odds(block);
        if self.uniformity().branch_divergence(block).is_none() {
            return all_true * when_true + all_false * when_false;
        }
        // A split, a branch, and a join for each side that runs; after the first join the branch again.
        let both = when_true + when_false;
        2.0 + divergent + all_true * when_true + all_false * when_false + divergent * both
    }

    /// The expected executions of each block of a region, per execution of the head.
    fn weights(&self, region: &Candidate) -> SecondaryMap<Block, f64> {
        let mut weights = SecondaryMap::new();
        weights[region.head] = 1.0;
        let blocks = std::iter::once(region.head).chain(region.blocks.iter().copied());
        for block in blocks {
            if block != region.head {
                // If all lanes of a dominator reach the block, as many warps reach it as the dominator.
                let above = self.flow().immediate_dominator(block).unwrap_or(region.head);
                let whole: f64 = weights[above];
                let sum: f64 = weights[block];
                let meets = self.flow().levels().is_after(above, block);
                weights[block] = if meets { whole } else { sum.min(whole) };
            }
            let here: f64 = weights[block];
            let Some(inst) = self.func().layout.last_inst(block) else { continue };
            let dfg = &self.func().dfg;
            let targets = edges(dfg, inst).iter().map(|call| call.block(&dfg.value_lists));
            let odds = self.odds(block);
            let parts = [odds.all_true + odds.divergent, odds.all_false + odds.divergent];
            for (target, part) in targets.zip(parts).filter(|(target, _)| *target != region.head) {
                weights[target] += here * part;
            }
        }
        weights
    }

    /// Computes the cost of each region; each comes after those inside it.
    pub(super) fn price(
        &self,
        candidates: Vec<Candidate>,
        trial: &mut Trial<'_>,
        blocks: &BlockIds,
    ) -> Vec<Priced> {
        let mut priced: Vec<Priced> = Vec::new();
        // For each block, the outermost of the regions so far that contains it.
        let mut outermost: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        for candidate in candidates {
            let predicated = self.predicated_cost(&candidate, trial, blocks);
            let branches = self.branches_cost(&candidate, &priced, &outermost);
            for &block in &candidate.blocks {
                outermost[block] = Some(priced.len());
            }
            priced.push(Priced { candidate, costs: Costs { branches, predicated } });
        }
        priced
    }

    fn predicated_cost(
        &self,
        candidate: &Candidate,
        trial: &mut Trial<'_>,
        blocks: &BlockIds,
    ) -> f64 {
        let layout = Layout::new(self.facts.arch);
        let code = candidate.end.and_then(|end| {
            let (head, end) = (blocks.of(candidate.head), blocks.of(end));
            trial.convert(if_convert::Region { head, end })
        });
        if let Some(code) = code {
            return code.iter().map(|inst| length(inst, layout)).sum();
        }
        // The region has several ends until it is rewritten; afterwards lanes execute the assignments of all
        // exit edges.
        let is_branch = |block: &&Block| self.flow().successors(**block).count() > 1;
        let branches = 1 + candidate.blocks.iter().filter(is_branch).count();
        let blocks: f64 = candidate.blocks.iter().map(|&block| self.lengths[block]).sum();
        let all = std::iter::once(&candidate.head).chain(&candidate.blocks);
        let ways: f64 =
            all.map(|&block| self.ways_out(candidate, block).map(|_| 1.0).sum::<f64>()).sum();
        blocks + PREDICATED_BRANCH * branches as f64 + ways * self.round_values(candidate)
    }

    /// The number of values that each edge out of a region sets, if it goes to the end of a loop's iteration:
    /// whether the lane continues, by which exit it left if there are several, and the values that the loop
    /// carries. A predicated region executes them all as moves; with branches, a warp executes those of the
    /// edges that it takes.
    fn round_values(&self, region: &Candidate) -> f64 {
        let Prepared { facts, regions, .. } = self.facts.prepared;
        let levels = facts.flow().levels();
        let level = levels.level(regions.get(region.id).level);
        let Some(around) = level.around.filter(|_| region.end.is_none()) else { return 0.0 };
        let exits = usize::from(levels.exits(around).len() > 1);
        let header = levels.first_block(level.nodes[0]);
        (1 + exits + self.func().dfg.block_params(header).len()) as f64
    }

    /// The edges from `block` out of a region: how often each is taken, per execution of the block.
    fn ways_out(&self, region: &Candidate, block: Block) -> impl Iterator<Item = f64> {
        let dfg = &self.func().dfg;
        let branch = self.func().layout.last_inst(block);
        let calls = branch.map_or(&[] as &[_], |branch| edges(dfg, branch));
        let odds = self.odds(block);
        let parts = [odds.all_true + odds.divergent, odds.all_false + odds.divergent];
        let ways = calls.iter().map(|call| call.block(&dfg.value_lists)).zip(parts);
        ways.filter(|(target, _)| !region.blocks.contains(target)).map(|(_, part)| part)
    }

    fn branches_cost(
        &self,
        candidate: &Candidate,
        inner: &[Priced],
        outermost: &SecondaryMap<Block, Option<usize>>,
    ) -> f64 {
        let weights = self.weights(candidate);
        let mut children: Vec<usize> =
            candidate.blocks.iter().filter_map(|&block| outermost[block]).collect();
        children.sort_unstable();
        children.dedup();
        let mut heads = EntitySet::new();
        heads.extend(children.iter().map(|&child| inner[child].candidate.head));
        let own = candidate.blocks.iter().filter(|&&block| outermost[block].is_none());
        let values = self.round_values(candidate);
        // The cost of ending a block, and of setting values on the edges out of the region.
        let ending = |block: Block| {
            self.ending(block) + values * self.ways_out(candidate, block).sum::<f64>()
        };
        let blocks: f64 = own
            .map(|&block| {
                let ending = if heads.contains(block) { 0.0 } else { ending(block) };
                let guard = if candidate.nested { 0.0 } else { LINEAR_GUARD };
                weights[block] * (self.lengths[block] + ending) + guard
            })
            .sum();
        let regions = children.iter().map(|&child| {
            let Priced { candidate, costs } = &inner[child];
            weights[candidate.head] * costs.branches.min(costs.predicated)
        });
        ending(candidate.head) + blocks + regions.sum::<f64>()
    }
}

impl Odds {
    pub(super) fn report(self, counted: bool) -> OddsReport {
        let Odds { all_true, all_false, divergent } = self;
        OddsReport { all_true, all_false, divergent, counted }
    }
}

/// Estimates how warps decide at a branch without a profile.
///
/// Comparisons of positions with a bound are mostly true, and divergent in the last warp only; moved positions are
/// rarely negative, and in the first warp only. Positions of consecutive lanes are consecutive, so comparing them with
/// any other uniform value diverges in at most one warp of a group, too. Other conditions on lane numbers diverge almost always. Nothing is known of data:
/// lanes are assumed to be independent of each other half of the time, and equal the other half.
fn guess(func: &Function, arch: ArchId, condition: Value, divergent: bool) -> Odds {
    let is_true = chance(func, condition);
    let odds = |divergent: f64| Odds {
        all_true: (1.0 - divergent) * is_true,
        all_false: (1.0 - divergent) * (1.0 - is_true),
        divergent,
    };
    if !divergent || arch.lanes() == 1 {
        return odds(0.0);
    }
    if is_bound_check(func, condition) {
        return Odds { all_true: 0.9, all_false: 0.05, divergent: 0.05 };
    }
    if let Some(negative) = is_border_check(func, condition) {
        let [all_true, all_false] = if negative { [0.05, 0.9] } else { [0.9, 0.05] };
        return Odds { all_true, all_false, divergent: 0.05 };
    }
    if let Some(odds) = compared_position(func, condition) {
        return odds;
    }
    if depends_on_lane(func, condition) {
        return odds(0.9);
    }
    let lanes = i32::from(arch.lanes());
    let independent = 1.0 - is_true.powi(lanes) - (1.0 - is_true).powi(lanes);
    odds(0.5 * independent)
}

/// The probability that a lane takes the side of a branch that is marked as unlikely.
const UNLIKELY: f64 = 0.01;

/// Which side of a branch lanes are expected to take: not one that is marked as cold. Blocks that end in a trap
/// are always marked, whether the trap is likely or not.
fn expected(func: &Function, [on_true, on_false]: [Block; 2]) -> Option<bool> {
    let cold = |block: Block| {
        let last = func.layout.last_inst(block).map(|inst| func.dfg.insts[inst].opcode());
        func.layout.is_cold(block) && last != Some(Opcode::Trap)
    };
    match (cold(on_true), cold(on_false)) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// The odds of a branch that is likely true, or likely false, in each lane independently.
fn hinted(arch: ArchId, likely: bool, divergent: bool) -> Odds {
    let lanes = if divergent { i32::from(arch.lanes()) } else { 1 };
    let (all_likely, all_unlikely) = ((1.0 - UNLIKELY).powi(lanes), UNLIKELY.powi(lanes));
    let (all_true, all_false) =
        if likely { (all_likely, all_unlikely) } else { (all_unlikely, all_likely) };
    Odds { all_true, all_false, divergent: 1.0 - all_true - all_false }
}

/// The probability that a condition is true in a lane.
fn chance(func: &Function, condition: Value) -> f64 {
    let Some((_, inst)) = comparison(func, condition) else { return 0.5 };
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond: IntCC::Equal, .. }
        | InstructionData::FloatCompare { cond: FloatCC::Equal, .. } => 0.2,
        InstructionData::IntCompare { cond: IntCC::NotEqual, .. }
        | InstructionData::FloatCompare { cond: FloatCC::NotEqual, .. } => 0.8,
        _ => 0.5,
    }
}

/// The condition and the operands of a comparison of integers.
fn integer_comparison(func: &Function, condition: Value) -> Option<(IntCC, [Value; 2])> {
    let (_, inst) = comparison(func, condition)?;
    match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond, args, .. } => Some((cond, args)),
        _ => None,
    }
}

/// Whether a condition is that a work-item's position is below a bound that does not depend on it.
fn is_bound_check(func: &Function, condition: Value) -> bool {
    let Some((cond, [x, y])) = integer_comparison(func, condition) else { return false };
    let (position, bound) = match cond {
        IntCC::UnsignedLessThan | IntCC::SignedLessThan => (x, y),
        IntCC::UnsignedGreaterThan | IntCC::SignedGreaterThan => (y, x),
        _ => return false,
    };
    is_position(func, position) && !depends_on_lane(func, bound)
}

/// Whether a condition is that a work-item's position plus a uniform value is negative (`true`), or not (`false`).
fn is_border_check(func: &Function, condition: Value) -> Option<bool> {
    let (cond, [x, y]) = integer_comparison(func, condition)?;
    let negative = match (cond, constant::signed(&func.dfg, y)?) {
        (IntCC::SignedLessThan, 0) | (IntCC::SignedLessThanOrEqual, -1) => true,
        (IntCC::SignedGreaterThanOrEqual, 0) | (IntCC::SignedGreaterThan, -1) => false,
        _ => return None,
    };
    is_moved_position(func, x).then_some(negative)
}

/// The odds if a condition compares a work-item's position plus a uniform value with a uniform value.
fn compared_position(func: &Function, condition: Value) -> Option<Odds> {
    let (cond, [x, y]) = integer_comparison(func, condition)?;
    let compares =
        |position, bound| is_moved_position(func, position) && !depends_on_lane(func, bound);
    if !compares(x, y) && !compares(y, x) {
        return None;
    }
    let [all_true, all_false] = match cond {
        IntCC::Equal => [0.0, 0.9],
        IntCC::NotEqual => [0.9, 0.0],
        _ => [0.45, 0.45],
    };
    Some(Odds { all_true, all_false, divergent: 0.1 })
}

fn is_moved_position(func: &Function, value: Value) -> bool {
    let value = func.dfg.resolve_aliases(value);
    let Some(inst) = func.dfg.value_def(value).inst() else { return false };
    if let Some(intrinsic) = Intrinsic::of_call(func, inst) {
        return intrinsic.is_number_of_lane() && intrinsic != Intrinsic::LANE_ID;
    }
    match func.dfg.insts[inst] {
        InstructionData::Binary { opcode: Opcode::Iadd, args: [x, y] } => {
            is_moved_position(func, x) && !depends_on_lane(func, y)
                || is_moved_position(func, y) && !depends_on_lane(func, x)
        }
        InstructionData::Binary { opcode: Opcode::Isub, args: [x, y] } => {
            is_moved_position(func, x) && !depends_on_lane(func, y)
        }
        _ => false,
    }
}

fn is_position(func: &Function, value: Value) -> bool {
    let value = func.dfg.resolve_aliases(value);
    let inst: Option<Inst> = func.dfg.value_def(value).inst();
    let intrinsic = inst.and_then(|inst| Intrinsic::of_call(func, inst));
    intrinsic.is_some_and(|intrinsic| Intrinsic::GLOBAL_ID.contains(&intrinsic))
}

/// The approximate number of machine instructions of a VCode instruction. Block ends are counted elsewhere.
fn length(inst: &MInst, layout: Layout) -> f64 {
    match inst {
        MInst::Const { value, .. } if !layout.fits(Machine::Ldi, *value) => 3.0,
        MInst::LaneWord { .. } => 3.0,
        MInst::Address { .. } => 2.0,
        _ if inst.is_terminator() => 0.0,
        MInst::Args { .. } => 0.0,
        _ => 1.0,
    }
}
