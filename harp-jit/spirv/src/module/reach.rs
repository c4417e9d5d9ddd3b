//! What functions reach: the functions that they call, and the module's variables.

use hashbrown::HashSet;

use super::{Global, SpirvModule};
use crate::reader::Id;

impl SpirvModule {
    /// The variables of the module that a function and its callees use among those that are `wanted`, in the order of
    /// their ids.
    pub(crate) fn used_globals(&self, function: Id, wanted: impl Fn(&Global) -> bool) -> Vec<Id> {
        if !self.globals.values().any(&wanted) {
            return Vec::new();
        }
        let mut globals = HashSet::new();
        for function in self.reachable(function) {
            for block in &self.functions[&function].blocks {
                for at in block.start..block.end {
                    let ids = self.code.get(at).ids().map(|(_, id)| id);
                    globals.extend(ids.flat_map(|id| self.globals_of(id)));
                }
            }
        }
        let mut globals: Vec<Id> =
            globals.into_iter().filter(|id| wanted(&self.globals[id])).collect();
        globals.sort_unstable();
        globals
    }

    /// The variable that an id is, or those whose addresses a constant has.
    fn globals_of(&self, id: Id) -> Vec<Id> {
        if self.globals.contains_key(&id) {
            return vec![id];
        }
        self.constants.addresses(id, &self.types)
    }

    /// The functions that a function calls.
    pub(crate) fn callees(&self, function: Id) -> impl Iterator<Item = Id> {
        let callees = self.functions[&function].callees.iter().copied();
        callees.filter(|callee| self.functions.contains_key(callee))
    }

    /// A function and all that it calls, directly or not.
    pub(crate) fn reachable(&self, function: Id) -> Vec<Id> {
        let (mut found, mut seen) = (vec![function], HashSet::new());
        seen.insert(function);
        let mut next = 0;
        while next < found.len() {
            let callees = self.callees(found[next]);
            found.extend(callees.filter(|&callee| seen.insert(callee)));
            next += 1;
        }
        found
    }
}
