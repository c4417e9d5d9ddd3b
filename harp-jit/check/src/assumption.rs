//! The arguments that callers promise to be uniform, and the results that are uniform in return.

use harp_isa::Gpr;

use crate::record::Record;

/// One implication that is proved: uniform arguments give uniform results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assumption {
    /// The arguments that are assumed to be uniform.
    pub(crate) uniform: Vec<Gpr>,
    /// The results that must then be uniform.
    pub(crate) results: Vec<Gpr>,
}

impl Assumption {
    /// All that is to be proved of a function. The first assumption holds at every call site, the others only where
    /// a caller relies on the promise.
    pub(crate) fn all(record: &Record) -> Vec<Assumption> {
        let always = &record.entry.uniform;
        let mut all = vec![Assumption { uniform: always.clone(), results: Vec::new() }];
        for (result, needs) in &record.promises {
            let more = needs.iter().filter(|reg| !always.contains(reg));
            let uniform: Vec<Gpr> = always.iter().chain(more).copied().collect();
            match all.iter_mut().find(|one| one.uniform == uniform) {
                Some(one) => one.results.push(*result),
                None => all.push(Assumption { uniform, results: vec![*result] }),
            }
        }
        all
    }
}
