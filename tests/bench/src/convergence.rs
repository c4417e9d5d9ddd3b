//! How much of a run is convergent: as proved by the compiler, and as measured (Lee et al. 2013, figure 4).

use std::collections::{BTreeMap, HashMap, HashSet};

use harp_emu::Issue;
use harp_isa::Opcode;
use harp_jit::{BlockConvergence, CompileOptions, ConvergenceProof, DivergenceStrategy, Kernel};

use super::HarpbenchError;
use super::figures::{Figure, FigureKind, with_means};
use super::measure::{Bench, options};
use super::oracle::most_common;
use super::summary::ratio;
use harp_runtime::LaunchObserver;
use serde::Serialize;

/// Counts of instructions that warps issued in a kernel, without the runtime library and called functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Convergence {
    /// All instructions.
    pub issued: u64,
    /// Those in blocks that are proved convergent, by the simplest proof.
    pub proved: BTreeMap<ConvergenceProof, u64>,
    /// Those that were executed by all lanes that had anything left to do except to return.
    pub together: u64,
    /// Those at places where in this run no lane was ever missing that had anything left to do: the most that any analysis
    /// of the code can prove.
    pub never_apart: u64,
    /// How many could have been executed by all lanes together at best, whatever the schedule: a bound, those that are
    /// proved and, between them, the longest common subsequence of the lanes' instruction streams.
    pub at_best: u64,
}

impl Convergence {
    /// Adds what another run has come to.
    pub(crate) fn add(&mut self, other: &Convergence) {
        self.issued += other.issued;
        self.together += other.together;
        self.never_apart += other.never_apart;
        self.at_best += other.at_best;
        for (&proof, issued) in &other.proved {
            *self.proved.entry(proof).or_default() += issued;
        }
    }

    /// The shares of [`convergence_figure`].
    pub(crate) fn shares(&self) -> [f64; 5] {
        let up_to = |proof| self.proved.range(..=proof).map(|(_, issued)| issued).sum();
        let (structure, uniformity, early_exit) = (
            up_to(ConvergenceProof::Structure),
            up_to(ConvergenceProof::Uniformity),
            up_to(ConvergenceProof::EarlyExit),
        );
        let counts = [structure, uniformity, early_exit, self.together, self.at_best];
        counts.map(|count| ratio(count, self.issued))
    }

    /// The share of instructions at places where no lane was ever missing.
    pub(crate) fn never_apart(&self) -> f64 {
        ratio(self.never_apart, self.issued)
    }
}

/// The names of the shares of [`convergence_figure`].
pub(crate) const SHARES: [&str; 5] =
    ["structure", "and uniformity", "and early exits", "in the run", "at best"];

/// The shares of a run's warp instructions in blocks that are proved convergent: by the structure of control flow
/// alone; also with uniform branches; also if lanes that have exited early are ignored. Next is the share that all
/// lanes executed together that had not exited, which is the most that could be proved for this input. The last bar is what
/// an oracle could reach that schedules lanes at will.
pub fn convergence_figure(runs: impl IntoIterator<Item = (String, Convergence)>) -> Figure {
    let bars = |found: Convergence| found.shares().map(Some).to_vec();
    let groups = runs.into_iter().map(|(name, found)| (name, bars(found))).collect();
    with_means(FigureKind::Convergence, SHARES.map(str::to_owned).to_vec(), groups)
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
        let mut places = Places::default();
        let found = watch.finish(&mut places);
        Ok(Convergence { never_apart: places.never_apart(), ..found })
    }
}

/// The instructions of kernels that were executed, and those of them that lanes were missing at.
#[derive(Default)]
pub(crate) struct Places {
    kernels: HashMap<String, Place>,
}

/// Those of a kernel, by their offsets.
#[derive(Default)]
struct Place {
    /// How often they were executed.
    issued: HashMap<u32, u64>,
    apart: HashSet<u32>,
}

impl Places {
    /// How many instructions were executed where no lane was ever missing.
    pub(crate) fn never_apart(&self) -> u64 {
        let of = |kernel: &Place| -> u64 {
            let together = kernel.issued.iter().filter(|(at, _)| !kernel.apart.contains(*at));
            together.map(|(_, issued)| issued).sum()
        };
        self.kernels.values().map(of).sum()
    }
}

