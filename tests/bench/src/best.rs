//! The cheapest assignment of techniques to branches, found by trying.
//!
//! What a technique saves in one region hardly depends on the others, but for those inside and around it, and
//! what regions cost depends on the input, so each program and input is searched on its own:
//!
//! 1. Regions that can be predicated either are or are not. If there are few possibilities all are
//!    tried; else one decision after the other is turned around as long as that saves something, from
//!    several starts.
//! 2. From there regions are linearized that need not be, and turned around once more, as long as that
//!    saves something.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use harp_jit::{Assignment, BranchId, CompileOptions, DivergenceStrategy, Technique};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::measure::options;
use super::{Bench, HarpbenchError};

/// Up to so many possibilities all are tried.
const EXHAUSTIVE: usize = 256;

/// What a search found for a program with an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The program's name.
    pub program: String,
    /// The input's name.
    pub input: String,
    /// The machine.
    pub arch: String,
    /// [`Kernel::branch_fingerprint`](harp_jit::Kernel::branch_fingerprint) of what was searched.
    pub fingerprint: u64,
    /// The techniques of branches that neither split nor lie in a predicated region.
    pub techniques: Vec<Chosen>,
    /// What it costs: instructions that warps issue.
    pub warp_instructions: u64,
    /// Kernels that were run.
    pub tried: usize,
}

/// The technique for a branch and its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The branch.
    pub branch: BranchId,
    /// The technique.
    pub technique: Technique,
}

/// What searches found, as it is kept in files: an object of JSON a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Best {
    found: Vec<Found>,
}

/// Why a text does not hold what searches found.
#[derive(Debug, Error)]
#[error("line {line}: {source}")]
pub struct BestError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

impl Found {
    /// The assignment.
    pub fn assignment(&self) -> Arc<Assignment> {
        let choices = self.techniques.iter().map(|chosen| (chosen.branch, chosen.technique));
        Arc::new(choices.collect())
    }
}

impl Best {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// The first line that is none.
    pub fn parse(text: &str) -> Result<Best, BestError> {
        let lines = (1..).zip(text.lines());
        let found = lines.map(|(line, text)| {
            serde_json::from_str(text).map_err(|source| BestError { line, source })
        });
        Ok(Best { found: found.collect::<Result<_, _>>()? })
    }

    /// Adds what a search found.
    pub fn add(&mut self, found: Found) {
        self.found.push(found);
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let line = |found| serde_json::to_string(found).expect("numbers and names are JSON") + "\n";
        self.found.iter().map(line).collect()
    }

    /// What was found for a program, its input and machine; none if the kernel has other branches by now.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be compiled.
    pub fn of(&self, bench: &Bench) -> Result<Option<&Found>, HarpbenchError> {
        let arch = bench.arch().to_string();
        let is_it = |found: &&Found| {
            (found.program.as_str(), found.input.as_str(), &found.arch)
                == (bench.program.name, bench.input.name(), &arch)
        };
        let Some(found) = self.found.iter().find(is_it) else { return Ok(None) };
        let fingerprint = bench.compile(&plain())?.branch_fingerprint();
        Ok((found.fingerprint == fingerprint).then_some(found))
    }
}

fn plain() -> CompileOptions {
    options(DivergenceStrategy::SplitJoin)
}

/// A region, by its first branch.
struct Region {
    branch: BranchId,
    predicable: bool,
    nested: bool,
    /// Regions around it.
    around: Vec<BranchId>,
}

/// The technique of each region that has another one than by default.
type Choice = BTreeMap<BranchId, Technique>;

struct Search<'a> {
    bench: &'a Bench,
    regions: Vec<Region>,
    /// What was tried, and what it cost.
    costs: HashMap<Choice, u64>,
}

