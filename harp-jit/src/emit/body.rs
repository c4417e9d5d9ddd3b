//! A function's instructions before they have addresses.
//!
//! The distances to other functions are not known yet, so calls and addresses stay symbolic. Jumps within the
//! function refer to items. Jumps that would not reach get *islands* here: places between other instructions
//! where a jump leads on to the next island or to the target.

use std::borrow::Cow;
use std::sync::OnceLock;

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::{Gpr, Instruction, Opcode, Pred};
use hashbrown::HashMap;

use super::Placed;
use super::code::ends_flow;
use crate::profile::BranchSite;
use crate::vcode::{FarCall, Symbol};
use harp_check::Note;

/// A piece of code, mostly one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Plain(Instruction),
    /// A jump to the item with this index.
    Jump {
        guard: Option<Pred>,
        target: usize,
    },
    Address {
        dst: Gpr,
        symbol: Symbol,
    },
    Call {
        symbol: Symbol,
        far: FarCall,
    },
    TailJump {
        symbol: Symbol,
        scratch: Gpr,
    },
}

impl Item {
    /// Whether control never reaches the next item from this one.
    pub(super) fn ends_flow(&self) -> bool {
        match self {
            Item::Jump { guard, .. } => guard.is_none(),
            Item::Plain(instruction) => ends_flow(instruction),
            Item::TailJump { .. } => true,
            Item::Address { .. } | Item::Call { .. } => false,
        }
    }
}

/// The instructions of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(super) items: Vec<Item>,
    /// The source location of each item.
    pub(super) places: Vec<SourceLoc>,
    /// The trap codes of `trap` items, ascending.
    pub(super) traps: Vec<(usize, TrapCode)>,
    /// The branches that items decide, ascending.
    pub(super) branches: Vec<(usize, BranchSite)>,
    /// The first item of each block, ascending, with the number of the block.
    pub(super) blocks: Vec<(usize, u32)>,
    /// A note on each item, if notes are kept; none on jumps of islands.
    pub(super) notes: Vec<Option<Note>>,
    /// The machine code, once it is known not to depend on where it is placed.
    pub(super) placed: OnceLock<Placed>,
}

impl Body {
    /// The source locations that occur.
    pub(crate) fn source_locs(&self) -> impl Iterator<Item = SourceLoc> + '_ {
        self.places.iter().copied()
    }

    /// The same code with islands where jumps do not reach. `size` gives the largest sizes of the items, none of
    /// which is above `largest`; `reach` is how far jumps reach.
    pub(super) fn with_islands(
        &self,
        size: impl Fn(&Item) -> usize,
        largest: usize,
        reach: usize,
    ) -> Cow<'_, Body> {
        let mut body = Cow::Borrowed(self);
        let jump = size(&Item::Jump { guard: None, target: 0 });
        debug_assert!(self.items.iter().all(|item| size(item) <= largest), "the largest size");
        // Most functions are so short that the items need not be looked at.
        if self.items.len() * largest + jump <= reach {
            return body;
        }
        if self.items.iter().map(&size).sum::<usize>() + jump <= reach {
            return body;
        }
        // Islands push jumps apart that were in reach before, so this takes several iterations.
        for _ in 0..ISLAND_ROUNDS {
            let sizes: Vec<usize> = body.items.iter().map(&size).collect();
            let Some(islands) = Islands::plan(&body.items, &sizes, reach, jump) else { break };
            body = Cow::Owned(islands.insert_into(&body));
        }
        body
    }
}

/// The largest number of iterations. Jumps that do not reach after that are refused when they are encoded.
const ISLAND_ROUNDS: u32 = 8;

/// The target of a jump while islands are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    Item(usize),
    /// The entry with this index among all islands' entries.
    Entry(usize),
}