/// A sequence of instructions that the same lanes executed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    lanes: u64,
    /// Whether they were about to return. None for the branch with which a side of a split begins: it belongs to what
    /// these lanes do next.
    returns: Option<bool>,
    /// Whether it is proved that all lanes do so.
    proved: bool,
    /// The instructions, by their offsets in the kernel.
    issued: Vec<u32>,
}

/// An observer that counts convergence.
pub(crate) struct Watch {
    name: String,
    blocks: Vec<BlockConvergence>,
    found: Convergence,
    /// The `split` at the end of each block that has one, by the block's start.
    splits: HashMap<u64, u64>,
    /// What each warp has executed since it entered the kernel.
    calls: HashMap<(u16, u8), Vec<Stretch>>,
    place: Place,
}

impl Watch {
    pub(crate) fn new(kernel: &Kernel) -> Watch {
        let blocks = kernel.entry().convergence().to_vec();
        let (found, splits, calls, place) = Default::default();
        Watch { name: kernel.name().to_owned(), blocks, found, splits, calls, place }
    }

    /// What was counted, but for [`Convergence::never_apart`], which depends on all launches of a kernel: the places are added
    /// to those of others.
    pub(crate) fn finish(mut self, places: &mut Places) -> Convergence {
        for call in std::mem::take(&mut self.calls).into_values() {
            self.end(&call);
        }
        let known = places.kernels.entry(self.name).or_default();
        for (at, issued) in self.place.issued {
            *known.issued.entry(at).or_default() += issued;
        }
        known.apart.extend(self.place.apart);
        self.found
    }

    /// Counts the instructions of a call that has ended.
    fn end(&mut self, call: &[Stretch]) {
        let (mut sum, apart) = (0, &mut self.place.apart);
        for (stretch, wanted) in wanted(call) {
            if stretch.lanes == wanted {
                sum += stretch.issued.len() as u64;
            } else {
                apart.extend(&stretch.issued);
            }
        }
        self.found.together += sum;
        self.found.at_best += at_best(call);
    }

    /// The block of the kernel that an instruction lies in.
    fn block(&self, offset: u64) -> Option<BlockConvergence> {
        let after = self.blocks.partition_point(|block| block.start <= offset);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        (offset < block.end).then_some(*block)
    }

    /// Whether the instruction stands behind the block's split, so that each side executes it for itself.
    fn is_of_side(&mut self, issue: &Issue<'_>, block: BlockConvergence) -> bool {
        if issue.instruction.op.opcode() == Opcode::Split {
            self.splits.insert(block.start, issue.pc);
        }
        self.splits.get(&block.start).is_some_and(|&split| issue.pc > split)
    }
}

impl LaunchObserver for Watch {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        let warp = (issue.core, issue.warp);
        let block = offset.and_then(|offset| Some((offset, self.block(offset)?)));
        let Some((offset, block)) = block else {
            // The warp is back in the library.
            let call = self.calls.remove(&warp).unwrap_or_default();
            self.end(&call);
            return;
        };
        self.found.issued += 1;
        // The sides that reconverge execute the `join` separately, too.
        let is_of_side = self.is_of_side(issue, block);
        let is_apart = is_of_side || issue.instruction.op.opcode() == Opcode::Join;
        let proof = block.proof.filter(|_| !is_apart);
        if let Some(proof) = proof {
            *self.found.proved.entry(proof).or_default() += 1;
        }
        let (lanes, returns) = (issue.state.active(), (!is_of_side).then_some(block.returns));
        // Kernels are smaller.
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        *self.place.issued.entry(offset).or_default() += 1;
        let proved = proof.is_some();
        let call = self.calls.entry(warp).or_default();
        match call.last_mut() {
            Some(last) if (last.lanes, last.returns, last.proved) == (lanes, returns, proved) => {
                last.issued.push(offset);
            }
            _ => call.push(Stretch { lanes, returns, proved, issued: vec![offset] }),
        }
    }
}

/// The stretches of a call, from its end, each with the lanes that had anything left to do. Returning counts as something
/// to do only for instructions of blocks that return.
fn wanted(call: &[Stretch]) -> impl Iterator<Item = (&Stretch, u64)> {
    let (mut left, mut at_all, mut returns) = (0, 0, true);
    call.iter().rev().map(move |stretch| {
        returns = stretch.returns.unwrap_or(returns);
        at_all |= stretch.lanes;
        if !returns {
            left |= stretch.lanes;
        }
        (stretch, if returns { at_all } else { left })
    })
}

