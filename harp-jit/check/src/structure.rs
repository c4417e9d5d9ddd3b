//! Blocks of finished code, and the divergence stack along all paths through them.
//!
//! Proves that
//!
//! * a split stands right before the branch on its predicate, which nothing else leads to;
//! * the open splits are the same on all paths to a block; both sides of one may come through the same
//!   block, one after the other;
//! * a join closes the innermost open split, always the same one; the other side, if it gets that far,
//!   stops at the same join;
//! * no split is open where the function is left.
//!
//! From some blocks no path leads out of the function: a launch that reaches them ends in a trap. Which splits were open
//! before does not matter there, so sides of splits may flow together in them. The splits of these blocks themselves
//! match.

use hashbrown::HashMap;

use crate::code::{Code, Flow};
use crate::error::{CodeError, CodeFault};

/// An open split, by its branch.
pub(crate) type Open = usize;

/// Any splits: nothing is known of those below it.
const ANY: Open = usize::MAX;

/// An edge into a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// The block that it comes from.
    pub(crate) from: usize,
    /// The value of the guard of that block's branch, if the block ends in one.
    pub(crate) taken: Option<bool>,
}

/// Instructions that are executed one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Its instructions.
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) edges: Vec<Edge>,
    /// The branch whose split the join at the beginning closes.
    pub(crate) joins: Option<usize>,
    /// Splits that are open in the block.
    pub(crate) open: Vec<Open>,
}

impl Block {
    pub(crate) fn new(first: usize, last: usize) -> Block {
        Block { first, last, edges: Vec::new(), joins: None, open: Vec::new() }
    }

    /// Whether it is known of all splits that are open in it.
    pub(crate) fn knows_open(&self) -> bool {
        !self.open.contains(&ANY)
    }
}

/// The blocks of a function.
#[derive(Debug)]
pub(crate) struct Structure {
    /// In reverse post-order, so that the entry is the first. Only what is reached.
    pub(crate) blocks: Vec<Block>,
    /// The block of each instruction that is reached.
    pub(crate) block_of: Vec<Option<usize>>,
}

/// The successors of an instruction, with the value of its guard on each edge.
fn successors(code: &Code<'_>, at: usize) -> impl Iterator<Item = (usize, Option<bool>)> {
    let (taken, next) = match code.insts[at].flow {
        Flow::Branch(target) => (Some(target), Some((at + 1, Some(false)))),
        Flow::Next | Flow::Call => (None, Some((at + 1, None))),
        Flow::Jump(target) => (None, Some((target, None))),
        Flow::Leave | Flow::Stop => (None, None),
    };
    let all = taken.map(|target| (target, Some(true))).into_iter().chain(next);
    all.filter_map(|(target, guard)| Some((code.resolve(target)?, guard)))
}

impl Structure {
    /// Finds the blocks of `code` and proves that pushes and pops match.
    pub(crate) fn new(code: &Code<'_>) -> Result<Structure, CodeError> {
        let Some(entry) = code.resolve(0) else {
            return Ok(Structure { blocks: Vec::new(), block_of: vec![None; code.insts.len()] });
        };
        check_splits(code)?;
        let mut structure = Structure::find_blocks(code, entry)?;
        structure.match_splits(code)?;
        Ok(structure)
    }

    /// The successors of each block, with the value of the guard of its branch.
    pub(crate) fn successors(&self) -> Vec<Vec<(usize, Option<bool>)>> {
        let mut successors = vec![Vec::new(); self.blocks.len()];
        for (to, block) in self.blocks.iter().enumerate() {
            block.edges.iter().for_each(|edge| successors[edge.from].push((to, edge.taken)));
        }
        successors
    }

    fn find_blocks(code: &Code<'_>, entry: usize) -> Result<Structure, CodeError> {
        let mut reached = vec![false; code.insts.len()];
        let mut leads = vec![false; code.insts.len()];
        reached[entry] = true;
        leads[entry] = true;
        let mut todo = vec![entry];
        while let Some(at) = todo.pop() {
            for (to, guard) in successors(code, at) {
                if code.is_split_branch(to) && at + 1 != to {
                    return Err(code.error(to, CodeFault::SplitPassedBy));
                }
                leads[to] |= guard.is_some() || to != at + 1 || code.is_join(to);
                if !reached[to] {
                    reached[to] = true;
                    todo.push(to);
                }
            }
        }
        Ok(Structure::order(code, entry, &leads))
    }

    /// The blocks that begin at `leads`, in reverse post-order.
    fn order(code: &Code<'_>, entry: usize, leads: &[bool]) -> Structure {
        let end = |first: usize| {
            let mut last = first;
            loop {
                let mut next = successors(code, last);
                match (next.next(), next.next()) {
                    (Some((to, None)), None) if !leads[to] => last = to,
                    _ => return last,
                }
            }
        };
        // Post-order, with an explicit stack: functions can be long.
        let mut number: HashMap<usize, Option<usize>> = HashMap::new();
        let mut ordered = Vec::new();
        let mut stack = vec![(entry, end(entry), 0)];
        number.insert(entry, None);
        while let Some(&mut (first, last, ref mut next)) = stack.last_mut() {
            *next += 1;
            match successors(code, last).nth(*next - 1) {
                Some((to, _)) => {
                    if number.insert(to, None).is_none() {
                        stack.push((to, end(to), 0));
                    }
                }
                None => {
                    ordered.push((first, last));
                    stack.pop();
                }
            }
        }
        ordered.reverse();
        let mut block_of = vec![None; code.insts.len()];
        for (block, &(first, last)) in ordered.iter().enumerate() {
            block_of[first..=last].fill(Some(block));
        }
        let mut blocks: Vec<Block> =
            ordered.iter().map(|&(first, last)| Block::new(first, last)).collect();
        for (from, &(_, last)) in ordered.iter().enumerate() {
            for (to, taken) in successors(code, last) {
                let to = block_of[to].expect("what is reached is in a block");
                blocks[to].edges.push(Edge { from, taken });
            }
        }
        Structure { blocks, block_of }
    }

