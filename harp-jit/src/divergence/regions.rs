//! The regions in which divergence is managed.
//!
//! A region is a part of one [level](crate::analysis::Levels) that control enters only through its head and
//! leaves only to its end; the head belongs to it, the end does not. Each divergent branch belongs to the
//! smallest region that contains the branch and everything its lanes can run until they reconverge. For most
//! branches that region begins at the branch itself. Where an edge enters from elsewhere, as into the body of
//! `if (a || b)` past `b`, it begins further up.
//!
//! Two regions are disjoint, or one contains the other.

use std::cmp::Reverse;
use std::ops::Range;

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Opcode};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::{HashMap, HashSet};

use crate::analysis::{Flow, Level, LevelId, Node, Uniformity};

/// The number of a region in [`Regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegionId(pub(super) usize);

impl RegionId {
    /// The region's index among all regions.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// One region; nodes are numbered as on its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) level: LevelId,
    pub(crate) head: usize,
    /// The node where control leaves to; the end of the level if lanes do not reconverge on it.
    pub(crate) end: usize,
    /// The head and the nodes between it and the end. Nodes are numbered in reverse post-order of a
    /// depth-first search, which finishes the nodes after the end first and then the whole region, with the
    /// head last.
    pub(crate) nodes: Range<usize>,
    /// The divergent branches that belong to no smaller region.
    pub(crate) branches: Vec<usize>,
    /// Whether the region is one branch and the nodes up to its immediate post-dominator, so that split and
    /// join suffice. They do not where both sides lead to a node in the region at which lanes gather, as where a loop is
    /// left on one side, mostly not: `if (d) { if (u) break; } barrier`.
    pub(crate) nested: bool,
    /// The smallest enclosing region on its level.
    pub(crate) parent: Option<RegionId>,
}

/// All regions of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    /// The smallest region that contains each node of a level.
    innermost: HashMap<(LevelId, usize), RegionId>,
    /// The regions of a level directly inside another region, or in none, in the order of their heads.
    children: HashMap<(LevelId, Option<RegionId>), Vec<RegionId>>,
    /// Loops whose lanes may leave in different iterations, or leave an iteration at its end only.
    masked: EntitySet<Loop>,
    /// Masked loops after which lanes may take different paths.
    parting: EntitySet<Loop>,
}

impl Regions {
    /// Finds the regions of `func`; `facts` are the facts about it. In the blocks `gathering` lanes wait for others or look at
    /// what these have.
    pub(crate) fn find(
        func: &Function,
        facts: &Uniformity,
        gathering: &EntitySet<Block>,
    ) -> Regions {
        let mut result = Regions::default();
        let levels = facts.flow().levels();
        for id in levels.ids() {
            let level = levels.level(id);
            let divergent: Vec<usize> = (0..level.nodes.len())
                .filter(|&node| result.divides(func, facts, level.nodes[node]))
                .collect();
            result.find_on(facts.flow(), id, &divergent, gathering);
        }
        result.nest();
        result
    }

