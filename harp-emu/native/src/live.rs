//! Which registers a region may read before it writes them.

use std::collections::BTreeMap;

use crate::body::{Body, Inst};
use crate::class::{Lanes, Rules, lanes};
use crate::region::{Key, Region};

/// The registers whose values at the head of the region matter to it, as bits. Those that it may only pass on do not.
pub(crate) fn live_at_head(region: &Region, rules: Rules) -> u64 {
    let mut live: BTreeMap<Key, u64> = region.blocks.keys().map(|&key| (key, 0)).collect();
    loop {
        let mut changed = false;
        for (&key, block) in region.blocks.iter().rev() {
            let mut state = block.state.clone();
            let mut kills = Vec::new();
            for inst in &block.insts {
                kills.push(lanes(&state, inst, key.full) == Lanes::All);
                if !inst.ends_block() {
                    rules.step(&mut state, inst, key.full);
                }
            }
            let Some(last) = block.insts.last() else { continue };
            let edges = rules.edges(&state, last, key.full);
            let mut bits = edges.iter().filter_map(|(to, _)| live.get(to)).fold(0, |a, b| a | b);
            for (inst, kills) in block.insts.iter().zip(kills).rev() {
                bits = before(bits, inst, kills);
            }
            changed |= live.insert(key, bits) != Some(bits);
        }
        if !changed {
            return live.get(&region.head).copied().unwrap_or(0);
        }
    }
}

/// The live registers before an instruction; `kills` says whether all lanes execute it.
fn before(mut live: u64, inst: &Inst, kills: bool) -> u64 {
    let (read, written) = inst.registers();
    if let (Some(dst), true) = (written, kills && !matches!(inst.body, Body::Foreign { .. })) {
        live &= !(1 << dst);
    }
    read.into_iter().fold(live, |live, r| live | 1 << r)
}
