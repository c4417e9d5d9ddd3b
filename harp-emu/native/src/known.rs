//! What a tier knows of programs: their regions, and places without one. A host may run any number of programs, so what
//! nobody has asked for in a while is forgotten.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::record::Recorder;
use crate::region::Key;
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
    pub(crate) failures: u32,
    /// What is still assumed in regions of heads where more did not hold.
    pub(crate) assumed: HashMap<Key, Assumed>,
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
}

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
