//! Linear regions: their parts one after the other, each behind a guard.
//!
//! A part is a block, a loop or a nested region. Lanes that have run a part set a variable to the code of the
//! part that they go to next, and wait for the others; the guard in front of a part compares the variable.
//! Where at most two targets are open at any time, the codes are truth values, which need no comparison. Two
//! parts that are the only open targets share one guard as its two sides. A part that all lanes of the region
//! run has no guard, and the branch of the head, if there is one, is the guard of the part after it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{Block, InstBuilder, InstructionData};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::Frame;
use super::Writer;
use super::edges::Codes;
use crate::analysis::{LevelId, Node};
use crate::divergence::regions::RegionId;

/// A part of a linear region.
struct Part {
    head: usize,
    members: Range<usize>,
    region: Option<RegionId>,
    /// The next targets of its lanes: heads of parts, or the end of the region.
    targets: BTreeSet<usize>,
    /// Whether some lanes of the region may run it and others may not.
    partial: bool,
}

/// How one part, or two, are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// All lanes run it.
    All(usize),
    /// The lanes whose code names this part run it.
    Guarded(usize),
    /// Each lane runs this part or the one after it.
    Either(usize),
}

/// The order of the parts, and how they are entered.
struct Schedule {
    entries: Vec<Entry>,
    codes: BTreeMap<usize, i64>,
    /// Whether the codes are 0 and 1.
    truth: bool,
}

