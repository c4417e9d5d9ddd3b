//! Every shape of the catalogue on all machines, at both levels and by all strategies.

use harp_jit::OptLevel;

use super::{Failure, Reached, Target, WAYS, check_generated, together};
use crate::generate::Family;
use crate::generate::graphs::{Named, catalogue, filled};
use crate::machines::{ALL, parsed};
use crate::seeds::random_bytes;

/// Bytes for a filling.
const BYTES: usize = 3000;

/// What a round runs a shape on: all machines of a family at both levels. The strategies take turns from machine
/// to machine and from round to round, so that six rounds are all there is; so do checks, cores and counts.
fn targets(round: usize, family: Family) -> Vec<Target> {
    let levels = [OptLevel::None, OptLevel::Speed];
    let machines = parsed(ALL).flat_map(|arch| levels.map(|level| (arch, level)));
    let mut targets = Vec::new();
    for (at, (arch, level)) in machines.enumerate() {
        // Neighbours are one machine at both levels, which take different strategies.
        let turn = at + at / WAYS.len() + round;
        let target = Target::new(arch, level, WAYS[turn % WAYS.len()]);
        let (cores, counts) = ([1, 2, 1, 3][turn % 4], turn % 5 == 2);
        if Family::of(arch) == family {
            targets.push(Target { verify: turn.is_multiple_of(4), cores, counts, ..target });
        }
    }
    targets
}

/// Checks the shapes of the catalogue in these rounds, each with other contents for each family of machines.
/// Fails with the first shape that fails, its round, and the failure.
pub fn check_catalogue(
    rounds: std::ops::Range<u64>,
    progress: &(dyn Fn() + Sync),
) -> Result<Reached, (&'static Named, u64, Box<Failure>)> {
    let shapes = catalogue().len() as u64;
    let place = |number: u64| (&catalogue()[(number % shapes) as usize], number / shapes);
    let checked =
        together(rounds.start * shapes..rounds.end * shapes, progress, |number, machines| {
            let (named, round) = place(number);
            let mut reached = Reached::default();
            for (seed, family) in (4 * round..).zip(Family::ALL) {
                let bytes = random_bytes(seed.wrapping_add(hash(named.name)), BYTES);
                let generated = filled(&named.shape, &bytes, family);
                reached += check_generated(&generated, &targets(round as usize, family), machines)?;
            }
            Ok(reached)
        });
    checked.map_err(|(number, failure)| {
        let (named, round) = place(number);
        (named, round, failure)
    })
}

/// FNV-1a (Fowler, Noll, Vo), so that a shape's contents are its own, whatever stands before it.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_there_is_gets_its_turn() {
        let (mut one, mut all) = (HashSet::new(), HashSet::new());
        for round in 0..WAYS.len() {
            for target in Family::ALL.into_iter().flat_map(|family| targets(round, family)) {
                let level = target.opt_level == OptLevel::None;
                all.insert((target.arch, level, target.way.name));
                if round == 0 {
                    one.insert((level, target.way.name));
                }
            }
        }
        assert_eq!(one.len(), 2 * WAYS.len(), "one round has all strategies at both levels");
        assert_eq!(all.len(), 2 * WAYS.len() * ALL.len());
    }
}