    /// Whether lanes may take different paths after a node.
    fn divides(&self, func: &Function, facts: &Uniformity, node: Node) -> bool {
        match node {
            Node::Loop(inner) => self.parting.contains(inner),
            Node::Block(block) => {
                let last = func.layout.last_inst(block);
                let branches =
                    last.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Brif);
                branches && facts.branch_divergence(block).is_some()
            }
        }
    }

    fn find_on(
        &mut self,
        flow: &Flow,
        id: LevelId,
        divergent: &[usize],
        gathering: &EntitySet<Block>,
    ) {
        let level = flow.levels().level(id);
        let gathers = |&node: &usize| {
            let mut blocks = flow.levels().blocks(id, node..node + 1).into_iter();
            blocks.any(|block| gathering.contains(block))
        };
        let gathering: Vec<usize> = match gathering.is_empty() {
            true => Vec::new(),
            false => (0..level.end()).filter(gathers).collect(),
        };
        let mut known: HashMap<(usize, usize), RegionId> = HashMap::new();
        let mut outwards = Outwards::new();
        let mut left = false;
        for &branch in divergent {
            left |= level.ipdom[branch] == level.end();
            let mut region = smallest(level, id, branch, &mut outwards);
            // A choice of three paths is not a single split.
            if let Node::Loop(inner) = level.nodes[branch] {
                region.nested &= flow.levels().exits(inner).len() < 3;
            }
            region.nested = region.nested && !lanes_gather_in(level, &region, &gathering);
            match known.get(&(region.head, region.end)) {
                Some(&RegionId(same)) => {
                    self.regions[same].nested &= region.nested;
                    self.regions[same].branches.push(branch);
                }
                None => {
                    known.insert((region.head, region.end), RegionId(self.regions.len()));
                    self.regions.push(region);
                }
            }
        }
        if let Some(around) = level.around {
            let open = |id: &RegionId| self.regions[id.0].end == level.end();
            if left || known.values().any(open) {
                self.masked.insert(around);
            }
            if left && flow.levels().exits(around).len() > 1 {
                self.parting.insert(around);
            }
        }
    }

    /// Finds out which regions contain which.
    fn nest(&mut self) {
        // Each region before those that it contains.
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_by_key(|&index| {
            let Region { level, nodes, .. } = &self.regions[index];
            (*level, nodes.start, Reverse(nodes.end))
        });
        // The regions that contain the current node, and those not popped yet.
        let mut around: Vec<usize> = Vec::new();
        let mut at = 0;
        for index in order.into_iter().map(Some).chain([None]) {
            let here =
                index.map(|index| (self.regions[index].level, self.regions[index].nodes.start));
            while let Some(&last) = around.last() {
                let Region { level, nodes, .. } = &self.regions[last];
                let inside = here.filter(|&(there, start)| there == *level && start < nodes.end);
                let end = inside.map_or(nodes.end, |(_, start)| start);
                for node in at.max(nodes.start)..end {
                    self.innermost.insert((*level, node), RegionId(last));
                }
                at = end;
                if inside.is_some() {
                    break;
                }
                around.pop();
            }
            let Some(index) = index else { break };
            let parent = around.last().map(|&other| RegionId(other));
            let region = &mut self.regions[index];
            region.parent = parent;
            at = region.nodes.start;
            self.children.entry((region.level, parent)).or_default().push(RegionId(index));
            around.push(index);
        }
    }

    pub(crate) fn get(&self, id: RegionId) -> &Region {
        &self.regions[id.0]
    }

    /// All regions; those of inner loops before those of the enclosing ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        self.regions.iter().enumerate().map(|(index, region)| (RegionId(index), region))
    }

    /// All regions, each before those that it contains.
    pub(crate) fn outside_in(&self) -> impl Iterator<Item = RegionId> + use<> {
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_by_key(|&index| Reverse(self.regions[index].nodes.len()));
        order.into_iter().map(RegionId)
    }

    /// Whether there is nothing to manage.
    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether a loop runs until none of its lanes is live.
    pub(crate) fn is_masked(&self, inner: Loop) -> bool {
        self.masked.contains(inner)
    }

    /// The smallest region that contains a node.
    pub(crate) fn innermost(&self, level: LevelId, node: usize) -> Option<RegionId> {
        self.innermost.get(&(level, node)).copied()
    }

    /// Partitions a level: gives the regions of `nodes` that lie directly in `within`, or in none, and the
    /// nodes in none of these. Each is named by its first node.
    pub(crate) fn parts(
        &self,
        level: LevelId,
        nodes: Range<usize>,
        within: Option<RegionId>,
    ) -> Vec<(usize, Option<RegionId>)> {
        let children = self.children.get(&(level, within)).map_or(&[] as &[_], Vec::as_slice);
        let first = children.partition_point(|&child| self.get(child).head < nodes.start);
        let mut children = children[first..].iter().copied().peekable();
        let mut parts = Vec::new();
        let mut node = nodes.start;
        while node < nodes.end {
            let child = children.next_if(|&child| self.get(child).head == node);
            parts.push((node, child));
            node = child.map_or(node + 1, |child| self.get(child).nodes.end);
        }
        parts
    }

    /// All blocks of a region in topological order, including the head and the blocks of loops inside.
    pub(crate) fn blocks(&self, flow: &Flow, id: RegionId) -> Vec<Block> {
        let region = self.get(id);
        flow.levels().blocks(region.level, region.nodes.clone())
    }

    /// The union of the blocks of these regions.
    pub(crate) fn all_blocks(
        &self,
        flow: &Flow,
        regions: impl Iterator<Item = RegionId>,
    ) -> HashSet<Block> {
        let mut order: Vec<&Region> = regions.map(|id| self.get(id)).collect();
        order.sort_by_key(|region| (region.level, region.nodes.start, Reverse(region.nodes.end)));
        // The blocks of a contained region are in the containing one already.
        order.dedup_by(|inner, outer| {
            inner.level == outer.level && inner.nodes.end <= outer.nodes.end
        });
        let blocks = |region: &Region| flow.levels().blocks(region.level, region.nodes.clone());
        order.into_iter().flat_map(blocks).collect()
    }
}

