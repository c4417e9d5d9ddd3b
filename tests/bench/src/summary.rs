//! A summary of a table of runs by strategy.

use std::collections::BTreeMap;
use std::fmt;

use super::{Row, Strategy};

/// Costs of strategies relative to each other, in warp instructions; means are geometric. A field is `None` or
/// empty if the table lacks its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Each strategy's mean over programs and inputs, relative to split and join.
    pub means: BTreeMap<Strategy, f64>,
    /// Adaptive without a profile: the worst run, compared with the better pure strategy.
    pub adaptive_worst: Option<Ratio>,
    /// Adaptive with a profile of the same input: the worst run, compared with the best assignment.
    pub profile_worst: Option<Ratio>,
    /// Adaptive with a profile of another input: the mean, compared with the best assignment.
    pub cross_mean: Option<f64>,
    /// Adaptive with a profile of another input: the worst run, compared with the best assignment.
    pub cross_worst: Option<Ratio>,
    /// Each program's means of adaptive with a profile of the same input, relative to the two pure strategies:
    /// split and join, predication.
    pub programs: BTreeMap<&'static str, [f64; 2]>,
}

/// A run compared with another of the same program and input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The program.
    pub program: &'static str,
    /// The input.
    pub input: &'static str,
    /// The input that the profile is of, if there is one.
    pub trained_on: Option<&'static str>,
    /// The run's cost, divided by the other's.
    pub ratio: f64,
}

impl Summary {
    /// How much cheaper than both pure strategies a program has to be to count as better.
    pub const BETTER: f64 = 0.05;

    /// Summarizes a table.
    pub fn new(rows: &[Row]) -> Summary {
        let table = Table { rows };
        let own = |row: &&Row| row.trained_on.is_none_or(|input| input == row.input);
        let mut means = BTreeMap::new();
        for strategy in Strategy::ALL {
            let of_strategy = rows.iter().filter(own).filter(|row| row.strategy == strategy);
            let ratios = of_strategy.filter_map(|row| table.ratio(row, &[Strategy::SplitJoin]));
            if let Some(mean) = geometric_mean(ratios.map(|ratio| ratio.ratio)) {
                means.insert(strategy, mean);
            }
        }
        let pure = [Strategy::SplitJoin, Strategy::Predicate];
        let compared = |strategy: Strategy, with: &[Strategy], same: bool| -> Vec<Ratio> {
            let of_strategy = rows.iter().filter(|row| row.strategy == strategy);
            let wanted = of_strategy.filter(|row| own(row) == same);
            wanted.filter_map(|row| table.ratio(row, with)).collect()
        };
        let adaptive = compared(Strategy::Adaptive, &pure, true);
        let profile = compared(Strategy::AdaptiveProfile, &[Strategy::Best], true);
        let cross = compared(Strategy::AdaptiveProfile, &[Strategy::Best], false);
        let mut programs = BTreeMap::new();
        for row in rows {
            let mean = |with| {
                let all = compared(Strategy::AdaptiveProfile, &[with], true);
                let of_program = all.into_iter().filter(|ratio| ratio.program == row.program);
                geometric_mean(of_program.map(|ratio| ratio.ratio))
            };
            if let (false, [Some(split), Some(predicate)]) =
                (programs.contains_key(row.program), pure.map(mean))
            {
                programs.insert(row.program, [split, predicate]);
            }
        }
        Summary {
            means,
            adaptive_worst: worst(&adaptive),
            profile_worst: worst(&profile),
            cross_mean: geometric_mean(cross.iter().map(|ratio| ratio.ratio)),
            cross_worst: worst(&cross),
            programs,
        }
    }

    /// The programs that are better with a profile than under both pure strategies.
    pub fn better(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_better = |ratios: &[f64; 2]| ratios.iter().all(|ratio| *ratio <= 1.0 - Self::BETTER);
        self.programs.iter().filter(move |(_, ratios)| is_better(ratios)).map(|(name, _)| *name)
    }
}

struct Table<'a> {
    rows: &'a [Row],
}

impl Table<'_> {
    /// A row compared with the cheapest of some strategies for the same program, input and machine.
    fn ratio(&self, row: &Row, with: &[Strategy]) -> Option<Ratio> {
        let same = |other: &&Row| {
            (other.program, other.input, &other.arch) == (row.program, row.input, &row.arch)
        };
        let others = self.rows.iter().filter(same).filter(|other| with.contains(&other.strategy));
        let least = others.map(|other| other.warp_instructions).min()?;
        let Row { program, input, trained_on, .. } = *row;
        Some(Ratio { program, input, trained_on, ratio: ratio(row.warp_instructions, least) })
    }
}

/// One count divided by another that is not 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The geometric mean; `None` if there are no numbers.
pub(super) fn geometric_mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_u32), |(sum, count), x| (sum + x.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

fn worst(ratios: &[Ratio]) -> Option<Ratio> {
    ratios.iter().copied().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({}, {}", self.ratio, self.program, self.input)?;
        match self.trained_on {
            Some(input) => write!(f, ", trained on {input})"),
            None => f.write_str(")"),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Warp instructions relative to split-join, geometric means:")?;
        for (strategy, mean) in &self.means {
            writeln!(f, "  {:<16}  {mean:.3}", strategy.name())?;
        }
        if let Some(worst) = self.adaptive_worst {
            writeln!(f, "adaptive against the better pure strategy, worst: {worst}")?;
        }
        if let Some(worst) = self.profile_worst {
            writeln!(f, "adaptive-profile against best, worst: {worst}")?;
        }
        if let (Some(mean), Some(worst)) = (self.cross_mean, self.cross_worst) {
            writeln!(f, "trained on other inputs, against best: mean {mean:.3}, worst {worst}")?;
        }
        for (program, [split, predicate]) in &self.programs {
            writeln!(
                f,
                "  {program:<16}  adaptive-profile {split:.3} of split-join, {predicate:.3} of predicate"
            )?;
        }
        if !self.programs.is_empty() {
            let percent = 100.0 * Self::BETTER;
            let names: Vec<_> = self.better().collect();
            let count = names.len();
            writeln!(f, "better than both by {percent} %: {count} ({})", names.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(strategy: Strategy, trained_on: Option<&'static str>, cost: u64) -> Row {
        Row {
            program: "scan",
            input: "random",
            arch: "harp32".to_owned(),
            strategy,
            trained_on,
            warp_instructions: cost,
            lane_instructions: 0,
            branches: 0,
            divergent_executions: 0,
            correct: true,
        }
    }

    #[test]
    fn strategies_are_compared_for_the_same_program_and_input() {
        let summary = Summary::new(&[
            row(Strategy::SplitJoin, None, 100),
            row(Strategy::Predicate, None, 200),
            row(Strategy::Adaptive, None, 110),
            row(Strategy::AdaptiveProfile, Some("random"), 90),
            row(Strategy::AdaptiveProfile, Some("worst"), 120),
            row(Strategy::Best, None, 80),
            Row { input: "worst", ..row(Strategy::SplitJoin, None, 1) },
        ]);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        close(summary.means[&Strategy::Predicate], 2.0);
        close(summary.means[&Strategy::AdaptiveProfile], 0.9);
        close(summary.adaptive_worst.map_or(0.0, |worst| worst.ratio), 1.1);
        close(summary.profile_worst.map_or(0.0, |worst| worst.ratio), 1.125);
        close(summary.cross_mean.unwrap_or_default(), 1.5);
        assert_eq!(summary.better().collect::<Vec<_>>(), ["scan"]);
        assert_eq!(Summary::new(&[]), Summary::default());
    }
}