impl Found {
    /// Searches for the cheapest assignment for a program and its input.
    ///
    /// # Errors
    ///
    /// If the program cannot be compiled or run.
    pub fn search(bench: &Bench) -> Result<Found, HarpbenchError> {
        let report = bench.explain(&plain())?;
        let mut regions = Vec::new();
        for region in &report.regions {
            let Some(&branch) = region.branches.first() else { continue };
            let parents = std::iter::successors(region.parent, |&at| report.regions[at].parent);
            let around = parents.filter_map(|at| report.regions[at].branches.first().copied());
            regions.push(Region {
                branch,
                predicable: region.costs.is_some(),
                nested: region.nested,
                around: around.collect(),
            });
        }
        let mut search = Search { bench, regions, costs: HashMap::new() };
        let mut best = match search.possibilities() {
            Some(choices) => search.cheapest(choices)?,
            None => search.descend()?,
        };
        best = search.improve(best, &[Technique::Linear, Technique::Predicate])?;
        let techniques =
            best.iter().map(|(&branch, &technique)| Chosen { branch, technique }).collect();
        Ok(Found {
            program: bench.program.name.to_owned(),
            input: bench.input.name().to_owned(),
            arch: bench.arch().to_string(),
            fingerprint: report.fingerprint,
            techniques,
            warp_instructions: search.cost(&best)?,
            tried: search.costs.len(),
        })
    }
}

impl Search<'_> {
    fn cost(&mut self, choice: &Choice) -> Result<u64, HarpbenchError> {
        if let Some(&cost) = self.costs.get(choice) {
            return Ok(cost);
        }
        let assignment = choice.iter().map(|(&branch, &technique)| (branch, technique)).collect();
        let options = CompileOptions { assignment: Some(Arc::new(assignment)), ..plain() };
        let kernel = self.bench.compile(&options)?;
        let (outcome, correct) = self.bench.outcome(&kernel)?;
        // What computes something else is no way to manage divergence.
        let cost = if correct { outcome.warp_instructions() } else { u64::MAX };
        self.costs.insert(choice.clone(), cost);
        Ok(cost)
    }

    /// The cheapest of some; the first of those that cost the same.
    fn cheapest(&mut self, choices: Vec<Choice>) -> Result<Choice, HarpbenchError> {
        let mut best = Choice::new();
        let mut least = self.cost(&best)?;
        for choice in choices {
            let cost = self.cost(&choice)?;
            if cost < least {
                (best, least) = (choice, cost);
            }
        }
        Ok(best)
    }

    /// Every choice of regions to predicate, none inside another; none if there are too many.
    fn possibilities(&self) -> Option<Vec<Choice>> {
        let mut choices = vec![Choice::new()];
        for region in self.regions.iter().filter(|region| region.predicable) {
            let lies_apart = |choice: &&Choice| {
                let others = self.regions.iter().filter(|other| choice.contains_key(&other.branch));
                let mut others = others.peekable();
                others.all(|other| {
                    !region.around.contains(&other.branch) && !other.around.contains(&region.branch)
                })
            };
            let with = |choice: &Choice| {
                let mut choice = choice.clone();
                choice.insert(region.branch, Technique::Predicate);
                choice
            };
            let more: Vec<_> = choices.iter().filter(lies_apart).map(with).collect();
            choices.extend(more);
            if choices.len() > EXHAUSTIVE {
                return None;
            }
        }
        Some(choices)
    }

    /// The best that comes of nothing predicated, and of everything.
    fn descend(&mut self) -> Result<Choice, HarpbenchError> {
        let predicable = self.regions.iter().filter(|region| region.predicable);
        let all = predicable.map(|region| (region.branch, Technique::Predicate)).collect();
        let mut ends = Vec::new();
        for start in [Choice::new(), all] {
            ends.push(self.improve(start, &[Technique::Predicate])?);
        }
        self.cheapest(ends)
    }

    /// Turns decisions around, the one that saves most first, as long as one saves something.
    fn improve(
        &mut self,
        mut best: Choice,
        techniques: &[Technique],
    ) -> Result<Choice, HarpbenchError> {
        loop {
            let next = self.cheapest(self.neighbours(&best, techniques))?;
            if self.cost(&next)? >= self.cost(&best)? {
                return Ok(best);
            }
            best = next;
        }
    }

    /// All choices that differ in one region.
    fn neighbours(&self, choice: &Choice, techniques: &[Technique]) -> Vec<Choice> {
        let mut found = Vec::new();
        for region in &self.regions {
            let mut without = choice.clone();
            if without.remove(&region.branch).is_some() {
                found.push(without.clone());
            }
            for &technique in techniques {
                let possible = match technique {
                    Technique::Predicate => region.predicable,
                    _ => region.nested,
                };
                if possible && choice.get(&region.branch) != Some(&technique) {
                    let mut with = without.clone();
                    with.insert(region.branch, technique);
                    found.push(with);
                }
            }
        }
        found
    }
}
