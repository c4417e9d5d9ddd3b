//! What callers make sure of, and what they get for it.

use harp_isa::Gpr;

use crate::record::Record;

/// What is proved at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assumption {
    /// Arguments that are taken to be uniform.
    pub(crate) uniform: Vec<Gpr>,
    /// Results that are uniform then.
    pub(crate) results: Vec<Gpr>,
}

impl Assumption {
    /// All that is to be proved of a function. The first assumption holds wherever it is called, the others where
    /// callers make use of a promise.
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
