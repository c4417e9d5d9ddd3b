//! The buffer of instructions with jumps to blocks that are not placed yet.
//!
//! Blocks that do nothing but jump are passed by, and a jump to the next instruction is left out.
//! A block that holds a `join` is never such a block, so no path loses its reconvergence.

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::{Gpr, Instruction, Op, Pred};

use super::Label;
use super::body::{Body, Item};
use crate::profile::BranchSite;
use crate::vcode::{FarCall, Symbol};
use harp_check::{Holder, Holders, Name, Note, Role};

#[derive(Debug)]
pub(super) struct CodeBuffer {
    /// Jumps name blocks here, by their index.
    items: Vec<Item>,
    places: Vec<SourceLoc>,
    traps: Vec<(usize, TrapCode)>,
    branches: Vec<(usize, BranchSite)>,
    /// The index of the first item of each block.
    starts: Vec<usize>,
    place: SourceLoc,
    /// A note on each item, if they are wanted.
    notes: Option<Vec<Note>>,
    /// The block that items are put in.
    block: Label,
    /// What the next item is there for.
    role: Option<Role>,
    /// What holds nothing that is meant from the next item on.
    undefined: Holders,
    /// What holds nothing that is meant once a block was left: not noted on jumps, which may be left out.
    left_undefined: Vec<(Label, Holders)>,
}

impl CodeBuffer {
    /// For so many blocks and about so many items.
    pub(super) fn new(blocks: usize, items: usize, recording: bool) -> CodeBuffer {
        CodeBuffer {
            items: Vec::with_capacity(items),
            places: Vec::with_capacity(items),
            traps: Vec::new(),
            branches: Vec::new(),
            starts: vec![0; blocks],
            place: SourceLoc::default(),
            notes: recording.then(Vec::new),
            block: Label::new(0),
            role: None,
            undefined: Holders::new(),
            left_undefined: Vec::new(),
        }
    }

    /// From the next item on, there is nothing that is meant.
    pub(super) fn set_undefined(&mut self, holder: Holder) {
        self.undefined.push(holder);
    }

    /// Whether notes are taken for the checker.
    pub(super) fn is_recording(&self) -> bool {
        self.notes.is_some()
    }

    /// What holds nothing that is meant once a block was left.
    pub(super) fn left_undefined(&mut self) -> Vec<(Label, Holders)> {
        std::mem::take(&mut self.left_undefined)
    }

    /// What the next item is there for, if it is more than a part of something.
    pub(super) fn set_role(&mut self, role: Role) {
        self.role = Some(role);
    }

    /// The last item computes this predicate.
    pub(super) fn defines(&mut self, name: Name) {
        if let Some(Note { role: Role::Part { defines, .. }, .. }) =
            self.notes.as_mut().and_then(|notes| notes.last_mut())
        {
            *defines = Some(name);
        }
    }

    /// The next item begins block `label`.
    pub(super) fn bind(&mut self, label: Label) {
        self.starts[label.index()] = self.items.len();
        self.block = label;
    }

    /// What follows was built there.
    pub(super) fn set_place(&mut self, place: SourceLoc) {
        self.place = place;
    }

    /// The next item is a `trap` with this code.
    pub(super) fn set_trap(&mut self, code: TrapCode) {
        self.traps.push((self.items.len(), code));
    }

    /// The next item decides this branch.
    pub(super) fn set_branch(&mut self, branch: BranchSite) {
        self.branches.push((self.items.len(), branch));
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.item(Item::Plain(instruction));
    }

    pub(super) fn jump(&mut self, guard: Option<Pred>, target: Label) {
        self.item(Item::Jump { guard, target: target.index() });
    }

    /// `dst` = the address of `symbol`.
    pub(super) fn address(&mut self, dst: Gpr, symbol: Symbol) {
        self.item(Item::Address { dst, symbol });
    }

    /// Calls `symbol`.
    pub(super) fn call(&mut self, symbol: Symbol, far: FarCall) {
        self.item(Item::Call { symbol, far });
    }

    /// Goes to `symbol` for good; by way of `scratch` where it is out of reach.
    pub(super) fn tail_jump(&mut self, symbol: Symbol, scratch: Gpr) {
        self.item(Item::TailJump { symbol, scratch });
    }

