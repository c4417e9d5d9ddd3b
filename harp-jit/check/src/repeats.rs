//! Predicates that are computed again.
//!
//! Conditions are computed anew for each use. Lanes that are parted by one must be known to be parted by the other,
//! so what the first one found is remembered in a place of its own, which no instruction writes. That the
//! second one is the same is found by [numbering](crate::numbering) values, block by block. What is computed again in
//! other blocks is [another](crate::available) matter.

use smallvec::SmallVec;

use crate::frame::Frame;
use crate::numbering::{Numbering, ValueNumber};
use crate::places::Place;

/// Where a predicate is found that was computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) place: Place,
    /// Whether it is true where that is false.
    pub(crate) inverted: bool,
}

/// What an instruction computes again, or is computed again later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeated {
    /// Of what exchanges or masks a predicate, its predicates.
    pub(crate) sources: SmallVec<[ValueNumber; 2]>,
    /// Where its result is remembered.
    pub(crate) remembered: SmallVec<[Known; 1]>,
    /// Where its result is, because it was computed before.
    pub(crate) known: SmallVec<[Known; 1]>,
    /// Where nobody asks any more for what is remembered.
    pub(crate) dead: SmallVec<[Place; 1]>,
}

/// A predicate, where it was computed, and where it is again.
struct Test {
    value: usize,
    at: usize,
    /// Whether the first time it was the opposite.
    inverted: bool,
    again: Vec<(usize, bool)>,
}

/// Says of the instructions of a block which results are remembered, and asked for again. `elsewhere` gets the
/// conditions that may be computed again in other blocks.
pub(crate) fn find(
    frame: &Frame<'_>,
    insts: impl Iterator<Item = usize>,
    numbering: &mut Numbering<'_>,
    after: &mut [Repeated],
    mut elsewhere: Option<&mut Vec<Tested>>,
) {
    numbering.begin();
    let mut tests: Vec<Test> = Vec::new();
    for at in insts {
        after[at].sources = numbering.sources(frame.code.insts[at].instruction.op);
        let Some(number) = numbering.step(frame, at) else { continue };
        if let Some(tested) = &mut elsewhere
            && let Some(from) = numbering.computed_from(number.value)
        {
            tested.push(Tested { at, number, from });
        }
        match tests.iter_mut().find(|test| test.value == number.value) {
            Some(first) => first.again.push((at, number.inverted)),
            None => {
                let ValueNumber { value, inverted } = number;
                tests.push(Test { value, at, inverted, again: Vec::new() });
            }
        }
    }
    let mut used: Vec<(Place, Option<usize>)> =
        frame.places.remembered().map(|place| (place, None)).collect();
    for test in tests.iter().filter(|test| !test.again.is_empty()) {
        let is_free = |until: Option<usize>| until.is_none_or(|until| until < test.at);
        let Some((place, until)) = used.iter_mut().find(|(_, until)| is_free(*until)) else {
            continue;
        };
        after[test.at].remembered.push(Known { place: *place, inverted: false });
        for &(at, inverted) in &test.again {
            let inverted = inverted != test.inverted;
            after[at].known.push(Known { place: *place, inverted });
            *until = Some(at);
        }
        if let Some(last) = *until {
            after[last].dead.push(*place);
        }
    }
}

/// A condition that is computed from what places held at the beginning of its block, and hold still.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    pub(crate) at: usize,
    pub(crate) number: ValueNumber,
    pub(crate) from: SmallVec<[Place; 2]>,
}

#[cfg(test)]
mod tests {
    use harp_isa::Op;

    use super::*;
    use crate::testing::{p, r, with_ops};

    /// What is remembered and found again behind each of these operations.
    fn after(ops: &[Op]) -> Vec<Repeated> {
        with_ops(ops, |frame, _| {
            let mut after = vec![Repeated::default(); frame.code.insts.len()];
            find(frame, 0..ops.len(), &mut Numbering::new(frame.places), &mut after, None);
            after
        })
    }

    #[test]
    fn conditions_are_found_again_in_other_words() {
        let compared = Op::Eqp { dst: p(1), a: r(2), b: r(1) };
        let difference = Op::Sub { dst: r(3), a: r(1), b: r(2) };
        for (test, inverted) in [
            (Op::Rtop { dst: p(0), src: r(3) }, true),
            (Op::Iszero { dst: p(0), src: r(3) }, false),
        ] {
            let after = after(&[difference, test, compared]);
            let place = after[1].remembered.first().expect("it is asked for again").place;
            assert_eq!(*after[2].known, [Known { place, inverted }]);
        }
        let after = after(&[
            Op::Subi { dst: r(3), src: r(1), imm: 5 },
            Op::Iszero { dst: p(0), src: r(3) },
            Op::Ldi { dst: r(2), imm: 5 },
            Op::Eqp { dst: p(1), a: r(1), b: r(2) },
        ]);
        let place = after[1].remembered.first().expect("it is asked for again").place;
        assert_eq!(*after[3].known, [Known { place, inverted: false }]);
    }

    #[test]
    fn other_values_are_other_conditions() {
        let test = |dst| Op::Rtop { dst, src: r(1) };
        let again = after(&[test(p(0)), test(p(1))]);
        assert_eq!(again[1].known.len(), 1);
        let changed = after(&[test(p(0)), Op::Addi { dst: r(1), src: r(1), imm: 1 }, test(p(1))]);
        assert!(changed[0].remembered.is_empty());
        assert!(changed[2].known.is_empty());
        let other = after(&[test(p(0)), Op::Rtop { dst: p(1), src: r(2) }]);
        assert!(other[1].known.is_empty());
    }
}
