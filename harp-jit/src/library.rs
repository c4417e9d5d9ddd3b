//! Functions that many programs need: compiled on demand, once in a process for each machine and set of options.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cranelift_codegen::ir::Function;
use harp_isa::ArchId;
use hashbrown::HashMap;

use crate::error::CompileError;
use crate::function::CompiledFunction;
use crate::options::CompileOptions;
use crate::pipeline::compile;
use crate::routine::Routine;
use crate::source::SourceMap;
use crate::unit::{Routines, Unit};

/// How many libraries are kept that no compiler uses: more than programs have machines and options, few enough that
/// tests with many of them need little memory.
const KEPT: usize = 16;

/// The last libraries, the most recently used one first.
static LIBRARIES: Mutex<Vec<Arc<Library>>> = Mutex::new(Vec::new());

/// The functions of one machine under one set of options.
#[derive(Debug)]
pub(crate) struct Library {
    arch: ArchId,
    options: CompileOptions,
    routines: Mutex<BTreeMap<&'static str, Arc<CompiledFunction>>>,
    shared: Mutex<HashMap<Shared, Arc<CompiledFunction>>>,
}

/// A function that lives as long as the process, by its address, and the name that it gets.
type Shared = (usize, String);

impl Library {
    /// The library for a machine and options, of which a profile, rows and what reports accesses are left out: its
    /// functions have no branches to profile and no positions, and access no memory of their callers.
    pub(crate) fn of(arch: ArchId, options: &CompileOptions) -> Arc<Library> {
        let options =
            CompileOptions { report_accesses: false, by_rows: true, ..options.without_profile() };
        let mut libraries = lock(&LIBRARIES);
        let known =
            libraries.iter().position(|known| known.arch == arch && known.options == options);
        let library = match known {
            Some(place) => libraries.remove(place),
            None => Arc::new(Library {
                arch,
                options,
                routines: Mutex::default(),
                shared: Mutex::default(),
            }),
        };
        libraries.insert(0, library.clone());
        libraries.truncate(KEPT);
        library
    }

    /// Other threads wait meanwhile, most of them for the same routine.
    fn routine(
        &self,
        name: &'static str,
        routine: Routine,
    ) -> Result<Arc<CompiledFunction>, CompileError> {
        let mut compiled = lock(&self.routines);
        if let Some(known) = compiled.get(name) {
            return Ok(known.clone());
        }
        let new = self.compile(name, &routine.function(name), None)?;
        compiled.insert(name, new.clone());
        Ok(new)
    }

    /// A function that refers to nothing but routines, compiled as `name`.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub(crate) fn shared(
        &self,
        name: &str,
        function: &'static Function,
    ) -> Result<Arc<CompiledFunction>, CompileError> {
        let key = (ptr::from_ref(function).addr(), name.to_owned());
        if let Some(known) = lock(&self.shared).get(&key) {
            return Ok(known.clone());
        }
        // Not under the lock: functions take their time, and two threads that compile one get the same.
        let new = self.compile(name, function, Some(self))?;
        Ok(lock(&self.shared).entry(key).or_insert(new).clone())
    }

    fn compile(
        &self,
        name: &str,
        function: &Function,
        library: Option<&dyn Routines>,
    ) -> Result<Arc<CompiledFunction>, CompileError> {
        let sources = SourceMap::new();
        let unit = Unit { library, ..Unit::new(name, self.arch, &sources, &self.options) };
        Ok(Arc::new(compile(function, unit)?))
    }
}

/// What a thread that panicked has left is whole: entries are added at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let library = Library::of(arch, &CompileOptions::default());
        let found = library.routines(&mut names.into_iter()).unwrap();
        let found: Vec<_> = found.iter().map(|routine| routine.name()).collect();
        assert_eq!(found, ["runtime.f64.add", "runtime.f64.mul"]);
    }

    /// Callers need not check the stack's limit because of a routine, even with the fewest registers.
    #[test]
    fn routines_take_little_of_the_stack() {
        for arch in ["harp32", "4b8/2", "4w16/16/4/2+x", "harp64"] {
            let library = Library::of(arch.parse().unwrap(), &CompileOptions::default());
            for routine in library.routines(&mut Routine::names()).unwrap() {
                assert!(!routine.checks_stack(), "{arch} {}", routine.name());
            }
        }
    }

    #[test]
    fn functions_are_compiled_once_for_all_compilers_of_a_machine() {
        static EMPTY: std::sync::OnceLock<Function> = std::sync::OnceLock::new();
        let function = EMPTY.get_or_init(|| {
            let mut functions =
                cranelift_reader::parse_functions("function %f() fast {\nblock0:\n return\n}");
            functions.as_mut().ok().and_then(Vec::pop).unwrap()
        });
        let options = CompileOptions::default();
        let [harp32, harp64] = ["harp32", "harp64"].map(|arch| arch.parse().unwrap());
        let shared = |arch, options: &CompileOptions, name| {
            Library::of(arch, options).shared(name, function).unwrap()
        };
        let first = shared(harp32, &options, "f");
        assert!(Arc::ptr_eq(&first, &shared(harp32, &options, "f")));
        assert_eq!(shared(harp32, &options, "g").name(), "g");
        assert_eq!(shared(harp64, &options, "f").arch, harp64);
        let other = CompileOptions { stack_bytes: options.stack_bytes * 2, ..options.clone() };
        assert_eq!(shared(harp32, &other, "f").lane_stack_bytes, other.stack_bytes);
    }
}
