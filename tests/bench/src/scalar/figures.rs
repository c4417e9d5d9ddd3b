//! The figures, beside what Lee et al. report.

use super::{Compared, Cost, WIDTHS};
use crate::convergence::{Convergence, SHARES};
use crate::figures::{Figure, FigureKind};

/// The name of the filter, without which means are given, too.
const FILTER: &str = "fir";

/// A count of which what is shared saves some.
type Count = fn(&Cost) -> u64;

/// The counts that figures 5 and 6 compare, and at each width what is left of them in the mean of Lee et al. (2013,
/// sections 4.2), where they say.
const COUNTS: [(FigureKind, Count, [Option<f64>; 4]); 8] = [
    (FigureKind::StaticInstructions, |cost| cost.instructions, [Some(1.02); 4]),
    (FigureKind::WarpRegisters, |cost| cost.registers.into(), [Some(0.80), None, None, Some(0.67)]),
    (FigureKind::Issued, |cost| cost.issued.all(), [None; 4]),
    (FigureKind::Operations, |cost| cost.activity.operations, [Some(0.77), None, None, Some(0.71)]),
    (FigureKind::Reads, |cost| cost.activity.reads, [Some(0.76), None, None, Some(0.69)]),
    (FigureKind::Writes, |cost| cost.activity.writes, [Some(0.76), None, None, Some(0.69)]),
    (FigureKind::Addresses, |cost| cost.activity.addresses, [Some(0.63), None, None, Some(0.53)]),
    (FigureKind::Data, |cost| cost.activity.data, [Some(0.70), None, None, Some(0.62)]),
];

/// The shares of figure 4 at 4 lanes in the mean of Lee et al. (2013, section 4.1), in the order of [`SHARES`].
const THEIR_SHARES: [f64; 5] = [0.32, 0.57, 0.66, 0.97, 0.97];

/// Figure 4: how much of a run is convergent. Figures 5 and 6: each count with shared registers, relative to that
/// without; of issued instructions also by kind.
pub fn scalar_figures(runs: &[Compared]) -> Vec<Figure> {
    let mut figures = vec![convergence(runs)];
    figures.extend(COUNTS.iter().map(|&(kind, count, theirs)| relative(runs, kind, count, theirs)));
    figures.push(by_kind(runs));
    figures
}

/// The shares of figure 4 at each width. Behind them stands how much of what an oracle could reach is proved, and how much of
/// it is at places where in this run no lane was ever missing, beyond which no analysis of the code can get. In a row of
/// means these are ratios of the means.
fn convergence(runs: &[Compared]) -> Figure {
    let bars = |shares: [f64; 5], never_apart: Option<f64>| {
        let [_, _, proved, _, at_best] = shares;
        let of_best = [Some(proved), never_apart];
        let of_best = of_best.map(|part| part.filter(|_| at_best > 0.0).map(|part| part / at_best));
        shares.into_iter().map(Some).chain(of_best).collect::<Vec<_>>()
    };
    let named = |run: &Compared| {
        let found = &run.convergence;
        let name = format!("{} {}", run.program, run.lanes);
        (name, bars(found.shares(), Some(found.never_apart())))
    };
    let mut groups: Vec<_> = runs.iter().map(named).collect();
    for lanes in WIDTHS {
        let found: Vec<&Convergence> =
            runs.iter().filter(|run| run.lanes == lanes).map(|run| &run.convergence).collect();
        let mean = |share: &dyn Fn(&Convergence) -> f64| {
            let sum: f64 = found.iter().map(|found| share(found)).sum();
            sum / found.len().max(1) as f64
        };
        let shares = std::array::from_fn(|at| mean(&|found| found.shares()[at]));
        let never_apart = mean(&Convergence::never_apart);
        groups.push((format!("mean {lanes}"), bars(shares, Some(never_apart))));
    }
    groups.push((format!("Lee et al. {}", WIDTHS[0]), bars(THEIR_SHARES, None)));
    let series =
        SHARES.into_iter().chain(["proved of best", "never apart"]).map(str::to_owned).collect();
    Figure { kind: FigureKind::Convergence, series, groups }
}

fn names(runs: &[Compared]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.program) {
            names.push(run.program);
        }
    }
    names
}

fn relative(runs: &[Compared], kind: FigureKind, count: Count, theirs: [Option<f64>; 4]) -> Figure {
    let ratio = |program: &str, lanes: u8| {
        let run = runs.iter().find(|run| run.program == program && run.lanes == lanes)?;
        let (base, shared) = (count(&run.base), count(&run.shared));
        (base > 0).then(|| shared as f64 / base as f64)
    };
    let names = names(runs);
    let bars = |program: &str| WIDTHS.map(|lanes| ratio(program, lanes)).to_vec();
    let mut groups: Vec<_> = names.iter().map(|name| ((*name).to_owned(), bars(name))).collect();
    let mean = |without: Option<&str>| -> Vec<Option<f64>> {
        let at = |width: usize| {
            let counted = groups.iter().filter(|(name, _)| Some(name.as_str()) != without);
            let ratios: Vec<f64> = counted.filter_map(|(_, bars)| bars[width]).collect();
            (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
        };
        (0..WIDTHS.len()).map(at).collect()
    };
    let (all, others) = (mean(None), mean(Some(FILTER)));
    groups.push(("mean".to_owned(), all));
    groups.push((format!("mean without {FILTER}"), others));
    groups.push(("Lee et al.".to_owned(), theirs.to_vec()));
    Figure { kind, series: WIDTHS.map(|lanes| format!("{lanes} lanes")).to_vec(), groups }
}

/// The parts of issued instructions (figure 6a) at each width, relative to all without shared registers.
fn by_kind(runs: &[Compared]) -> Figure {
    let mut groups = Vec::new();
    for program in names(runs) {
        for run in runs.iter().filter(|run| run.program == program) {
            let all = run.base.issued.all().max(1) as f64;
            let issued = run.shared.issued;
            let parts = [issued.scalar, issued.convergent, issued.together, issued.diverged];
            let bars = parts.map(|part| Some(part as f64 / all)).to_vec();
            groups.push((format!("{program} {}", run.lanes), bars));
        }
    }
    let series = ["scalar", "convergent", "together", "diverged"].map(str::to_owned).to_vec();
    Figure { kind: FigureKind::IssuedByKind, series, groups }
}
