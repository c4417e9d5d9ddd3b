//! What a tier knows of programs: their regions, and places without one. A host may run any number of programs, so what
//! nobody has asked for in a while is forgotten.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::adopted::Fault;
use crate::record::Recorder;
use crate::region::{Key, Met};
use crate::rules::Assumed;
use crate::translated::Translated;

/// A number for the code of the function that a program promises something of: other programs have other code at the same
/// addresses. 0 without such a promise.
pub(crate) type Program = u64;

/// What is known of a program.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) regions: Vec<Arc<Translated>>,
    /// By the number of the piece of memory where the interpreter was seen.
    hot: HashMap<u64, Hot>,
    /// Heads that were given up.
    pub(crate) refused: HashSet<Key>,
    /// How often regions were given up that were not worth it.
    failures: u32,
    /// What is still assumed in regions of heads where more did not hold.
    pub(crate) assumed: HashMap<Key, Assumed>,
    /// What warps were like that came to entries of regions which did not expect them.
    pub(crate) met: Met,
    /// Whether accesses to words that are not aligned are common, as far as is known.
    pub(crate) has_odd_words: bool,
    /// A recording that had not ended when a launch did.
    pub(crate) recorder: Option<Recorder>,
    pub(crate) parts: Parts,
    /// When it was last asked for: the number of the question.
    asked: u64,
}

/// Regions of a program that left off where warps went on, and their blocks.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) number: u32,
    pub(crate) blocks: HashSet<Key>,
}

/// How much the interpreter does in a piece of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hot {
    /// Instructions that it has issued when it was seen there.
    pub(crate) issued: u64,
    /// The binary logarithm of how much longer than usual it must go on.
    pub(crate) patience: u32,
}

/// Bytes of a piece.
const PIECE_BYTES: u64 = 256;

impl Known {
    /// The piece that an address is in.
    pub(crate) fn hot(&mut self, pc: u64) -> &mut Hot {
        self.hot.entry(pc / PIECE_BYTES).or_default()
    }

    /// Whether regions of the program were given up so often that none is worth it any more.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failures > MOST_FAILURES
    }

    /// Gives a region up, to which warps came that were as in `met` and not as it expects. The next one at its head avoids what
    /// was wrong with it.
    pub(crate) fn give_up(&mut self, region: &Arc<Translated>, fault: Fault, met: Met) -> GivenUp {
        if fault == Fault::IsPart && self.parts.number >= MOST_PARTS {
            return GivenUp::Not;
        }
        let before = self.regions.len();
        self.regions.retain(|other| !Arc::ptr_eq(other, region));
        if self.regions.len() == before {
            return GivenUp::Before;
        }
        let (head, assumed) = (region.region.head, region.rules.assumed);
        let expects_less = self.met.add_all(met);
        let mut assume_less = false;
        match fault {
            Fault::IsPart => {
                self.parts.number += 1;
                self.parts.blocks.extend(region.region.blocks.keys().map(|key| key.first()));
                return GivenUp::Now;
            }
            Fault::HasOddWords => {
                self.has_odd_words = true;
                return GivenUp::Now;
            }
            Fault::Fails => assume_less = true,
            Fault::IsUnexpected => assume_less = !expects_less,
            Fault::IsShort => {}
        }
        self.failures += 1;
        let hot = self.hot(head.pc);
        hot.patience += 2;
        if hot.patience > MOST_PATIENCE {
            self.refused.insert(head);
        } else if assume_less {
            self.assumed.insert(head, assumed.less());
        }
        GivenUp::Now
    }
}

/// Whether a region is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It is from now on.
    Now,
    /// It was by another core, or forgotten.
    Before,
    /// It is not.
    Not,
}

/// Where regions were given up this often, nothing is translated any more.
const MOST_PATIENCE: u32 = 6;

/// Where this many regions of a program were given up, none is translated any more: each costs milliseconds.
const MOST_FAILURES: u32 = 8;

/// How often a program's regions are made anew because they were known in part.
const MOST_PARTS: u32 = 4;

/// What is known of all programs.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    all: HashMap<Program, Known>,
    questions: u64,
}

/// The most programs.
const MOST_PROGRAMS: usize = 256;
/// The most regions of all of them together. Tests, for which making regions takes long, see it reached.
const MOST_REGIONS: usize = if cfg!(test) { 16 } else { 256 };

impl Programs {
    /// What is known of a program. For one that is new another one may be forgotten.
    pub(crate) fn of(&mut self, program: Program) -> &mut Known {
        if self.all.len() >= MOST_PROGRAMS && !self.all.contains_key(&program) {
            self.forget_one(program);
        }
        self.questions += 1;
        let known = self.all.entry(program).or_default();
        known.asked = self.questions;
        known
    }

    /// Forgets other programs until there is room for another region of this one. Returns whether there is.
    pub(crate) fn make_room(&mut self, program: Program) -> bool {
        while self.all.values().map(|known| known.regions.len()).sum::<usize>() >= MOST_REGIONS {
            if !self.forget_one(program) {
                return false;
            }
        }
        true
    }

    /// Forgets the program that nobody has asked for in the longest time, but not this one. Cores that run its regions keep
    /// them until they look again. Returns whether there was one.
    fn forget_one(&mut self, kept: Program) -> bool {
        let others = self.all.iter().filter(|&(&program, _)| program != kept);
        let oldest = others.min_by_key(|(_, known)| known.asked).map(|(&program, _)| program);
        oldest.is_some_and(|program| self.all.remove(&program).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_were_asked_for_last_are_known() {
        let mut programs = Programs::default();
        let most = MOST_PROGRAMS as u64;
        for program in 0..most {
            programs.of(program).hot(0).issued = 1;
        }
        programs.of(0);
        for program in most..2 * most - 1 {
            programs.of(program).hot(0).issued = 1;
        }
        assert_eq!(programs.all.len(), MOST_PROGRAMS);
        assert_eq!([0, most, 1].map(|program| programs.of(program).hot(0).issued), [1, 1, 0]);
    }
}