/// How many of a call's instructions all lanes could have executed together at best: those that are proved, and what the
/// streams of lanes have in common between. That is for the lanes that are left at the end of what is between, as others
/// are not waited for.
fn at_best(call: &[Stretch]) -> u64 {
    let mut sum = 0;
    // What is between, from its end, and the lanes.
    let (mut between, mut lanes) = (Vec::new(), 0);
    for (stretch, wanted) in wanted(call) {
        if stretch.proved {
            sum += stretch.issued.len() as u64 + most_common(&streams(&between, lanes));
            between.clear();
        } else {
            if between.is_empty() {
                lanes = wanted;
            }
            between.push(stretch);
        }
    }
    sum + most_common(&streams(&between, lanes))
}

/// The instruction streams of lanes, different ones only. The stretches begin with the last.
fn streams(between: &[&Stretch], lanes: u64) -> Vec<Vec<u32>> {
    let of = |lane: u32| {
        let mine = between.iter().rev().filter(move |stretch| stretch.lanes >> lane & 1 != 0);
        mine.flat_map(|stretch| stretch.issued.iter().copied()).collect()
    };
    let lanes = (0..u64::BITS).filter(|lane| lanes >> lane & 1 != 0);
    let mut streams: Vec<Vec<u32>> = lanes.map(of).collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(lanes: u64, returns: bool, issued: u32) -> Stretch {
        let proved = lanes == 15;
        Stretch { lanes, returns: Some(returns), proved, issued: (0..issued).collect() }
    }

    /// What was executed together, and what could have been.
    fn found(call: &[Stretch]) -> [u64; 2] {
        let together = wanted(call).filter(|(stretch, wanted)| stretch.lanes == *wanted);
        [together.map(|(stretch, _)| stretch.issued.len() as u64).sum(), at_best(call)]
    }

    #[test]
    fn lanes_that_have_left_are_not_waited_for() {
        let call = [stretch(15, false, 5), stretch(3, false, 7), stretch(15, true, 2)];
        assert_eq!(found(&call), [14, 14]);
    }

    /// They leave by a branch of their own, after the others have gone on.
    #[test]
    fn lanes_that_leave_last_are_not_waited_for() {
        let leave = Stretch { returns: None, ..stretch(12, false, 2) };
        let call = [
            stretch(15, false, 5),
            Stretch { returns: None, ..stretch(3, false, 1) },
            // Of those that have not left, which is proved.
            Stretch { proved: true, ..stretch(3, false, 7) },
            stretch(3, true, 1),
            leave,
            stretch(12, true, 1),
            stretch(15, true, 1),
        ];
        // All but the joins, which an oracle lets both sides do together, and the branch of those that leave.
        assert_eq!(found(&call), [5 + 1 + 7 + 1, 15]);
    }

    #[test]
    fn lanes_that_come_back_are_missing() {
        let call = [stretch(15, false, 5), stretch(3, false, 7), stretch(15, false, 2)];
        assert_eq!(found(&call), [7, 7]);
        assert_eq!(found(&[]), [0, 0]);
    }

    /// Both sides of a branch do some of the same, one after the other.
    #[test]
    fn an_oracle_lets_sides_do_the_same_together() {
        let side = |lanes, issued: &[u32]| Stretch {
            lanes,
            returns: Some(false),
            proved: false,
            issued: issued.to_vec(),
        };
        let call = [
            stretch(15, false, 5),
            side(3, &[10, 11, 12, 13]),
            side(12, &[20, 11, 13]),
            stretch(15, false, 2),
            side(7, &[30, 31]),
            side(8, &[31]),
            stretch(15, false, 1),
        ];
        assert_eq!(found(&call), [8, 8 + 2 + 1]);
        // What happens to be executed together need not be what the oracle lets lanes do together.
        let happens = Stretch { proved: false, ..stretch(15, false, 1) };
        let call = [side(3, &[0, 7, 8]), happens, side(12, &[7, 8]), stretch(15, false, 1)];
        assert_eq!(found(&call), [1 + 1, 3 + 1]);
    }
}
