//! Where the predicates are that were selected.

use smallvec::SmallVec;

use crate::places::Place;
use crate::record::{Name, Passes};
use crate::state::State;

impl State<'_> {
    /// From here on `name` is the value in `place` and no other.
    pub(crate) fn rename(&mut self, name: Name, place: Place) {
        self.unname(name);
        self.values[place.index()].names.push(name);
    }

    /// Whether `name` is the value in `place`, or may be anything.
    pub(crate) fn is_named(&self, place: Place, name: Name) -> bool {
        self.value(place).names.contains(&name) || self.free.contains(&name)
    }

    /// `place` goes by these names, too.
    pub(crate) fn add_names(&mut self, place: Place, names: &[Name]) {
        let known = &mut self.values[place.index()].names;
        for name in names {
            if !known.contains(name) {
                known.push(*name);
            }
        }
    }

    /// `name` is no value any more.
    fn unname(&mut self, name: Name) {
        self.free.remove(&name);
        for value in &mut self.values {
            value.names.retain(|other| *other != name);
        }
    }

    /// Assigns the arguments to the parameters, all at once.
    pub(crate) fn pass(&mut self, passes: &Passes) {
        if passes.is_empty() {
            return;
        }
        let is_param = |name: &Name| passes.iter().any(|(param, _)| param == name);
        let given = |is_here: &dyn Fn(&Name) -> bool| -> SmallVec<[Name; 1]> {
            passes.iter().filter(|(_, arg)| is_here(arg)).map(|&(param, _)| param).collect()
        };
        for names in self.values.iter_mut().map(|value| &mut value.names) {
            let given = given(&|name| names.contains(name));
            names.retain(|name| !is_param(name));
            names.extend(given);
        }
        let given = given(&|name| self.free.contains(name));
        self.free.retain(|name| !is_param(name));
        self.free.extend(given);
    }

    /// A value that is true exactly where others are goes by their names, too.
    pub(crate) fn find_names(&mut self, place: Place) {
        if !self.value(place).is_truth() {
            return;
        }
        let meant = self.active & !self.value(place).undefined;
        let truth = self.not_zero(place);
        let is_same =
            |index: usize| meant.disjoint(truth ^ self.not_zero(Place::from_index(index)));
        let others = self.values.iter().enumerate().filter(|&(index, value)| {
            !value.names.is_empty() && value.numbers.is_some() && index != place.index()
        });
        let same = others.filter(|&(index, _)| is_same(index));
        let names: SmallVec<[Name; 4]> =
            same.flat_map(|(_, value)| value.names.iter().copied()).collect();
        self.add_names(place, &names);
    }
}
