//! Under which splits blocks run.

use hashbrown::HashMap;

use crate::vcode::{BlockId, MInst, VCode};

/// The stack of splits that are open: 0 if there is none, else the number of an [`Open`] and one. Equal stacks have
/// equal numbers.
pub(super) type Stack = usize;

/// A split above others.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The block that ends in the split.
    split: BlockId,
    below: Stack,
}

/// The splits around each block.
#[derive(Debug)]
pub(super) struct Nesting {
    opens: Vec<Open>,
    /// For each block the splits that are open behind its join, if it has one. None where no return is reachable: such
    /// code may be entered with any stack.
    stacks: Vec<Option<Stack>>,
    /// Each join with the block that ends in its split.
    joins: Vec<(BlockId, BlockId)>,
}

impl Nesting {
    /// None if the splits of a block depend on the path to it.
    pub(super) fn compute(vcode: &VCode) -> Option<Nesting> {
        let returns = returning(vcode);
        let mut opens = Vec::new();
        let mut numbers: HashMap<(BlockId, Stack), Stack> = HashMap::new();
        let mut entries: Vec<Option<Stack>> = vec![None; vcode.blocks.len()];
        let mut stacks = entries.clone();
        let mut joins = Vec::new();
        let mut todo = Vec::new();
        if returns.first() == Some(&true) {
            entries[0] = Some(0);
            todo.push(0);
        }
        while let Some(index) = todo.pop() {
            let data = &vcode.blocks[index];
            let mut stack = entries[index]?;
            if matches!(vcode.insts[data.insts.start], MInst::Join) {
                let Open { split, below } = *opens.get(stack.checked_sub(1)?)?;
                joins.push((BlockId::new(index), split));
                stack = below;
            }
            stacks[index] = Some(stack);
            let splits =
                matches!(vcode.insts[data.insts.end - 1], MInst::CondBr { split: true, .. });
            let after = if splits {
                let split = BlockId::new(index);
                *numbers.entry((split, stack)).or_insert_with(|| {
                    opens.push(Open { split, below: stack });
                    opens.len()
                })
            } else {
                stack
            };
            for to in data.succs.iter().map(|to| to.index()).filter(|&to| returns[to]) {
                match entries[to] {
                    None => {
                        entries[to] = Some(after);
                        todo.push(to);
                    }
                    Some(known) if known == after => {}
                    Some(_) => return None,
                }
            }
        }
        Some(Nesting { opens, stacks, joins })
    }

    /// Whether lanes in `inner` have not left the splits around `outer` since they were there.
    pub(super) fn encloses(&self, outer: BlockId, inner: BlockId) -> bool {
        let [Some(outer), Some(mut stack)] = [outer, inner].map(|id| self.stacks[id.index()])
        else {
            return false;
        };
        // An inner stack has a larger number, as it was opened later.
        while stack > outer {
            stack = self.opens[stack - 1].below;
        }
        stack == outer
    }

    /// Whether no split is open in the block.
    pub(super) fn is_outside(&self, block: BlockId) -> bool {
        self.stacks[block.index()] == Some(0)
    }

    /// Whether code from which a return is reachable goes through the block.
    pub(super) fn is_known(&self, block: BlockId) -> bool {
        self.stacks[block.index()].is_some()
    }

    /// The same, as if nothing joined.
    #[cfg(test)]
    pub(super) fn without_joins(self) -> Nesting {
        Nesting { joins: Vec::new(), ..self }
    }

    /// Each join with the block that ends in its split.
    pub(super) fn joins(&self) -> &[(BlockId, BlockId)] {
        &self.joins
    }
}

/// For each block whether a return is reachable from it.
fn returning(vcode: &VCode) -> Vec<bool> {
    let mut found = vec![false; vcode.blocks.len()];
    let mut todo: Vec<usize> = (vcode.blocks.iter().enumerate())
        .filter(|(_, block)| {
            matches!(vcode.insts[block.insts.end - 1], MInst::Ret { .. } | MInst::TailCall { .. })
        })
        .map(|(index, _)| index)
        .collect();
    while let Some(index) = todo.pop() {
        if !std::mem::replace(&mut found[index], true) {
            todo.extend(vcode.blocks[index].preds.iter().map(|from| from.index()));
        }
    }
    found
}
