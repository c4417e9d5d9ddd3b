//! A search for the cheapest assignment of techniques to branches.
//!
//! The savings of a technique in one region hardly depend on other regions, except for those inside and around
//! it. The costs of regions depend on the input, so each program and input is searched on its own:
//!
//! 1. Each region that can be predicated is predicated or not. If there are few combinations all are tried. Else
//!    decisions are reversed one at a time, from several starts, as long as that saves something.
//! 2. From there the search goes on in the same way, and also tries to linearize regions that need not be, as
//!    long as that saves something.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use harp_jit::{Assignment, BranchId, CompileOptions, DivergenceStrategy, Technique};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::measure::options;
use super::{Bench, HarpbenchError};

/// The most combinations of which all are tried.
const EXHAUSTIVE: usize = 256;

/// The result of a search for a program with an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The program's name.
    pub program: String,
    /// The input's name.
    pub input: String,
    /// The machine.
    pub arch: String,
    /// [`Kernel::branch_fingerprint`](harp_jit::Kernel::branch_fingerprint) of the kernel that was searched.
    pub fingerprint: u64,
    /// The techniques of branches that neither split nor lie in a predicated region.
    pub techniques: Vec<Chosen>,
    /// Its cost: instructions that warps issue.
    pub warp_instructions: u64,
    /// The number of kernels that were run.
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

/// The results of searches, stored in files with one JSON object per line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Best {
    found: Vec<Found>,
}

/// Why a text does not hold results of searches.
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
    /// The first line that is not a result.
    pub fn parse(text: &str) -> Result<Best, BestError> {
        let lines = (1..).zip(text.lines());
        let found = lines.map(|(line, text)| {
            serde_json::from_str(text).map_err(|source| BestError { line, source })
        });
        Ok(Best { found: found.collect::<Result<_, _>>()? })
    }

    /// Adds the result of a search.
    pub fn add(&mut self, found: Found) {
        self.found.push(found);
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let line = |found| serde_json::to_string(found).expect("numbers and names are JSON") + "\n";
        self.found.iter().map(line).collect()
    }

    /// The result for a program, its input and machine; `None` if the kernel's branches have changed since.
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

/// The technique of each region that does not have the default one.
type Choice = BTreeMap<BranchId, Technique>;

struct Search<'a> {
    bench: &'a Bench,
    regions: Vec<Region>,
    /// The choices that were tried, and their costs.
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
        // A kernel with wrong results must not win.
        let cost = if correct { outcome.warp_instructions() } else { u64::MAX };
        self.costs.insert(choice.clone(), cost);
        Ok(cost)
    }

    /// The cheapest of the choices and the default; the first of those that cost the same.
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

    /// Every choice of regions to predicate, none of them inside another; `None` if there are too many.
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

    /// The better of two searches: one starts with no region predicated, the other with all.
    fn descend(&mut self) -> Result<Choice, HarpbenchError> {
        let predicable = self.regions.iter().filter(|region| region.predicable);
        let all = predicable.map(|region| (region.branch, Technique::Predicate)).collect();
        let mut ends = Vec::new();
        for start in [Choice::new(), all] {
            ends.push(self.improve(start, &[Technique::Predicate])?);
        }
        self.cheapest(ends)
    }

    /// Changes one decision after the other, each time the one that saves most, as long as one saves something.
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
