//! The buffer of instructions with jumps to blocks that are not placed yet.
//!
//! Blocks that do nothing but jump are passed by, and a jump to the next instruction is left out.
//! A block that holds a `join` is never such a block, so no path loses its reconvergence.

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::{ArchId, Instruction, Layout, Op, Opcode, Pred};

use super::{EmitError, Emitted, Label};

/// A jump that does not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeTooLarge {
    /// The distance in bytes.
    pub(crate) given: u64,
    /// The largest distance in bytes.
    pub(crate) limit: u64,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Plain(Instruction),
    Jump { guard: Option<Pred>, target: Label },
}

impl Item {
    /// Whether control never reaches the next item from this one.
    fn ends_flow(&self) -> bool {
        match self {
            Item::Jump { guard, .. } => guard.is_none(),
            Item::Plain(Instruction { guard, op }) => {
                guard.is_none() && matches!(op, Op::Jmpr { .. } | Op::Trap {})
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct CodeBuffer {
    arch: ArchId,
    items: Vec<Item>,
    places: Vec<SourceLoc>,
    traps: Vec<(usize, TrapCode)>,
    /// The index of the first item of each block.
    starts: Vec<usize>,
    place: SourceLoc,
}

impl CodeBuffer {
    pub(super) fn new(arch: ArchId, blocks: usize) -> CodeBuffer {
        CodeBuffer {
            arch,
            items: Vec::new(),
            places: Vec::new(),
            traps: Vec::new(),
            starts: vec![0; blocks],
            place: SourceLoc::default(),
        }
    }

    /// The next item begins block `label`.
    pub(super) fn bind(&mut self, label: Label) {
        self.starts[label.index()] = self.items.len();
    }

    /// What follows was built there.
    pub(super) fn set_place(&mut self, place: SourceLoc) {
        self.place = place;
    }

    /// The next item is a `trap` with this code.
    pub(super) fn set_trap(&mut self, code: TrapCode) {
        self.traps.push((self.items.len(), code));
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        self.item(Item::Plain(instruction));
    }

    pub(super) fn jump(&mut self, guard: Option<Pred>, target: Label) {
        self.item(Item::Jump { guard, target });
    }

    fn item(&mut self, item: Item) {
        self.items.push(item);
        self.places.push(self.place);
    }

    /// Where a jump to `target` ends up: past items that are left out and through blocks that only
    /// jump on. A cycle of such blocks is an endless loop and stays.
    fn destination(&self, target: Label) -> usize {
        let mut index = self.starts[target.index()];
        for _ in 0..self.starts.len() {
            match self.items.get(index) {
                Some(Item::Jump { guard: None, target }) => index = self.starts[target.index()],
                _ => break,
            }
        }
        index
    }

    /// Which items need not be encoded: jumps of passed-by blocks that nothing falls into, and jumps
    /// to what comes next anyway.
    fn removable(&self) -> Vec<bool> {
        let mut targeted = vec![false; self.items.len() + 1];
        for item in &self.items {
            if let Item::Jump { target, .. } = *item {
                targeted[self.destination(target)] = true;
            }
        }
        let mut removed: Vec<bool> = (0..self.items.len())
            .map(|index| {
                let passes_on = matches!(self.items[index], Item::Jump { guard: None, .. });
                let falls_in = index == 0 || !self.items[index - 1].ends_flow();
                passes_on && !targeted[index] && !falls_in
            })
            .collect();
        for index in (0..self.items.len()).rev() {
            let Item::Jump { target, .. } = self.items[index] else { continue };
            let destination = self.destination(target);
            removed[index] |=
                destination > index && (index + 1..destination).all(|between| removed[between]);
        }
        removed
    }

    /// Encodes everything.
    pub(super) fn finish(self) -> Result<Emitted, EmitError> {
        let removed = self.removable();
        let layout = Layout::new(self.arch);
        let mut offsets = Vec::with_capacity(self.items.len() + 1);
        let mut offset = 0;
        for (item, &removed) in self.items.iter().zip(&removed) {
            offsets.push(offset);
            offset += match item {
                _ if removed => 0,
                Item::Plain(instruction) => layout.size(instruction.op.opcode()),
                Item::Jump { .. } => layout.size(Opcode::Jmpi),
            };
        }
        offsets.push(offset);

        let mut emitted = Emitted::default();
        for (index, item) in self.items.iter().enumerate().filter(|&(index, _)| !removed[index]) {
            let instruction = match *item {
                Item::Plain(instruction) => instruction,
                Item::Jump { guard, target } => {
                    let rel = offsets[self.destination(target)] as i64 - offsets[index + 1] as i64;
                    let range = layout.immediate_range(Opcode::Jmpi);
                    if !range.contains(&rel) {
                        let limit = range.end().unsigned_abs();
                        let given = rel.unsigned_abs();
                        return Err(EmitError::TooLarge(CodeTooLarge { given, limit }));
                    }
                    Instruction { guard, op: Op::Jmpi { rel } }
                }
            };
            if emitted.places.last().is_none_or(|&(_, last)| last != self.places[index]) {
                emitted.places.push((offsets[index] as u32, self.places[index]));
            }
            harp_isa::encode(&instruction, self.arch, &mut emitted.bytes)
                .map_err(EmitError::Encode)?;
        }
        emitted.traps =
            self.traps.iter().map(|&(index, code)| (offsets[index] as u32, code)).collect();
        Ok(emitted)
    }
}