impl Writer<'_> {
    pub(super) fn linear(&mut self, id: RegionId) {
        let region = self.regions.get(id);
        let (level, end) = (region.level, region.end);
        let parts = self.parts_of(id);
        let direct = self.head_guards_next(level, &parts);
        let preferred = direct.and_then(|second| self.known_code(level, parts[0].head, second));
        let schedule = schedule(&parts, direct.is_some(), preferred);
        let ty = if schedule.truth { I8 } else { I32 };
        let variable = self.b.declare_var(ty);
        let of =
            schedule.codes.iter().map(|(&node, &code)| (node, code)).collect::<HashMap<_, _>>();
        let codes = Codes { variable, ty, of: Rc::new(of) };

        self.reset_locals(level, &parts);
        let mut next = self.b.create_block();
        if direct.is_some() && parts[0].partial_behind(self, level) {
            self.joins.insert((level, parts[0].head), next);
        }
        self.part(level, &parts[0], &codes, next, direct);
        let mut entries = schedule.entries.into_iter();
        if direct.is_some() {
            entries.next();
            self.part(level, &parts[1], &codes, next, None);
        }
        for entry in entries {
            let here = std::mem::replace(&mut next, self.b.create_block());
            self.start(here);
            match entry {
                Entry::All(part) => {
                    let block = self.node_entry(level, parts[part].head);
                    self.b.ins().jump(block, &[]);
                    self.part(level, &parts[part], &codes, next, None);
                }
                Entry::Guarded(part) => {
                    self.guard(level, &parts[part], &codes, next, next);
                    self.part(level, &parts[part], &codes, next, None);
                }
                Entry::Either(part) => {
                    let other = self.node_entry(level, parts[part + 1].head);
                    self.guard(level, &parts[part], &codes, other, next);
                    self.part(level, &parts[part], &codes, next, None);
                    self.part(level, &parts[part + 1], &codes, next, None);
                }
            }
        }
        self.start(next);
        self.jump_to_node(level, end);
    }

    /// Writes a part; its lanes continue in `next`.
    fn part(
        &mut self,
        level: LevelId,
        part: &Part,
        codes: &Codes,
        next: Block,
        direct: Option<usize>,
    ) {
        let members = part.members.clone();
        let frame = Frame::Part { members, codes: codes.clone(), next, direct };
        self.scope().frames.push(frame);
        match part.region {
            Some(region) => self.region(region),
            None => self.node(level, part.head),
        }
        self.scope().frames.pop();
    }

    /// Lets the lanes whose code names this part into it; the others go to `other`. All reconverge in `join`.
    fn guard(&mut self, level: LevelId, part: &Part, codes: &Codes, other: Block, join: Block) {
        let block = self.node_entry(level, part.head);
        let code = codes.of[&part.head];
        let bound = self.b.use_var(codes.variable);
        let (here, on_true, on_false) = match (codes.ty, code) {
            (I8, 0) => (bound, other, block),
            (I8, _) => (bound, block, other),
            _ => {
                let code = self.b.ins().iconst(codes.ty, code);
                (self.b.ins().icmp(IntCC::Equal, bound, code), block, other)
            }
        };
        self.plan.steering.insert(here);
        let branch = self.b.ins().brif(here, on_true, &[], on_false, &[]);
        if part.partial {
            self.split(branch, Some(join));
        }
    }

    fn parts_of(&self, id: RegionId) -> Vec<Part> {
        let region = self.regions.get(id);
        let level = self.facts.flow().levels().level(region.level);
        let part = |(head, inner): (usize, Option<RegionId>)| {
            let inside = inner.map(|inner| self.regions.get(inner));
            let targets = match inside {
                Some(inside) => BTreeSet::from([inside.end]),
                None => level.succs[head].iter().copied().collect(),
            };
            let members = inside.map_or(head..head + 1, |inside| inside.nodes.clone());
            Part { head, members, region: inner, targets, partial: false }
        };
        let parts = self.regions.parts(region.level, region.nodes.clone(), Some(id));
        let mut parts: Vec<Part> = parts.into_iter().map(part).collect();
        // Edges that lanes take together stay uniform.
        let mut partial = BTreeSet::new();
        for part in &mut parts {
            part.partial = partial.contains(&part.head);
            let divides = part.region.is_none() && region.branches.contains(&part.head);
            if part.partial || divides {
                partial.extend(part.targets.iter().copied());
            }
        }
        parts
    }

    /// The head of the second part, if the branch that ends the first part decides which lanes run it.
    fn head_guards_next(&self, level: LevelId, parts: &[Part]) -> Option<usize> {
        let [head, second, ..] = parts else { return None };
        let nodes = &self.facts.flow().levels().level(level).nodes;
        let Node::Block(block) = nodes[head.head] else { return None };
        let plain = head.region.is_none() && self.is_brif(block);
        let two_ways = head.targets.len() == 2 && head.targets.contains(&second.head);
        (plain && two_ways).then_some(second.head)
    }

    /// The target, other than `second`, of the head's branch, with the code that equals the condition's value
    /// on that edge.
    fn known_code(&self, level: LevelId, head: usize, second: usize) -> Option<(usize, i64)> {
        let levels = self.facts.flow().levels();
        let Node::Block(block) = levels.level(level).nodes[head] else { return None };
        let branch = self.old.layout.last_inst(block)?;
        let InstructionData::Brif { blocks, .. } = self.old.dfg.insts[branch] else { return None };
        let pool = &self.old.dfg.value_lists;
        let [on_true, on_false] = blocks.map(|call| levels.node_at(level, call.block(pool)));
        if on_true == Some(second) { Some((on_false?, 0)) } else { Some((on_true?, 1)) }
    }

    /// Makes the values that the parts define undefined at the region's begin. Otherwise they would be kept
    /// from one iteration of a loop to the next.
    fn reset_locals(&mut self, level: LevelId, parts: &[Part]) {
        let flow = self.facts.flow();
        let levels = flow.levels();
        let (head, last) = (&parts[0].members, &parts[parts.len() - 1].members);
        let first = levels.first_block(levels.level(level).nodes[parts[0].head]);
        let in_loop = levels.level(level).around.is_some();
        let mut resets = Vec::new();
        for block in levels.blocks(level, head.end..last.end) {
            for (value, variable) in self.variables_of(block) {
                if !(in_loop && self.escapes[value]) {
                    resets.push((variable, self.old.dfg.value_type(value)));
                }
            }
        }
        self.resets[first].extend(resets);
    }
}

