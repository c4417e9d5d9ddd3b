//! Predicates that are computed again.
//!
//! Conditions are computed anew for each use. Lanes that are parted by one must be known to be parted by the other,
//! so what the first one found is remembered in a place of its own, which no instruction writes. That the
//! second one is the same is found by [numbering](super::numbering) values, block by block. What is computed again in
//! other blocks is [another](super::available) matter.

use smallvec::SmallVec;

use super::code::Code;
use super::live::{Accessed, After};
use super::numbering::{Numbered, Numbering};
use super::places::{Place, Places};

/// Where a predicate is found that was computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) place: Place,
    /// Whether it is true where that is false.
    pub(super) inverted: bool,
}

/// A predicate, where it was computed, and where it is again.
struct Test {
    value: usize,
    at: usize,
    /// Whether the first time it was the opposite.
    inverted: bool,
    again: Vec<(usize, bool)>,
}

/// Says of the instructions of a block which results are remembered, and asked for again. `accessed` says what
/// an instruction reads and writes; `elsewhere` gets the conditions that may be computed again in other blocks.
pub(super) fn find(
    code: &Code<'_>,
    insts: impl Iterator<Item = usize>,
    places: &Places,
    numbering: &mut Numbering<'_>,
    accessed: impl Fn(usize) -> Accessed,
    after: &mut [After],
    mut elsewhere: Option<&mut Vec<Tested>>,
) {
    numbering.begin();
    let mut tests: Vec<Test> = Vec::new();
    for at in insts {
        after[at].sources = numbering.sources(code.insts[at].instruction.op);
        let Some(number) = numbering.step(code, at, &accessed(at)) else { continue };
        if let Some(tested) = &mut elsewhere
            && let Some(from) = numbering.computed_from(number.value)
        {
            tested.push(Tested { at, number, from });
        }
        match tests.iter_mut().find(|test| test.value == number.value) {
            Some(first) => first.again.push((at, number.inverted)),
            None => {
                let Numbered { value, inverted } = number;
                tests.push(Test { value, at, inverted, again: Vec::new() });
            }
        }
    }
    let mut used: Vec<(Place, Option<usize>)> =
        places.remembered().map(|place| (place, None)).collect();
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
pub(super) struct Tested {
    pub(super) at: usize,
    pub(super) number: Numbered,
    pub(super) from: SmallVec<[Place; 2]>,
}

#[cfg(test)]
mod tests {
    use harp_isa::Op;

    use super::super::testing::{accessed, p, r, with_ops};
    use super::*;

    /// What is remembered and found again behind each of these operations.
    fn after(ops: &[Op]) -> Vec<After> {
        with_ops(ops, |code, _, places| {
            let mut after = vec![After::default(); code.insts.len()];
            let mut numbering = Numbering::new(places);
            let accessed = |at| accessed(code, at);
            find(code, 0..ops.len(), places, &mut numbering, accessed, &mut after, None);
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