    fn item(&mut self, item: Item) {
        let role = self.role.take().unwrap_or(Role::Part { guard: None, defines: None });
        if let Some(notes) = &mut self.notes {
            let start = self.starts[self.block.index()];
            let block = u32::try_from(self.block.index()).expect("blocks have numbers of 32 bits");
            let position = u32::try_from(self.items.len() - start).expect("code ends before 2^32");
            let mut undefined = std::mem::take(&mut self.undefined);
            if matches!(item, Item::Jump { .. }) && !undefined.is_empty() {
                self.left_undefined.push((self.block, std::mem::take(&mut undefined)));
            }
            notes.push(Note { block, position, undefined, role });
        }
        self.items.push(item);
        self.places.push(self.place);
    }

    /// Whether control never reaches the next item from this one.
    fn ends_flow(&self, index: usize) -> bool {
        self.items[index].ends_flow()
    }

    /// Whether the item is the branch of a split, which stays even if both sides are the same.
    fn is_split(&self, index: usize) -> bool {
        let before = index.checked_sub(1).map(|before| &self.items[before]);
        matches!(before, Some(Item::Plain(Instruction { op: Op::Split {}, .. })))
    }

    /// Where a jump to each block ends up: past items that are left out and through blocks that only
    /// jump on. A cycle of such blocks is an endless loop and stays.
    fn destinations(&self) -> Vec<usize> {
        let mut found: Vec<Option<usize>> = vec![None; self.starts.len()];
        let mut way = Vec::new();
        for block in 0..self.starts.len() {
            let mut at = block;
            let end = loop {
                if let Some(end) = found[at] {
                    break end;
                }
                // Met again on this very way: a cycle, which ends where it is.
                found[at] = Some(self.starts[at]);
                way.push(at);
                match self.items.get(self.starts[at]) {
                    Some(&Item::Jump { guard: None, target }) => at = target,
                    _ => break self.starts[at],
                }
            };
            for passed in way.drain(..) {
                found[passed] = Some(end);
            }
        }
        found.into_iter().map(|end| end.expect("every block was visited")).collect()
    }

    /// Which items need not be encoded: jumps of passed-by blocks that nothing falls into, and jumps
    /// to what comes next anyway.
    fn removable(&self, destinations: &[usize]) -> Vec<bool> {
        let mut targeted = vec![false; self.items.len() + 1];
        for item in &self.items {
            if let Item::Jump { target, .. } = *item {
                targeted[destinations[target]] = true;
            }
        }
        let mut removed: Vec<bool> = (0..self.items.len())
            .map(|index| {
                let passes_on = matches!(self.items[index], Item::Jump { guard: None, .. });
                let falls_in = index == 0 || !self.ends_flow(index - 1);
                passes_on && !targeted[index] && !falls_in
            })
            .collect();
        // The first item at or behind the next one that stays.
        let mut kept = self.items.len();
        for index in (0..self.items.len()).rev() {
            if let Item::Jump { target, .. } = self.items[index]
                && !self.is_split(index)
            {
                let destination = destinations[target];
                removed[index] |= destination > index && destination <= kept;
            }
            if !removed[index] {
                kept = index;
            }
        }
        removed
    }

    /// The code without what is left out.
    pub(super) fn finish(self) -> Body {
        let destinations = self.destinations();
        let removed = self.removable(&destinations);
        // Where each item went; one that is left out to what comes after it.
        let mut moved = Vec::with_capacity(self.items.len() + 1);
        let mut body = Body::default();
        body.items.reserve(self.items.len());
        body.places.reserve(self.items.len());
        for (index, item) in self.items.iter().enumerate() {
            moved.push(body.items.len());
            if !removed[index] {
                body.items.push(*item);
                body.places.push(self.places[index]);
                if let Some(notes) = &self.notes {
                    body.notes.push(Some(notes[index].clone()));
                }
            }
        }
        moved.push(body.items.len());
        for item in &mut body.items {
            if let Item::Jump { target, .. } = item {
                *target = moved[destinations[*target]];
            }
        }
        let traps = self.traps.iter().filter(|&&(index, _)| !removed[index]);
        body.traps = traps.map(|&(index, code)| (moved[index], code)).collect();
        let branches = self.branches.iter().filter(|&&(index, _)| !removed[index]);
        body.branches = branches.map(|&(index, id)| (moved[index], id)).collect();
        // Of blocks that begin at one place now, the last is the one that is left.
        let mut starts: Vec<(usize, u32)> = self.starts.iter().copied().zip(0..).collect();
        starts.sort_unstable();
        body.blocks = starts.into_iter().map(|(start, id)| (moved[start], id)).collect();
        body
    }
}

/// An unconditional jump, or what ends a function.
pub(super) fn ends_flow(instruction: &Instruction) -> bool {
    instruction.guard.is_none() && matches!(instruction.op, Op::Jmpr { .. } | Op::Trap {})
}
