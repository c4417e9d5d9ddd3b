//! The figures of Gupta 2016 that compare techniques of divergence management, measured here, and the type of
//! all figures.

use std::sync::Arc;

use harp_isa::ArchId;
use harp_jit::{Assignment, CompileOptions, DivergenceStrategy, Execution, OptLevel, Technique};

use super::measure::options;
use super::summary::{geometric_mean, ratio};
use super::{Bench, HarpbenchError, Input, Program, Row, Scale, Strategy};

/// Which figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FigureKind {
    /// Gupta's figures 17 and 18.
    Structure,
    /// Figure 4 of Lee et al. 2013.
    Convergence,
    /// Gupta's figure 20.
    Convertible,
    /// Gupta's figure 21.
    Divergence,
    /// Gupta's figure 22, which counts instructions of lanes.
    Lanes,
    /// The same with instructions of warps.
    Warps,
    /// Figure 5a of Lee et al. 2013.
    StaticInstructions,
    /// Figure 5b of Lee et al. 2013.
    WarpRegisters,
    /// Figure 6a of Lee et al. 2013, all instructions.
    Issued,
    /// Figure 6a of Lee et al. 2013, by what is known of the lanes.
    IssuedByKind,
    /// Figure 6b of Lee et al. 2013.
    Operations,
    /// Figure 6c of Lee et al. 2013.
    Reads,
    /// Figure 6d of Lee et al. 2013.
    Writes,
    /// Figure 6e of Lee et al. 2013.
    Addresses,
    /// Figure 6f of Lee et al. 2013.
    Data,
}

/// A figure's numbers: groups of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Which one it is.
    pub kind: FigureKind,
    /// The names of the bars in each group.
    pub series: Vec<String>,
    /// Each group's name and bars; `None` where nothing was measured.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

impl FigureKind {
    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            FigureKind::Structure => "figure-17-18",
            FigureKind::Convergence => "lee-figure-4",
            FigureKind::Convertible => "figure-20",
            FigureKind::Divergence => "figure-21",
            FigureKind::Lanes => "figure-22-lanes",
            FigureKind::Warps => "figure-22-warps",
            FigureKind::StaticInstructions => "lee-figure-5a",
            FigureKind::WarpRegisters => "lee-figure-5b",
            FigureKind::Issued => "lee-figure-6a",
            FigureKind::IssuedByKind => "lee-figure-6a-kinds",
            FigureKind::Operations => "lee-figure-6b",
            FigureKind::Reads => "lee-figure-6c",
            FigureKind::Writes => "lee-figure-6d",
            FigureKind::Addresses => "lee-figure-6e",
            FigureKind::Data => "lee-figure-6f",
        }
    }

    /// What it shows.
    pub const fn title(self) -> &'static str {
        match self {
            FigureKind::Structure => {
                "Instructions of one lane without splits and joins, plain branches = 1"
            }
            FigureKind::Convergence => "Share of warp instructions that all lanes execute together",
            FigureKind::Convertible => "Share of conditional branches that are predicated",
            FigureKind::Divergence => "Share of branch executions on which lanes disagree",
            FigureKind::Lanes => "Lane instructions, split-join = 1",
            FigureKind::Warps => "Warp instructions, split-join = 1",
            FigureKind::StaticInstructions => {
                "Instructions of the code, without shared registers = 1"
            }
            FigureKind::WarpRegisters => "Registers of a warp, without shared ones = 1",
            FigureKind::Issued => "Instructions issued, without shared registers = 1",
            FigureKind::IssuedByKind => {
                "Instructions issued by kind, all without shared registers = 1"
            }
            FigureKind::Operations => "Operations, without shared registers = 1",
            FigureKind::Reads => "Operands read, without shared registers = 1",
            FigureKind::Writes => "Operands written, without shared registers = 1",
            FigureKind::Addresses => "Addresses of memory, without shared registers = 1",
            FigureKind::Data => "Data of memory, without shared registers = 1",
        }
    }
}

