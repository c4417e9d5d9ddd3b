//! A buffer of instructions with jumps to blocks without positions yet.
//!
//! Jumps bypass blocks that only jump, and a jump to the next instruction is omitted. A block with a `join`
//! is never bypassed, so no path loses its reconvergence.

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::{Gpr, Instruction, Op, Pred};

use super::Label;
use super::body::{Body, Item};
use crate::profile::BranchSite;
use crate::vcode::{FarCall, Symbol};
use harp_check::{Holder, Holders, Name, Note, Role};

#[derive(Debug)]
pub(super) struct CodeBuffer {
    /// The items; jumps refer to blocks here, by index.
    items: Vec<Item>,
    places: Vec<SourceLoc>,
    traps: Vec<(usize, TrapCode)>,
    branches: Vec<(usize, BranchSite)>,
    /// The index of the first item of each block.
    starts: Vec<usize>,
    place: SourceLoc,
    /// A note on each item, if notes are kept.
    notes: Option<Vec<Note>>,
    /// The current block.
    block: Label,
    /// The role of the next item.
    role: Option<Role>,
    /// Holders whose contents are undefined from the next item on.
    undefined: Holders,
    /// Holders whose contents are undefined once a block was left: not noted on jumps, because these may be
    /// omitted.
    left_undefined: Vec<(Label, Holders)>,
}

impl CodeBuffer {
    /// A buffer for this many blocks and about this many items.
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

    /// Declares the contents of `holder` undefined from the next item on.
    pub(super) fn set_undefined(&mut self, holder: Holder) {
        self.undefined.push(holder);
    }

    /// Whether notes for the checker are kept.
    pub(super) fn is_recording(&self) -> bool {
        self.notes.is_some()
    }

    /// Takes the holders whose contents are undefined once a block was left.
    pub(super) fn left_undefined(&mut self) -> Vec<(Label, Holders)> {
        std::mem::take(&mut self.left_undefined)
    }

    /// Sets the role of the next item, if it is more than a part of an expansion.
    pub(super) fn set_role(&mut self, role: Role) {
        self.role = Some(role);
    }

    /// Notes that the last item computes this predicate.
    pub(super) fn defines(&mut self, name: Name) {
        if let Some(Note { role: Role::Part { defines, .. }, .. }) =
            self.notes.as_mut().and_then(|notes| notes.last_mut())
        {
            *defines = Some(name);
        }
    }

    /// Begins block `label` at the next item.
    pub(super) fn bind(&mut self, label: Label) {
        self.starts[label.index()] = self.items.len();
        self.block = label;
    }

    /// Sets the source location of the following items.
    pub(super) fn set_place(&mut self, place: SourceLoc) {
        self.place = place;
    }

    /// Notes that the next item is a `trap` with this code.
    pub(super) fn set_trap(&mut self, code: TrapCode) {
        self.traps.push((self.items.len(), code));
    }

    /// Notes that the next item decides this branch.
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

    /// Jumps to `symbol` without returning; through `scratch` if it is out of reach.
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

    /// The final position of a jump to each block: past omitted items and through blocks that only jump. A
    /// cycle of such blocks is an endless loop and stays.
    fn destinations(&self) -> Vec<usize> {
        let mut found: Vec<Option<usize>> = vec![None; self.starts.len()];
        let mut way = Vec::new();
        for block in 0..self.starts.len() {
            let mut at = block;
            let end = loop {
                if let Some(end) = found[at] {
                    break end;
                }
                // If this block is met again on the same walk, the blocks form a cycle, which ends here.
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

    /// The items to omit: jumps of bypassed blocks that no item falls through to, and jumps to the item that
    /// follows anyway.
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
        // The first item at or after the next one that is kept.
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

    /// The code without the omitted items.
    pub(super) fn finish(self) -> Body {
        let destinations = self.destinations();
        let removed = self.removable(&destinations);
        // The new index of each item; for an omitted one that of the item after it.
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
        // Of blocks that now begin at the same item, only the last is left.
        let mut starts: Vec<(usize, u32)> = self.starts.iter().copied().zip(0..).collect();
        starts.sort_unstable();
        body.blocks = starts.into_iter().map(|(start, id)| (moved[start], id)).collect();
        body
    }
}

/// Whether it is an unconditional jump or ends a function.
pub(super) fn ends_flow(instruction: &Instruction) -> bool {
    instruction.guard.is_none() && matches!(instruction.op, Op::Jmpr { .. } | Op::Trap {})
}
