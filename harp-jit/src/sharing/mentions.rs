//! Where candidates are mentioned: what liveness and colours need of the code. Most instructions mention none, and are gone
//! over only once.

use std::ops::Range;

use smallvec::SmallVec;

use super::candidates::Candidates;
use crate::vcode::{MInst, VCode};

/// What an instruction does with a candidate, which is given by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    Use(usize),
    Def(usize),
    /// The instruction is a call.
    Call,
}

impl Mention {
    /// The number of the candidate.
    pub(super) fn candidate(self) -> Option<usize> {
        match self {
            Mention::Use(number) | Mention::Def(number) => Some(number),
            Mention::Call => None,
        }
    }
}

/// The mentions of candidates in each block, but for its parameters. An instruction's uses come before its definitions.
#[derive(Debug)]
pub(super) struct Mentions {
    all: Vec<Mention>,
    blocks: Vec<Range<usize>>,
}

impl Mentions {
    pub(super) fn new(vcode: &VCode, candidates: &Candidates) -> Mentions {
        let mut mentions = Mentions { all: Vec::new(), blocks: Vec::new() };
        for block in &vcode.blocks {
            let start = mentions.all.len();
            vcode.insts[block.insts.clone()].iter().for_each(|inst| mentions.add(inst, candidates));
            mentions.blocks.push(start..mentions.all.len());
        }
        mentions
    }

    fn add(&mut self, inst: &MInst, candidates: &Candidates) {
        let mut defined: SmallVec<[usize; 4]> = SmallVec::new();
        inst.for_each_reg(|reg, access| match candidates.number(reg) {
            Some(number) if access.is_def() => defined.push(number),
            Some(number) => self.all.push(Mention::Use(number)),
            None => {}
        });
        if matches!(inst, MInst::Call { .. } | MInst::TailCall { .. }) {
            self.all.push(Mention::Call);
        }
        self.all.extend(defined.into_iter().rev().map(Mention::Def));
    }

    /// Those in a block, in the order of the code.
    pub(super) fn of(&self, block: usize) -> &[Mention] {
        &self.all[self.blocks[block].clone()]
    }
}