/// Figures 17 and 18: the cost of a program on a machine with one lane, relative to optimized code with plain
/// branches. The bars are: all regions with divergent branches linearized, only those where split and join
/// do not suffice, and plain branches without the mid-end. Splits and joins, which one lane does not need, are not
/// counted. The input is the random one.
///
/// # Errors
///
/// If a program cannot be measured.
pub fn structure_figure(
    programs: &[&'static Program],
    scale: Scale,
    arch: ArchId,
) -> Result<Figure, HarpbenchError> {
    let lane = arch.with_lanes(1).unwrap_or(arch);
    let mut groups = Vec::new();
    for program in programs {
        let bench = Bench::new(program, Input::Random, scale, lane)?;
        let simt = options(DivergenceStrategy::SplitJoin);
        let plain = CompileOptions { execution: Execution::SingleLane, ..simt.clone() };
        let regions = bench.explain(&simt)?.regions;
        let branches = regions.iter().flat_map(|region| &region.branches);
        let all: Assignment = branches.map(|&branch| (branch, Technique::Linear)).collect();
        let ways = [
            CompileOptions { assignment: Some(Arc::new(all)), ..simt.clone() },
            simt,
            CompileOptions { opt_level: OptLevel::None, ..plain.clone() },
        ];
        let cost = |options: &CompileOptions| -> Result<u64, HarpbenchError> {
            let run = bench.run(options)?;
            Ok(run.outcome.warp_instructions() - run.splits_and_joins)
        };
        let base = cost(&plain)?;
        let costs = ways.iter().map(|way| Ok(Some(ratio(cost(way)?, base))));
        let costs: Result<Vec<_>, HarpbenchError> = costs.collect();
        groups.push((program.name.to_owned(), costs?));
    }
    let series = ["structurized", "linearized where needed", "not optimized"];
    Ok(with_means(FigureKind::Structure, series.map(str::to_owned).to_vec(), groups))
}

/// Figure 20: the share of conditional branches that are predicated under
/// [`DivergenceStrategy::Predicate`]: of all branches, as Gupta counts; of the divergent branches; and of the
/// divergent branches of regions without loops, calls, traps and votes.
///
/// # Errors
///
/// If a program cannot be compiled.
pub fn branch_figure(
    programs: &[&'static Program],
    arch: ArchId,
) -> Result<Figure, HarpbenchError> {
    let mut groups = Vec::new();
    let mut sums = [(0, 0); 3];
    for program in programs {
        let bench = Bench::new(program, Input::Random, Scale::Small, arch)?;
        let predicate = options(DivergenceStrategy::Predicate);
        let report = bench.explain(&predicate)?;
        let convertible = report.regions.iter().filter(|region| region.costs.is_some());
        let convertible: usize = convertible.map(|region| region.branches.len()).sum();
        let stats = bench.compile(&predicate)?.stats();
        let divergent = stats.predicated_divergent_branches;
        let shares = [
            (stats.predicated_branches, report.branches.len()),
            (divergent, stats.divergent_branches),
            (divergent, convertible),
        ];
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum = (sum.0 + share.0, sum.1 + share.1);
        }
        groups.push((program.name.to_owned(), shares.map(share).to_vec()));
    }
    groups.push(("all".to_owned(), sums.map(share).to_vec()));
    let series = ["of all branches", "of divergent ones", "of divergent acyclic ones"];
    Ok(Figure { kind: FigureKind::Convertible, series: series.map(str::to_owned).to_vec(), groups })
}

fn share((part, whole): (usize, usize)) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Figures 21 and 22, from a table of runs, with a group for each program and input. Runs with a profile of
/// another input are left out.
pub fn run_figures(rows: &[Row]) -> Vec<Figure> {
    let own = |row: &&Row| row.trained_on.is_none_or(|input| input == row.input);
    let rows: Vec<&Row> = rows.iter().filter(own).collect();
    let mut strategies: Vec<Strategy> = rows.iter().map(|row| row.strategy).collect();
    strategies.sort_unstable();
    strategies.dedup();
    let names = || strategies.iter().map(|strategy| strategy.name().to_owned()).collect();
    let mut divergence = Vec::new();
    let (mut lanes, mut warps) = (Vec::new(), Vec::new());
    for base in rows.iter().filter(|row| row.strategy == Strategy::SplitJoin) {
        let name = format!("{} {}", base.program, base.input);
        let divergent = ratio(base.divergent_executions, base.branches);
        divergence.push((name.clone(), vec![Some(divergent)]));
        let relative = |count: fn(&Row) -> u64| -> Vec<Option<f64>> {
            let of = |strategy: &Strategy| {
                let same = |row: &&&Row| {
                    (row.program, row.input, &row.arch) == (base.program, base.input, &base.arch)
                        && row.strategy == *strategy
                };
                rows.iter().find(same).map(|row| ratio(count(row), count(base)))
            };
            strategies.iter().map(of).collect()
        };
        lanes.push((name.clone(), relative(|row| row.lane_instructions)));
        warps.push((name, relative(|row| row.warp_instructions)));
    }
    vec![
        Figure {
            kind: FigureKind::Divergence,
            series: vec!["divergent".to_owned()],
            groups: divergence,
        },
        with_means(FigureKind::Lanes, names(), lanes),
        with_means(FigureKind::Warps, names(), warps),
    ]
}

/// The figure with the geometric means of all groups as the last group.
pub(super) fn with_means(
    kind: FigureKind,
    series: Vec<String>,
    mut groups: Vec<(String, Vec<Option<f64>>)>,
) -> Figure {
    let mean = |at| geometric_mean(groups.iter().filter_map(|(_, bars)| bars[at]));
    let means: Vec<_> = (0..series.len()).map(mean).collect();
    groups.push(("geometric mean".to_owned(), means));
    Figure { kind, series, groups }
}
