//! Library routines, compiled on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use harp_isa::ArchId;

use crate::error::CompileError;
use crate::function::CompiledFunction;
use crate::options::CompileOptions;
use crate::pipeline::compile;
use crate::routine::Routine;
use crate::source::SourceMap;
use crate::unit::{Routines, Unit};

/// The routines of one machine under one set of options, compiled on demand.
#[derive(Debug)]
pub(crate) struct Library {
    arch: ArchId,
    options: CompileOptions,
    compiled: Mutex<BTreeMap<&'static str, Arc<CompiledFunction>>>,
}

impl Library {
    pub(crate) fn new(arch: ArchId, options: &CompileOptions) -> Library {
        let options = CompileOptions { report_accesses: false, ..options.without_profile() };
        Library { arch, options, compiled: Mutex::default() }
    }

    /// Other threads wait meanwhile, most of them for the same routine.
    fn routine(
        &self,
        name: &'static str,
        routine: Routine,
    ) -> Result<Arc<CompiledFunction>, CompileError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(name) {
            return Ok(known.clone());
        }
        let sources = SourceMap::new();
        let unit = Unit::new(name, self.arch, &sources, &self.options);
        let new = Arc::new(compile(&routine.function(name), unit)?);
        compiled.insert(name, new.clone());
        Ok(new)
    }
}

impl Routines for Library {
    fn routines(
        &self,
        names: &mut dyn Iterator<Item = &str>,
    ) -> Result<Vec<Arc<CompiledFunction>>, CompileError> {
        let found: BTreeMap<&str, Routine> = names.filter_map(Routine::from_name).collect();
        found.into_iter().map(|(name, routine)| self.routine(name, routine)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_routine_comes_once_and_other_names_are_left_to_the_linker() {
        let arch = "harp32".parse().unwrap();
        let names = ["runtime.f64.mul", "f", "runtime.f64.add", "runtime.f64.mul", "runtime.boot"];
        let library = Library::new(arch, &CompileOptions::default());
        let found = library.routines(&mut names.into_iter()).unwrap();
        let found: Vec<_> = found.iter().map(|routine| routine.name()).collect();
        assert_eq!(found, ["runtime.f64.add", "runtime.f64.mul"]);
    }

    /// Callers need not check the stack's limit because of a routine, even with the fewest registers.
    #[test]
    fn routines_take_little_of_the_stack() {
        for arch in ["harp32", "4b8/2", "4w16/16/4/2+x", "harp64"] {
            let library = Library::new(arch.parse().unwrap(), &CompileOptions::default());
            for routine in library.routines(&mut Routine::names()).unwrap() {
                assert!(!routine.checks_stack(), "{arch} {}", routine.name());
            }
        }
    }
}
