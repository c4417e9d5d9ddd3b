//! How much of the divergence stack matters to a region: its entries expect that, and take the rest as it comes.
//!
//! A function that is called at several places finds the levels of its callers there. What it removes it has mostly added
//! itself.

use crate::body::Body;
use crate::region::{Key, Needs, Region};
use crate::rules::Rules;
use crate::state::{Need, State};

/// What the blocks of a region need.
pub(crate) fn needs(region: &Region, rules: Rules) -> Needs {
    region.backward(|key, needs| block(region, rules, key, needs))
}

/// What a block needs, if blocks that follow need that.
fn block(region: &Region, rules: Rules, key: Key, needs: &Needs) -> Need {
    let block = &region.blocks[&key];
    let mut state = block.state.clone();
    let mut need = Need::default();
    let Some((last, before)) = block.insts.split_last() else { return need };
    for inst in before {
        need.asked = need.asked.max(rules.levels_asked(&state, inst, key.full));
        rules.step(&mut state, inst, key.full);
    }
    need.asked = need.asked.max(rules.levels_asked(&state, last, key.full));
    let known = state.stack.len();
    for (to, after) in region.loops.edges(rules, key, &state, last) {
        let behind = needs.get(&to).copied().unwrap_or_default();
        need = need.or(match last.body {
            Body::Split => behind.before_split(),
            Body::Join if leaves_level(&state, &after) => behind.before_join(),
            Body::Join => behind.or(Need::default().before_join()),
            _ => behind,
        });
    }
    Need { removed: need.removed.min(known), asked: need.asked.min(known) }
}

/// Whether a join has removed the topmost level: the lanes that wait at theirs have all come.
fn leaves_level(before: &State, after: &State) -> bool {
    after.stack.len() < before.stack.len()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::body::Inst;
    use crate::region::{self, Bounds, Met, Room};
    use crate::state::Level;
    use crate::tests::function;
    use crate::waiting::waiting;

    /// What a region at `head`, of the blocks at `seen` if given, expects of these levels.
    fn expected(head: u64, seen: Option<&[u64]>, levels: &[Level]) -> Vec<Level> {
        let (rules, callee, mut fetch) = function(
            "  @p0 ? split
              @p0 ? jmpi outer
                    jmpi end
             outer: add %r1, %r2, %r3
                    add %r2, %r1, %r3
                    add %r3, %r2, %r3
              @p1 ? split
              @p1 ? jmpi inner
                    jmpi meet
             inner: add %r3, %r1, %r2
                    add %r2, %r1, %r3
                    add %r1, %r2, %r3
                    jmpi meet
             meet:  join
             end:   join
                    jmpr %r15
            ",
        );
        let known = waiting(rules, callee, &mut fetch);
        let mut fetch =
            |pc| fetch(pc).map(|inst| Inst { waiting: known.get(&pc).copied(), ..inst });
        let head = Key::new(head, false);
        let seen: Option<HashSet<Key>> =
            seen.map(|seen| seen.iter().map(|&pc| Key::new(pc, false)).collect());
        let room = Room { inside: 100, known: 100 };
        let bounds =
            Bounds { room, seen: seen.as_ref(), needs: &Needs::new(), met: &Met::default() };
        let state = State { stack: levels.to_vec(), ..State::unknown(rules.shape) };
        let region = region::form(rules, head, state, bounds, &mut fetch).unwrap();
        let mut levels = levels.to_vec();
        needs(&region, rules)[&head].cut(&mut levels);
        levels
    }

    #[test]
    fn levels_matter_that_are_removed_or_say_who_waits() {
        let level = |index: u64, was_full| Level { behind: 4 * index, was_full: Some(was_full) };
        let [caller, outer, inner] = [level(50, false), level(1, true), level(7, false)];
        let (at_outer, at_inner) = (4 * 3, 4 * 9);
        assert_eq!(expected(at_outer, None, &[caller, outer]), [outer]);
        assert_eq!(expected(at_inner, None, &[caller, outer, inner]), [outer, inner]);
        // These regions end before anything is removed.
        let none = Some(&[][..]);
        assert_eq!(expected(at_outer, none, &[caller, outer]), [outer]);
        let outer_tells = expected(at_inner, none, &[caller, outer, inner]);
        assert_eq!(outer_tells, [outer, Level { was_full: None, ..inner }]);
        let outer = level(1, false);
        let nothing_tells = expected(at_inner, none, &[caller, outer, inner]);
        assert_eq!(nothing_tells, []);
    }
}