/// Islands: groups of jumps in front of items.
struct Islands {
    /// The items in front of which islands stand, ascending.
    points: Vec<usize>,
    /// The entries: the index of the point, and the target of the jump.
    entries: Vec<(usize, Hop)>,
    /// The new targets of jumps that do not reach, by item.
    rerouted: HashMap<usize, Hop>,
}

impl Islands {
    /// Plans islands; none if every jump reaches. One hop covers at most half the reach: the rest is for the
    /// islands in between.
    fn plan(items: &[Item], sizes: &[usize], reach: usize, jump: usize) -> Option<Islands> {
        let mut offsets = Vec::with_capacity(items.len() + 1);
        offsets.push(0);
        for size in sizes {
            offsets.push(offsets[offsets.len() - 1] + size);
        }
        // A displacement is relative to the next instruction.
        let distance = |from: usize, to: usize| offsets[from].abs_diff(offsets[to]) + jump;
        let far: Vec<(usize, usize)> = (items.iter().enumerate())
            .filter_map(|(index, item)| match *item {
                Item::Jump { target, .. } if distance(index, target) > reach => {
                    Some((index, target))
                }
                _ => None,
            })
            .collect();
        if far.is_empty() {
            return None;
        }
        let points = points(items, &offsets, reach / 4);
        let mut islands = Islands { points, entries: Vec::new(), rerouted: HashMap::new() };
        let mut known = HashMap::new();
        for (from, target) in far {
            let way = islands.way(from, target, &offsets, reach / 2);
            // From the target backwards: each entry leads to the next one.
            let hop = way.into_iter().rev().fold(Hop::Item(target), |next, point| {
                let entry = *known.entry((point, target)).or_insert_with(|| {
                    islands.entries.push((point, next));
                    islands.entries.len() - 1
                });
                Hop::Entry(entry)
            });
            islands.rerouted.insert(from, hop);
        }
        Some(islands)
    }

    /// The points between item `from` and item `target`, each at most `reach` from the next, if there are
    /// enough of them.
    fn way(&self, from: usize, target: usize, offsets: &[usize], reach: usize) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = from;
        while offsets[at].abs_diff(offsets[target]) > reach {
            let within = |point: usize| offsets[at].abs_diff(offsets[point]) <= reach;
            let next = if target > at {
                let end = self.points.partition_point(|&point| point <= at || within(point));
                self.points[..end].last().copied().filter(|&point| point > at && point < target)
            } else {
                let start = self.points.partition_point(|&point| point < at && !within(point));
                self.points.get(start).copied().filter(|&point| point < at && point > target)
            };
            // Without a point the jump stays and fails when it is encoded.
            let Some(next) = next else { break };
            way.push(next);
            at = next;
        }
        way
    }

    fn insert_into(self, body: &Body) -> Body {
        let Islands { points, entries, rerouted } = self;
        let mut at_point: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, &(point, _)) in entries.iter().enumerate() {
            at_point.entry(point).or_default().push(number);
        }
        let mut result = Body::default();
        let mut moved = vec![0; body.items.len() + 1];
        let mut entry_places = vec![0; entries.len()];
        // Jumps of islands, to be filled in when all positions are known.
        let mut hops: Vec<(usize, Hop)> = Vec::new();
        let mut points = points.into_iter().peekable();
        for (index, &item) in body.items.iter().enumerate() {
            if points.next_if_eq(&index).is_some()
                && let Some(numbers) = at_point.get(&index)
            {
                let mut push = |result: &mut Body, hop| {
                    hops.push((result.items.len(), hop));
                    result.items.push(Item::Jump { guard: None, target: 0 });
                    result.places.push(SourceLoc::default());
                };
                if index > 0 && !body.items[index - 1].ends_flow() {
                    push(&mut result, Hop::Item(index));
                }
                for &number in numbers {
                    entry_places[number] = result.items.len();
                    push(&mut result, entries[number].1);
                }
            }
            moved[index] = result.items.len();
            if let Item::Jump { target, .. } = item {
                let hop = rerouted.get(&index).copied().unwrap_or(Hop::Item(target));
                hops.push((result.items.len(), hop));
            }
            result.items.push(item);
            result.places.push(body.places[index]);
            if let Some(note) = body.notes.get(index) {
                result.notes.resize(result.items.len() - 1, None);
                result.notes.push(note.clone());
            }
        }
        moved[body.items.len()] = result.items.len();
        for (index, hop) in hops {
            let place = match hop {
                Hop::Item(item) => moved[item],
                Hop::Entry(entry) => entry_places[entry],
            };
            if let Item::Jump { target, .. } = &mut result.items[index] {
                *target = place;
            }
        }
        result.blocks = body.blocks.iter().map(|&(index, id)| (moved[index], id)).collect();
        result.branches = body.branches.iter().map(|&(index, id)| (moved[index], id)).collect();
        result.traps = body.traps.iter().map(|&(index, code)| (moved[index], code)).collect();
        result
    }
}