/// Whether lanes that take different paths at the head of a region may come to the same one of its nodes that are in `gathering`,
/// an ascending list.
fn lanes_gather_in(level: &Level, region: &Region, gathering: &[usize]) -> bool {
    let Region { head, ref nodes, .. } = *region;
    let first = gathering.partition_point(|&node| node <= head);
    let here = &gathering[first..gathering.partition_point(|&node| node < nodes.end)];
    let Some(last) = here.last() else { return false };
    let nodes = head + 1..last + 1;
    // The sides from which each node behind the head is reached, as bits.
    let mut sides = vec![0_u32; nodes.len()];
    for (side, &next) in level.succs[head].iter().enumerate() {
        if nodes.contains(&next) {
            sides[next - nodes.start] |= 1 << side.min(31);
        }
    }
    for node in nodes.clone() {
        for &next in level.succs[node].iter().filter(|next| nodes.contains(*next)) {
            sides[next - nodes.start] |= sides[node - nodes.start];
        }
    }
    here.iter().any(|&node| sides[node - nodes.start].count_ones() > 1)
}

/// The smallest region that contains `branch` and everything its lanes can run until they reconverge.
fn smallest(level: &Level, id: LevelId, branch: usize, known: &mut Outwards) -> Region {
    let (mut head, mut end) = (branch, level.ipdom[branch]);
    let mut steps = Vec::new();
    let found = loop {
        if let Some(&found) = known.get(&(head, end)) {
            break found;
        }
        steps.push((head, end));
        let (outer, last) = level.entered_through(head, end);
        match outer {
            // No lane returns from there, so there is nothing to wait for.
            _ if id == LevelId::DOOMED && end == level.end() => break None,
            None => break None,
            Some(outer) if outer == head => break Some((head, end, last)),
            Some(outer) => {
                head = outer;
                end = level.common_post_dominator(end, level.ipdom[head]);
            }
        }
    };
    known.extend(steps.into_iter().map(|step| (step, found)));
    let (head, end, last) = found.unwrap_or((branch, level.end(), branch));
    let nested = head == branch;
    let (nodes, branches) = (head..last + 1, vec![branch]);
    Region { level: id, head, end, nodes, branches, nested, parent: None }
}

/// Results of the search for a region outwards from a head and an end: head, end and last node. None if no
/// region is found, so that the branch where the search began is alone.
type Outwards = HashMap<(usize, usize), Option<(usize, usize, usize)>>;