    /// Gives every block its open splits.
    fn match_splits(&mut self, code: &Code<'_>) -> Result<(), CodeError> {
        let ends = self.ends(code);
        let mut known: Vec<Option<Vec<Open>>> = vec![None; self.blocks.len()];
        let mut joined_at: HashMap<usize, usize> = HashMap::new();
        known[0] = Some(Vec::new());
        if code.is_join(self.blocks[0].first) {
            return Err(code.error(self.blocks[0].first, CodeFault::NothingToJoin { from: 0 }));
        }
        let mut todo = vec![0];
        while let Some(from) = todo.pop() {
            let open = known[from].clone().expect("only known blocks are visited");
            let last = self.blocks[from].last;
            if code.insts[last].flow == Flow::Leave && !open.is_empty() {
                let splits = splits(code, &open);
                return Err(code.error(last, CodeFault::OpenAtEnd { splits }));
            }
            let out: Vec<_> = successors(code, last).collect();
            for (first, taken) in out {
                let mut open = along(code, last, taken, &open);
                let to = self.block_of[first].expect("what is reached is in a block");
                if code.is_join(first) {
                    self.join(code, (last, to), &mut open, &mut joined_at)
                        .map_err(|fault| code.error(first, fault))?;
                }
                match &known[to] {
                    None => {
                        known[to] = Some(open);
                        todo.push(to);
                    }
                    Some(before) if *before == open => {}
                    Some(before) if ends[to] => {
                        let [one, other] = [before, &open].map(|open| splits(code, open));
                        let from = code.insts[last].offset;
                        return Err(code.error(first, CodeFault::OpenSplits { one, other, from }));
                    }
                    Some(before) => {
                        let both = common(before, &open);
                        if both != *before {
                            known[to] = Some(both);
                            todo.push(to);
                        }
                    }
                }
            }
        }
        for (block, open) in self.blocks.iter_mut().zip(known) {
            block.open = open.expect("blocks are reached");
        }
        Ok(())
    }

    /// The blocks from which a path leads out of the function.
    fn ends(&self, code: &Code<'_>) -> Vec<bool> {
        let mut ends = vec![false; self.blocks.len()];
        let leaves = |&block: &usize| code.insts[self.blocks[block].last].flow == Flow::Leave;
        let mut todo: Vec<usize> = (0..self.blocks.len()).filter(leaves).collect();
        while let Some(block) = todo.pop() {
            if !std::mem::replace(&mut ends[block], true) {
                todo.extend(self.blocks[block].edges.iter().map(|edge| edge.from));
            }
        }
        ends
    }

    /// Closes the innermost split on the edge from an instruction into a block that begins with a join.
    fn join(
        &mut self,
        code: &Code<'_>,
        (from, to): (usize, usize),
        open: &mut Vec<Open>,
        joined_at: &mut HashMap<usize, usize>,
    ) -> Result<(), CodeFault> {
        let from = code.insts[from].offset;
        let branch = open.pop().filter(|&open| open != ANY);
        let branch = branch.ok_or(CodeFault::NothingToJoin { from })?;
        let split = split_of(code, branch);
        let here = *joined_at.entry(branch).or_insert(to);
        if here != to {
            let other = code.insts[self.blocks[here].first].offset;
            return Err(CodeFault::TwoJoins { split, other });
        }
        let joined = *self.blocks[to].joins.get_or_insert(branch);
        if joined != branch {
            return Err(CodeFault::TwoSplits { split: split_of(code, joined), other: split });
        }
        Ok(())
    }
}

/// The offset of a branch's split.
pub(crate) fn split_of(code: &Code<'_>, branch: Open) -> u32 {
    code.insts[branch - 1].offset
}

/// The offsets of open splits, as far as they are known.
fn splits(code: &Code<'_>, open: &[Open]) -> Box<[u32]> {
    let known = open.iter().filter(|&&open| open != ANY);
    known.map(|&branch| split_of(code, branch)).collect()
}

/// The splits that are open after the end of a block.
fn along(code: &Code<'_>, last: usize, taken: Option<bool>, open: &[Open]) -> Vec<Open> {
    let split = taken.filter(|_| code.is_split_branch(last)).map(|_| last);
    open.iter().copied().chain(split).collect()
}

/// The splits that are open on both of two paths, from the innermost on.
fn common(one: &[Open], other: &[Open]) -> Vec<Open> {
    let pairs = one.iter().rev().zip(other.iter().rev());
    let same = pairs.take_while(|(a, b)| a == b).count();
    let innermost = one[one.len() - same..].iter().copied().filter(|&open| open != ANY);
    std::iter::once(ANY).chain(innermost).collect()
}

fn check_splits(code: &Code<'_>) -> Result<(), CodeError> {
    for at in (0..code.insts.len()).filter(|&at| code.is_split(at)) {
        let guard = code.insts[at].instruction.guard;
        let branch = code
            .insts
            .get(at + 1)
            .filter(|next| matches!(next.flow, Flow::Branch(_)) && next.instruction.guard == guard);
        if guard.is_none() || branch.is_none() {
            return Err(code.error(at, CodeFault::SplitAlone));
        }
    }
    Ok(())
}
