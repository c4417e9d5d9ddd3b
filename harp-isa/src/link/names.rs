//! Resolution of names.

use std::collections::HashMap;

use super::{LinkError, Linker, Placed, Symbol};
use crate::error_list::Gathered;

/// The names of all objects.
pub(super) struct Names<'a> {
    /// The address and object of each global chunk, by name.
    global: HashMap<&'a str, (u64, usize)>,
    /// The address of each other chunk, by object and name.
    local: HashMap<(usize, &'a str), u64>,
}

impl<'a> Names<'a> {
    /// Collects the names of the chunks. Names that are defined twice are errors and denote the first place;
    /// references to undefined names are errors, too.
    pub(super) fn collect(
        linker: &Linker<'_>,
        placed: &[Placed<'a>],
        errors: &mut Gathered<LinkError>,
    ) -> Names<'a> {
        let mut names = Names { global: HashMap::new(), local: HashMap::new() };
        let mut before = None;
        for chunk in placed {
            let Some(first) = names.define(chunk, before.replace(chunk)) else {
                continue;
            };
            errors.push_with(|| LinkError::Duplicate {
                name: chunk.chunk.name.clone(),
                first: linker.id(first),
                second: linker.id(chunk.object),
            });
        }
        names.report_unresolved(linker, placed, errors);
        names
    }

    /// Adds the name of `chunk`, which follows `before`. If the name is taken, and that is an error, returns the
    /// object that has it.
    fn define(&mut self, chunk: &Placed<'a>, before: Option<&Placed<'a>>) -> Option<usize> {
        let &Placed { object, chunk, address } = chunk;
        let name = chunk.name.as_str();
        if name.is_empty() {
            return None;
        }
        // Chunks that follow each other under one label share its name.
        let start = before.filter(|before| before.object == object && before.chunk.name == name);
        let global = self.global.get(name).map(|&(_, first)| first);
        let is_here = global == Some(object) || self.local.contains_key(&(object, name));
        if is_here && start.is_none() {
            return Some(object);
        }
        if !chunk.global {
            self.local.entry((object, name)).or_insert(address);
            return None;
        }
        self.global.entry(name).or_insert((address, object));
        // Of chunks that share a name only the first global one is reported.
        let is_reported = start.is_some_and(|start| start.chunk.global);
        global.filter(|&first| first != object && !is_reported)
    }

    fn report_unresolved(
        &self,
        linker: &Linker<'_>,
        placed: &[Placed<'a>],
        errors: &mut Gathered<LinkError>,
    ) {
        let references =
            placed.iter().flat_map(|from| from.chunk.references.iter().map(move |r| (from, r)));
        // In the order of the first references.
        let mut missing: Vec<(&Placed<'_>, _, usize)> = Vec::new();
        let mut seen = HashMap::new();
        for (from, reference) in references {
            let name = reference.name.as_str();
            if self.resolve(from.object, name).is_some() {
                continue;
            }
            let index = *seen.entry((from.object, name)).or_insert(missing.len());
            match missing.get_mut(index) {
                Some((_, _, others)) => *others += 1,
                None => missing.push((from, reference, 0)),
            }
        }
        for (from, reference, others) in missing {
            errors.push_with(|| LinkError::Unresolved {
                name: reference.name.clone(),
                site: linker.site(from, reference),
                others,
            });
        }
    }

    /// The address that `name` denotes in `object`.
    pub(super) fn resolve(&self, object: usize, name: &str) -> Option<u64> {
        let local = self.local.get(&(object, name)).copied();
        local.or_else(|| self.global.get(name).map(|&(address, _)| address))
    }

    pub(super) fn into_symbols(self) -> Vec<Symbol> {
        let global =
            self.global.into_iter().map(|(name, (address, object))| (name, address, true, object));
        let local =
            self.local.into_iter().map(|((object, name), address)| (name, address, false, object));
        let mut symbols: Vec<Symbol> = global
            .chain(local)
            .map(|(name, address, global, object)| Symbol {
                name: name.to_owned(),
                address,
                global,
                object,
            })
            .collect();
        symbols.sort_by(|a, b| (&a.name, a.address, a.object).cmp(&(&b.name, b.address, b.object)));
        symbols
    }
}
