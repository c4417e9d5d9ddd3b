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

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::record::Entry;
    use crate::testing::r;

    #[test]
    fn promises_that_need_the_same_are_proved_at_once() {
        let entry = Entry { uniform: vec![r(2)], ..Entry::default() };
        let promises =
            vec![(r(0), smallvec![r(0), r(2)]), (r(1), smallvec![r(2)]), (r(2), smallvec![r(0)])];
        let all = [
            Assumption { uniform: vec![r(2)], results: vec![r(1)] },
            Assumption { uniform: vec![r(2), r(0)], results: vec![r(0), r(2)] },
        ];
        assert_eq!(Assumption::all(&Record { entry, promises, ..Record::default() }), all);
    }
}
