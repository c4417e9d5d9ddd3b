//! Where the warps of a launch begin: the block to which each one comes first with all its lanes.
//!
//! It heads no loop, and still a program of many short launches is there for long.

use std::collections::{BTreeMap, HashMap};

use crate::region::Key;

/// Instructions that the interpreter issues at most, as a rule, for each warp that begins, where a region is wanted there.
const RARELY: u64 = 512;
/// How often a region is wanted there: it may be given up, as what was seen when it was formed was a part.
const MOST_TRIES: u32 = 4;

/// Blocks where warps begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beginnings {
    /// By their addresses.
    all: HashMap<u64, Beginning>,
    /// The warp that has just started, and where.
    started: Option<(u16, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Beginning {
    /// How many warps have begun there in this recording.
    count: u64,
    tries: u32,
    ways: Ways,
}

/// How warps come to where they begin: where they had issued nothing, and how many instructions it took from there.
pub(crate) type Ways = BTreeMap<u64, u64>;

impl Beginnings {
    /// Counts anew.
    pub(crate) fn start(&mut self) {
        self.started = None;
        self.all.values_mut().for_each(|beginning| beginning.count = 0);
    }

    /// Looks at a warp that has issued so many instructions.
    pub(crate) fn look_at(&mut self, warp: u16, key: Key, issued: u64) {
        if issued == 0 {
            self.started = Some((warp, key.pc));
        }
        if let Some((_, from)) = self.started.take_if(|(started, _)| *started == warp && key.full) {
            let beginning = self.all.entry(key.pc).or_default();
            beginning.count += 1;
            beginning.ways.insert(from, issued);
        }
    }

    /// The block where most warps began, if that is worth a region, of `issued` instructions that were recorded.
    pub(crate) fn hottest(&mut self, issued: u64) -> Option<Key> {
        let is_hot = |beginning: &Beginning| {
            beginning.count * RARELY >= issued && beginning.tries < MOST_TRIES
        };
        let hot = self.all.iter_mut().filter(|(_, beginning)| is_hot(beginning));
        let (&pc, beginning) = hot.max_by_key(|(pc, beginning)| (beginning.count, **pc))?;
        beginning.tries += 1;
        Some(Key::new(pc, true))
    }

    /// How warps come to a block, if they begin there.
    pub(crate) fn ways(&self, key: Key) -> Option<&Ways> {
        let beginning = self.all.get(&key.pc).filter(|_| key.full)?;
        Some(&beginning.ways)
    }
}
