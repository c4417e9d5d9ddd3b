//! Where vectors are between blocks: in the host's registers, or at home in the machine's.
//!
//! A register of a machine with 32 lanes is eight vectors, and the host has sixteen registers for vectors. If all of a
//! region's were values from block to block, most would be spilled all the time, and the host's register allocator, which tries
//! all of them against each other, would take three quarters of the time of translation.

use crate::body::Body;
use crate::class::Class;
use crate::region::Region;
use crate::rules::{MANY_REGISTERS, Rules};

/// The registers whose vectors are in the machine's registers between blocks, as bits: all but those that loops use most,
/// which get half of the host's registers. None on a machine with few registers, where most of what a
/// block reads is a slot of the stack. All where lanes may take turns: each has its words there.
pub(crate) fn homes(region: &Region, rules: Rules) -> u64 {
    let shape = rules.shape;
    if has_runs(region, rules) {
        return u64::MAX;
    }
    if shape.arch.gprs() < MANY_REGISTERS {
        return 0;
    }
    let room = (HOST_VECTORS / 2 / shape.vectors()).max(1);
    let mut uses: Vec<(u64, u8)> = uses(region).into_iter().zip(0..).collect();
    uses.sort_unstable_by_key(|&(uses, _)| std::cmp::Reverse(uses));
    uses.iter().take(room).fold(u64::MAX, |homes, (_, r)| homes & !(1 << r))
}

/// Whether there are blocks in which some lanes load from anywhere, and again, which is worth going lane by lane.
fn has_runs(region: &Region, rules: Rules) -> bool {
    // Tests, in which words of memory are followed on all machines, see more of it.
    let has_many = rules.shape.arch.gprs() >= MANY_REGISTERS;
    let least = if rules.follows && has_many { 1 } else { 2 };
    region.blocks.iter().filter(|(key, _)| !key.full).any(|(key, block)| {
        let mut state = block.state.clone();
        let loads = block.insts.iter().filter(|inst| {
            let base = if let Body::Load { base, .. } = inst.body { Some(base) } else { None };
            let is_any = base.is_some_and(|base| state.regs[usize::from(base)] == Class::Vector);
            rules.step(&mut state, inst, key.full);
            is_any
        });
        loads.count() >= least
    })
}

/// The host's registers for vectors.
const HOST_VECTORS: usize = 16;

/// How often blocks would load or store each register if it was at home: a guess.
fn uses(region: &Region) -> [u64; 64] {
    let mut uses = [0u64; 64];
    let loops = loops(region);
    for (key, block) in &region.blocks {
        let depth = loops.iter().filter(|&&(head, end)| (head..=end).contains(&key.pc)).count();
        let rounds = ROUNDS.saturating_pow(u32::try_from(depth).unwrap_or(u32::MAX));
        let (mut read, mut written) = (0u64, 0u64);
        for inst in &block.insts {
            let (sources, dst) = inst.registers();
            read |= sources.into_iter().fold(0, |bits, r| bits | 1 << r) & !written;
            written |= dst.map_or(0, |dst| 1 << dst);
        }
        for (r, uses) in uses.iter_mut().enumerate() {
            if block.state.regs[r] == Class::Vector {
                let here = (read >> r & 1) + (written >> r & 1);
                *uses = uses.saturating_add(rounds.saturating_mul(here));
            }
        }
    }
    uses
}

/// What is taken for the number of a loop's rounds.
const ROUNDS: u64 = 8;

/// The addresses of the first and last instructions of loops, as the order of addresses shows them.
fn loops(region: &Region) -> Vec<(u64, u64)> {
    let last = region.blocks.values().filter_map(|block| block.insts.last());
    let mut loops: Vec<_> = last
        .filter_map(|inst| match inst.body {
            Body::Jump { target, .. } if target <= inst.pc => Some((target, inst.pc)),
            _ => None,
        })
        .collect();
    // Of several jumps to a head, the last ends the loop.
    loops.sort_unstable_by_key(|&(head, end)| (head, std::cmp::Reverse(end)));
    loops.dedup_by_key(|(head, _)| *head);
    loops
}
