//! How much of a run is convergent: as proved by the compiler, and as measured (Lee et al. 2013, figure 4).

use std::collections::{BTreeMap, HashMap};

use harp_emu::Issue;
use harp_isa::Opcode;
use harp_jit::{BlockConvergence, CompileOptions, ConvergenceProof, DivergenceStrategy, Kernel};

use super::HarpbenchError;
use super::figures::{Figure, FigureKind, with_means};
use super::measure::{Bench, options};
use super::summary::ratio;
use harp_runtime::LaunchObserver;

/// Counts of instructions that warps issued in a kernel, without the runtime library and called functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Convergence {
    /// All instructions.
    pub issued: u64,
    /// Those in blocks that are proved convergent, by the simplest proof.
    pub proved: BTreeMap<ConvergenceProof, u64>,
    /// Those that were executed by all lanes that had anything left to do except to return.
    pub together: u64,
}

/// The shares of a run's warp instructions in blocks that are proved convergent: by the structure of control flow
/// alone; also with uniform branches; also if lanes that have exited early are ignored. The last bar is the share
/// that all lanes executed together that had not exited, which is the most that could be proved for this input.
pub fn convergence_figure(runs: impl IntoIterator<Item = (String, Convergence)>) -> Figure {
    let bars = |found: &Convergence| {
        let up_to = |proof| found.proved.range(..=proof).map(|(_, issued)| issued).sum();
        let (structure, uniformity, early_exit) = (
            up_to(ConvergenceProof::Structure),
            up_to(ConvergenceProof::Uniformity),
            up_to(ConvergenceProof::EarlyExit),
        );
        let counts = [structure, uniformity, early_exit, found.together];
        counts.map(|count| Some(ratio(count, found.issued))).to_vec()
    };
    let groups = runs.into_iter().map(|(name, found)| (name, bars(&found))).collect();
    let series = ["structure", "and uniformity", "and early exits", "in the run"];
    with_means(FigureKind::Convergence, series.map(str::to_owned).to_vec(), groups)
}

impl Bench {
    /// How much of a run is convergent, under [`DivergenceStrategy::SplitJoin`].
    ///
    /// # Errors
    ///
    /// As [`run`](Bench::run).
    pub fn convergence(&self) -> Result<Convergence, HarpbenchError> {
        let options = options(DivergenceStrategy::SplitJoin);
        let kernel = self.compile(&CompileOptions { convergence: true, ..options })?;
        let mut watch = Watch::new(&kernel);
        self.launches(&kernel, &mut |device, kernel, config, args| {
            device.launch_observed(kernel, config, args, &mut watch)
        })?;
        Ok(watch.finish())
    }
}

/// A sequence of instructions that the same lanes executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    lanes: u64,
    /// Whether they were about to return.
    returns: bool,
    issued: u64,
}

/// An observer that counts convergence.
struct Watch {
    blocks: Vec<BlockConvergence>,
    found: Convergence,
    /// The `split` at the end of each block that has one, by the block's start.
    splits: HashMap<u64, u64>,
    /// What each warp has executed since it entered the kernel.
    calls: HashMap<(u16, u8), Vec<Stretch>>,
}

impl Watch {
    fn new(kernel: &Kernel) -> Watch {
        let blocks = kernel.entry().convergence().to_vec();
        let (splits, calls) = Default::default();
        Watch { blocks, found: Convergence::default(), splits, calls }
    }

    fn finish(mut self) -> Convergence {
        for call in std::mem::take(&mut self.calls).into_values() {
            self.found.together += together(&call);
        }
        self.found
    }

    /// The block of the kernel that an instruction lies in.
    fn block(&self, offset: u64) -> Option<BlockConvergence> {
        let after = self.blocks.partition_point(|block| block.start <= offset);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        (offset < block.end).then_some(*block)
    }

    /// Whether all lanes that execute the block execute the instruction together. The sides of a split execute
    /// the branch behind it, and the `join` where both reconverge, separately.
    fn is_of_block(&mut self, issue: &Issue<'_>, block: BlockConvergence) -> bool {
        match issue.instruction.op.opcode() {
            Opcode::Join => return false,
            Opcode::Split => {
                self.splits.insert(block.start, issue.pc);
            }
            _ => {}
        }
        self.splits.get(&block.start).is_none_or(|&split| issue.pc <= split)
    }
}

impl LaunchObserver for Watch {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        let warp = (issue.core, issue.warp);
        let Some(block) = offset.and_then(|offset| self.block(offset)) else {
            // The warp is back in the library.
            let call = self.calls.remove(&warp).unwrap_or_default();
            self.found.together += together(&call);
            return;
        };
        self.found.issued += 1;
        if let Some(proof) = block.proof.filter(|_| self.is_of_block(issue, block)) {
            *self.found.proved.entry(proof).or_default() += 1;
        }
        let (lanes, returns) = (issue.state.active(), block.returns);
        let call = self.calls.entry(warp).or_default();
        match call.last_mut() {
            Some(last) if (last.lanes, last.returns) == (lanes, returns) => last.issued += 1,
            _ => call.push(Stretch { lanes, returns, issued: 1 }),
        }
    }
}

/// The number of a call's instructions that were executed by all lanes that had anything left to do. Returning
/// counts as something to do only for instructions of blocks that return.
fn together(call: &[Stretch]) -> u64 {
    let (mut left, mut at_all, mut sum) = (0, 0, 0);
    for stretch in call.iter().rev() {
        at_all |= stretch.lanes;
        if !stretch.returns {
            left |= stretch.lanes;
        }
        let wanted = if stretch.returns { at_all } else { left };
        if stretch.lanes == wanted {
            sum += stretch.issued;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(lanes: u64, returns: bool, issued: u64) -> Stretch {
        Stretch { lanes, returns, issued }
    }

    #[test]
    fn lanes_that_have_left_are_not_waited_for() {
        let call = [stretch(15, false, 5), stretch(3, false, 7), stretch(15, true, 2)];
        assert_eq!(together(&call), 14);
    }

    #[test]
    fn lanes_that_come_back_are_missing() {
        let call = [stretch(15, false, 5), stretch(3, false, 7), stretch(15, false, 2)];
        assert_eq!(together(&call), 7);
        assert_eq!(together(&[]), 0);
    }
}