/// Items in front of which an island may stand, about `spacing` bytes apart, but not between a `split` and
/// its branch.
fn points(items: &[Item], offsets: &[usize], spacing: usize) -> Vec<usize> {
    let mut points = Vec::new();
    let mut next = spacing;
    for index in 1..items.len() {
        let after_split = matches!(
            items[index - 1],
            Item::Plain(instruction) if instruction.op.opcode() == Opcode::Split
        );
        if offsets[index] >= next && !after_split {
            points.push(index);
            next = offsets[index] + spacing;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use harp_isa::Op;
    use proptest::prelude::*;

    use super::*;

    /// The plain items that control passes from the first item on; guarded jumps are taken as `taken` says.
    fn walk(items: &[Item], taken: &[bool], steps: usize) -> Vec<i64> {
        let (mut at, mut guarded, mut idle, mut seen) = (0, 0, 0, Vec::new());
        // Jumps in a cycle, through islands or not, see no more plain items.
        while let Some(item) = items.get(at)
            && seen.len() < steps
            && idle < 2000
        {
            idle = if matches!(item, Item::Plain(_)) { 0 } else { idle + 1 };
            at = match *item {
                Item::Plain(instruction) => {
                    if let Op::Ldi { imm, .. } = instruction.op {
                        seen.push(imm);
                    }
                    at + 1
                }
                Item::Jump { guard: None, target } => target,
                Item::Jump { guard: Some(_), target } => {
                    guarded += 1;
                    if taken[guarded % taken.len()] { target } else { at + 1 }
                }
                _ => at + 1,
            };
        }
        seen
    }

    proptest! {
        /// Random jumps, forwards and backwards, over any distance, on a machine that reaches 256 bytes.
        #[test]
        fn islands_lead_where_the_jumps_led(
            jumps in prop::collection::vec((0..1000_usize, 0..1000_usize, any::<bool>()), 0..12),
            taken in prop::collection::vec(any::<bool>(), 1..9),
        ) {
            let plain = |imm| {
                Item::Plain(Instruction::new(Op::Ldi { dst: Gpr::new(0), imm }))
            };
            let mut items: Vec<Item> = (0..1000).map(plain).collect();
            for (from, target, guarded) in jumps {
                let guard = guarded.then_some(Pred::new(0));
                items[from] = Item::Jump { guard, target };
            }
            let body = Body {
                places: vec![SourceLoc::default(); items.len()],
                items,
                ..Body::default()
            };
            let after = body.with_islands(|_| 4, 4, 256);
            prop_assert_eq!(
                walk(&body.items, &taken, 3000),
                walk(&after.items, &taken, 3000)
            );
            for (index, item) in after.items.iter().enumerate() {
                if let Item::Jump { target, .. } = *item {
                    prop_assert!((index + 1).abs_diff(target) * 4 <= 256, "{index} to {target}");
                }
            }
        }
    }
}
