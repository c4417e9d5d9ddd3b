//! The regions in which divergence is managed.
//!
//! A region is a part of one [level](crate::analysis::Levels) that control enters through its head
//! alone and leaves to its end alone; the head belongs to it, the end does not. Each divergent branch
//! belongs to the smallest region that holds it and all that its lanes can run until they meet. For
//! most branches that begins at the branch itself. Where a way from elsewhere leads in, as into the
//! body of `if (a || b)` past `b`, it begins further up.
//!
//! Two regions are apart, or one lies in the other.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Opcode};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::{HashMap, HashSet};

use crate::analysis::{Flow, Level, LevelId, Node, ROOT, Uniformity};

/// The number of a region in [`Regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegionId(pub(super) usize);

/// One region, by the numbers of its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) level: LevelId,
    pub(crate) head: usize,
    /// The end of the level if lanes do not meet on it.
    pub(crate) end: usize,
    /// The head and what lies between it and the end, ascending.
    pub(crate) nodes: Vec<usize>,
    /// The divergent branches that belong to no smaller region.
    pub(crate) branches: Vec<usize>,
    /// Whether it is one branch and what lies between it and its immediate post-dominator, so that
    /// split and join suffice.
    pub(crate) nested: bool,
    /// The smallest region around it on its level.
    pub(crate) parent: Option<RegionId>,
}

impl Region {
    pub(crate) fn contains(&self, node: usize) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }
}

/// All regions of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    /// The smallest region around each node of a level.
    innermost: HashMap<(LevelId, usize), RegionId>,
    /// Loops whose lanes may leave in different rounds, or leave a round by its end only.
    masked: EntitySet<Loop>,
    /// Those of them whose lanes may go different ways behind the loop.
    parting: EntitySet<Loop>,
}

impl Regions {
    /// Finds the regions of `func`, of which `facts` are known.
    pub(crate) fn find(func: &Function, facts: &Uniformity) -> Regions {
        let mut result = Regions::default();
        let levels = facts.flow().levels();
        for id in levels.ids() {
            let level = levels.level(id);
            let divergent: Vec<usize> = (0..level.nodes.len())
                .filter(|&node| result.parts(func, facts, level.nodes[node]))
                .collect();
            result.find_on(facts.flow(), id, &divergent);
        }
        result.nest();
        result
    }

    /// Whether lanes may go different ways behind a node.
    fn parts(&self, func: &Function, facts: &Uniformity, node: Node) -> bool {
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

    fn find_on(&mut self, flow: &Flow, id: LevelId, divergent: &[usize]) {
        let level = flow.levels().level(id);
        let mut known: HashMap<(usize, usize), RegionId> = HashMap::new();
        let mut left = false;
        for &branch in divergent {
            left |= level.ipdom[branch] == level.end();
            let mut region = smallest(level, id, branch);
            // A choice of three ways is no single split.
            if let Node::Loop(inner) = level.nodes[branch] {
                region.nested &= flow.levels().exits(inner).len() < 3;
            }
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

    /// Finds out which regions lie in which.
    fn nest(&mut self) {
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_by_key(|&index| self.regions[index].nodes.len());
        let mut by_level: HashMap<LevelId, Vec<usize>> = HashMap::new();
        for &index in &order {
            by_level.entry(self.regions[index].level).or_default().push(index);
        }
        for (level, order) in by_level {
            for (at, &index) in order.iter().enumerate() {
                let head = self.regions[index].head;
                let around = order[at + 1..].iter().find(|&&other| {
                    self.regions[other].contains(head)
                        && self.regions[other].nodes.len() > self.regions[index].nodes.len()
                });
                self.regions[index].parent = around.map(|&other| RegionId(other));
                for &node in &self.regions[index].nodes {
                    self.innermost.entry((level, node)).or_insert(RegionId(index));
                }
            }
        }
    }

    pub(crate) fn get(&self, id: RegionId) -> &Region {
        &self.regions[id.0]
    }

    /// All regions, those of inner loops before those around them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        self.regions.iter().enumerate().map(|(index, region)| (RegionId(index), region))
    }

    /// Whether there is nothing to manage.
    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether a loop runs until none of its lanes is live any more.
    pub(crate) fn is_masked(&self, inner: Loop) -> bool {
        self.masked.contains(inner)
    }

    /// The smallest region around a node.
    pub(crate) fn innermost(&self, level: LevelId, node: usize) -> Option<RegionId> {
        self.innermost.get(&(level, node)).copied()
    }

    /// The largest region around a node that lies in `within`, or anywhere on the level.
    pub(crate) fn outermost(
        &self,
        level: LevelId,
        node: usize,
        within: Option<RegionId>,
    ) -> Option<RegionId> {
        let mut found = None;
        let mut next = self.innermost.get(&(level, node)).copied();
        while next != within {
            found = next;
            next = self.get(next?).parent;
        }
        found
    }

    /// Every block of a region in topological order, the head's included, with those of the loops in
    /// it.
    pub(crate) fn blocks(&self, flow: &Flow, id: RegionId) -> Vec<Block> {
        let region = self.get(id);
        let levels = flow.levels();
        let inside = |&block: &Block| {
            levels.node_at(region.level, block).is_some_and(|node| region.contains(node))
        };
        flow.blocks().filter(inside).collect()
    }
}

/// The smallest region that holds `branch` and what its lanes can run until they meet.
fn smallest(level: &Level, id: LevelId, branch: usize) -> Region {
    let (mut head, mut end) = (branch, level.ipdom[branch]);
    let mut nested = true;
    loop {
        let nodes = between(level, head, end);
        let inside: HashSet<usize> = nodes.iter().copied().collect();
        let mut outer = head;
        for &node in nodes.iter().filter(|&&node| node != head) {
            let foreign = level.preds[node].iter().filter(|pred| !inside.contains(*pred));
            outer = foreign.fold(outer, |outer, &pred| level.common_dominator(outer, pred));
            // Into a doomed block lanes may come from elsewhere.
            if level.idom[node] == ROOT {
                outer = ROOT;
            }
        }
        if outer == ROOT || (id == LevelId::DOOMED && end == level.end()) {
            // Nobody comes back, so there is nothing to wait for.
            let (nodes, branches) = (vec![branch], vec![branch]);
            let end = level.end();
            return Region {
                level: id,
                head: branch,
                end,
                nodes,
                branches,
                nested: true,
                parent: None,
            };
        }
        if outer == head {
            let branches = vec![branch];
            return Region { level: id, head, end, nodes, branches, nested, parent: None };
        }
        nested = false;
        head = outer;
        end = level.common_post_dominator(end, level.ipdom[head]);
    }
}

/// The nodes on ways from `head` to `end`, without the end, ascending.
fn between(level: &Level, head: usize, end: usize) -> Vec<usize> {
    let mut seen: HashSet<usize> = HashSet::from([head]);
    let mut todo = vec![head];
    while let Some(node) = todo.pop() {
        todo.extend(level.succs[node].iter().filter(|&&to| to < end && seen.insert(to)));
    }
    let mut nodes: Vec<usize> = seen.into_iter().collect();
    nodes.sort_unstable();
    nodes
}
