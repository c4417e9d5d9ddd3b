//! Operations on diagrams are those on truth tables of few variables.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { nodes: 100_000, made: 100_000 };

/// Variables of the functions that are tried.
const VARIABLES: u32 = 6;

/// The function with this truth table: bit by bit, with the first variable as the highest bit.
fn of_table(sets: &Manager, table: u64, variable: u32) -> Set<'_> {
    if variable == VARIABLES {
        return if table & 1 == 1 { Set::ALL } else { Set::NONE };
    }
    let half = 1 << (VARIABLES - variable - 1);
    let low = of_table(sets, table, variable + 1);
    let high = of_table(sets, table >> half, variable + 1);
    sets.variable(variable).ite(high, low)
}

/// The number of a table's bit with the bit of a variable taken out, and that bit.
fn bit(index: u64, variable: u32) -> u64 {
    index >> (VARIABLES - variable - 1) & 1
}

/// The table whose bits are those of `table` at other numbers.
fn exchanged(table: u64, index: impl Fn(u64) -> u64) -> u64 {
    (0..1 << VARIABLES).fold(0, |all, at| all | (table >> index(at) & 1) << at)
}

#[test]
fn limits_hold_for_good() {
    let sets = Manager::new(Limits { nodes: 4, made: 100 });
    (0..4).fold(Set::ALL, |all, variable| all & sets.variable(variable));
    assert!(sets.is_full());
    sets.0.borrow_mut().collect_garbage(Vec::new());
    assert!(sets.is_full());
    let sets = Manager::new(Limits { nodes: 100, made: 10 });
    for variable in 0..10 {
        sets.variable(variable);
        sets.0.borrow_mut().collect_garbage(Vec::new());
    }
    assert!(!sets.is_full());
    sets.variable(0);
    assert!(sets.is_full());
}

proptest! {
    #[test]
    fn operations_are_those_of_truth_tables(
        [a, b, c]: [u64; 3],
        hidden in 0..1u32 << VARIABLES,
        [one, two, three] in Just([0, 1, 2]).prop_shuffle(),
    ) {
        let sets = Manager::new(LIMITS);
        let [x, y, z] = [a, b, c].map(|table| of_table(&sets, table, 0));
        let hidden = (0..VARIABLES).rev().filter(|variable| hidden >> variable & 1 == 1);
        let cube = hidden.clone().fold(Set::ALL, |all, variable| sets.variable(variable) & all);
        let without = |table| hidden.clone().fold(table, |table, variable| {
            let bit = 1 << (VARIABLES - variable - 1);
            exchanged(table, |at| at | bit) | exchanged(table, |at| at & !bit)
        });
        // Round about among the first three; the last one becomes one that is not there, and back.
        let last = VARIABLES - 1;
        let others = [(one, two), (two, three), (three, one), (last, last + 2)];
        let there = sets.renaming(others);
        let back = sets.renaming([(last + 2, last)]);
        let moved = |at| others[..3].iter().fold(at & 0o7, |all, &(from, to)| {
            all | bit(at, to) << (VARIABLES - from - 1)
        });
        for (set, table) in [
            (x.ite(y, z), a & b | !a & c),
            (x & y, a & b),
            (x | y, a | b),
            (x ^ y, a ^ b),
            (!x, !a),
            (x.restrict(y) & y, a & b),
            (x.exists(cube), without(a)),
            (x.and_exists(y, cube), without(a & b)),
            (x.other(), exchanged(a, |at| (at & 0o25) << 1 | at >> 1 & 0o25)),
            (x.rename(there).rename(back), exchanged(a, moved)),
        ] {
            prop_assert_eq!(set, of_table(&sets, table, 0), "equal functions are equal numbers");
        }
        prop_assert_eq!(x.disjoint(y), a & b == 0);
        prop_assert!(x.disjoint(y & !x));
        prop_assert_eq!(x.depends_on(cube), without(a) != a);
    }

    #[test]
    fn what_is_kept_stays_what_it_is([a, b, c]: [u64; 3]) {
        let sets = Manager::new(LIMITS);
        let [x, y] = [a, b].map(|table| of_table(&sets, table, 0));
        _ = x & y;
        sets.0.borrow_mut().collect_garbage(vec![x.edge, y.edge]);
        of_table(&sets, c, 0);
        prop_assert_eq!([a, b].map(|table| of_table(&sets, table, 0)), [x, y]);
        prop_assert_eq!(x & y, of_table(&sets, a & b, 0));
        for at in 0..1 << VARIABLES {
            let each = (0..VARIABLES).map(|variable| match bit(at, variable) {
                1 => sets.variable(variable),
                _ => !sets.variable(variable),
            });
            let is_there = !each.fold(x, |all, one| all & one).disjoint(Set::ALL);
            prop_assert_eq!(is_there, a >> at & 1 == 1);
        }
    }
}