impl Part {
    /// Whether lanes may diverge after this part.
    fn partial_behind(&self, writer: &Writer<'_>, level: LevelId) -> bool {
        writer.parts(level, self.head)
    }
}

/// Decides how the parts are entered, and assigns codes. With `direct` the head's branch guards the second
/// part.
fn schedule(parts: &[Part], direct: bool, preferred: Option<(usize, i64)>) -> Schedule {
    let mut entries = Vec::new();
    let mut asked = Asked::default();
    let mut open = BTreeSet::new();
    let mut at = 0;
    loop {
        asked.come(&parts[at].targets, &mut open);
        at += 1;
        let Some(part) = parts.get(at) else { break };
        let next = parts.get(at + 1).filter(|next| {
            open.len() == 2
                && open.contains(&part.head)
                && open.contains(&next.head)
                && !part.targets.contains(&next.head)
        });
        let guarded_by_head = direct && at == 1;
        if open.len() == 1 {
            entries.push(Entry::All(at));
        } else if next.is_some() && !guarded_by_head {
            asked.ask(&open);
            entries.push(Entry::Either(at));
            open.clear();
            asked.come(&part.targets, &mut open);
            at += 1;
            continue;
        } else {
            entries.push(Entry::Guarded(at));
            if !guarded_by_head {
                asked.ask(&open);
            }
        }
        open.remove(&part.head);
    }
    match asked.truth_codes(preferred) {
        Some(codes) => Schedule { entries, codes, truth: true },
        None => Schedule { entries, codes: asked.all.into_iter().zip(1..).collect(), truth: false },
    }
}

/// What the guards test.
#[derive(Default)]
struct Asked {
    /// The targets that were open at each test, up to the first test with more than two.
    pairs: Vec<SmallVec<[usize; 2]>>,
    /// Whether there were ever more than two.
    wide: bool,
    /// All targets that were tested.
    all: BTreeSet<usize>,
    /// Targets added since the last test.
    fresh: Vec<usize>,
}

impl Asked {
    /// Adds open targets.
    fn come(&mut self, targets: &BTreeSet<usize>, open: &mut BTreeSet<usize>) {
        self.fresh.extend(targets);
        open.extend(targets);
    }

    /// Records a test of which open target a lane goes to.
    fn ask(&mut self, open: &BTreeSet<usize>) {
        let fresh = std::mem::take(&mut self.fresh);
        self.all.extend(fresh.into_iter().filter(|place| open.contains(place)));
        self.wide |= open.len() > 2;
        if !self.wide {
            self.pairs.push(open.iter().copied().collect());
        }
    }

    /// Assigns codes 0 and 1 such that targets that are open at the same time differ, if possible.
    fn truth_codes(&self, preferred: Option<(usize, i64)>) -> Option<BTreeMap<usize, i64>> {
        if self.wide {
            return None;
        }
        let mut codes: BTreeMap<usize, i64> = preferred.into_iter().collect();
        let mut others: HashMap<usize, Vec<usize>> = HashMap::new();
        for open in &self.pairs {
            for &place in open {
                let rest = open.iter().copied().filter(|&other| other != place);
                others.entry(place).or_default().extend(rest);
            }
        }
        let mut todo: Vec<usize> = self.pairs.iter().flatten().copied().rev().collect();
        todo.extend(preferred.map(|(place, _)| place));
        while let Some(place) = todo.pop() {
            let code = *codes.entry(place).or_insert(1);
            // Each target is processed once.
            for other in others.remove(&place).unwrap_or_default() {
                match codes.get(&other) {
                    Some(&known) if known == code => return None,
                    Some(_) => {}
                    None => {
                        codes.insert(other, 1 - code);
                        todo.push(other);
                    }
                }
            }
        }
        codes.retain(|place, _| self.all.contains(place));
        Some(codes)
    }
}
