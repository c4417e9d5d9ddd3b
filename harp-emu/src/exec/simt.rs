//! Lanes, warps, the divergence stack, votes and shuffles.

use harp_isa::{Gpr, Opcode, Pred};

use super::lanes::{index, lanes_of};
use super::{Event, Exec, Flow, NEXT, OTHER, Way};
use crate::trap::TrapKind;
use crate::warp::Entry;
use crate::word::Word;

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Copies in lane order: a lane that an earlier lane has overwritten copies its new values. Shared registers are every
    /// lane's already.
    #[inline(never)]
    pub(super) fn do_clone(&mut self, to: Gpr) -> Flow {
        self.converged(Opcode::Clone)?;
        let limit = self.env.lanes;
        for lane in lanes_of(self.mask) {
            let given = self.lane(to, lane).to_u64();
            if given >= u64::from(limit) {
                return self.trap(TrapKind::NoSuchLane { given, limit }, 1 << lane);
            }
            for reg in &mut self.warp.regs[..self.env.arch.gprs().into()] {
                let reg = reg.as_flattened_mut();
                reg[given as usize] = reg[lane];
            }
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn do_jalis(&mut self, link: Gpr, lanes: Gpr, rel: i64) -> Flow {
        self.converged(Opcode::Jalis)?;
        let count = self.lane_count(Opcode::Jalis, lanes);
        self.link(link)?;
        self.jump_by(rel)?;
        self.activate(count)
    }

    #[inline(never)]
    pub(super) fn do_jalrs(&mut self, link: Gpr, lanes: Gpr, target: Gpr) -> Flow {
        self.converged(Opcode::Jalrs)?;
        let count = self.lane_count(Opcode::Jalrs, lanes);
        self.link(link)?;
        self.jump_to(Opcode::Jalrs, target)?;
        self.activate(count)
    }

    /// Jumps to the first executing lane's target; the other lanes stop. Their targets are not compared, because
    /// if a single lane activated them only that lane has a return address.
    #[inline(never)]
    pub(super) fn do_jmprt(&mut self, target: Gpr) -> Flow {
        self.converged(Opcode::Jmprt)?;
        self.next = self.lane(target, self.first()).to_u64();
        self.activate(Ok(1))
    }

    /// How many lanes a jump is to activate, or why it must not.
    fn lane_count(&mut self, opcode: Opcode, lanes: Gpr) -> Result<u8, (TrapKind, u64)> {
        let limit = self.env.lanes;
        let (given, others) = self.first_and_rest(lanes);
        let given = given.to_u64();
        match u8::try_from(given) {
            _ if others != 0 => Err((TrapKind::DivergentTarget { opcode }, others)),
            Ok(count) if count <= limit => Ok(count),
            _ => Err((TrapKind::TooManyLanes { given, limit }, self.mask)),
        }
    }

    /// The activated lanes that a `split` keeps from executing.
    fn held_back(&self) -> u64 {
        if self.warp.stack.is_empty() {
            return 0;
        }
        let activated = u64::MAX >> (64 - u32::from(self.warp.active_count));
        activated & !self.warp.active
    }

    fn activate(&mut self, count: Result<u8, (TrapKind, u64)>) -> Flow {
        match count {
            Ok(0) => self.leave(Event::Stop),
            Ok(count) => {
                let held = self.held_back();
                self.warp.activate(count);
                // If no other lane is left they are activated after all: a running warp has an active lane.
                if self.warp.active & !held != 0 {
                    self.warp.active &= !held;
                }
                NEXT
            }
            Err((kind, lanes)) => self.trap(kind, lanes),
        }
    }

    #[inline(never)]
    pub(super) fn do_wspawn(&mut self, dst: Gpr, pc: Gpr, src: Gpr) -> Flow {
        let first = self.first();
        let pc = self.lane(pc, first).to_u64();
        let value = self.lane(src, first);
        self.leave(Event::Spawn { pc, register: dst.index(), value })
    }

    #[inline(never)]
    pub(super) fn do_bar(&mut self, id: Gpr, warps: Gpr) -> Flow {
        let first = self.first();
        let id = self.lane(id, first).to_u64();
        let warps = self.lane(warps, first).to_u64();
        let lowest = [0, 1].map(|index| self.warp.stack.get(index).map(Entry::view));
        if let Some(expected) = self.env.barriers.expected(self.warp.active_count, lowest)
            && self.enabled() != expected
        {
            let lanes = self.enabled();
            return self.trap(TrapKind::DivergentBarrier { expected }, lanes);
        }
        self.leave(Event::Barrier { id, warps })
    }

    /// Counts one instruction for each activated lane, as `split` and `join` do whatever their guard.
    ///
    /// A `join` may have brought back more lanes than are activated. Those that execute may be counted later, and until then
    /// there are fewer than none.
    #[inline(always)]
    fn count_all(&mut self) {
        let stats = &mut self.warp.stats;
        let [activated, executing] = [self.warp.active_count.into(), self.mask.count_ones().into()];
        stats.insts = stats.insts.wrapping_add(activated).wrapping_sub(executing);
    }

    /// Traps in a `split` or `join`.
    #[inline(always)]
    fn trap_once(&mut self, kind: TrapKind, lanes: u64) -> Flow {
        if P::PRECISE {
            self.count_all();
        }
        self.trap(kind, lanes)
    }

    #[inline(always)]
    pub(super) fn do_split(&mut self) -> Flow {
        if P::PRECISE && self.env.pdom && self.reconverges() {
            self.count_all();
            return NEXT;
        }
        let active = self.warp.active;
        let taken = self.mask;
        let diverges = taken != active && taken != 0;
        let limit = self.env.divergence_depth;
        let depth = self.warp.stack.len() + if diverges { 2 } else { 1 };
        if depth > limit {
            return self.trap_once(TrapKind::StackOverflow { limit }, active);
        }
        if depth > self.warp.stack.capacity() {
            if !P::PRECISE {
                return OTHER;
            }
            if !self.grow_stack(depth) {
                let limit = self.env.state_share;
                return self.trap_once(TrapKind::OutOfHostMemory { limit }, active);
            }
        }
        self.count_all();
        let behind = self.next;
        self.warp.stack.push(Entry { mask: active, resume: None, behind });
        if diverges {
            self.warp.stack.push(Entry { mask: active & !taken, resume: Some(behind), behind });
            self.warp.active = taken;
        }
        let high_water = &mut self.warp.stats.divergence_high_water;
        *high_water = depth.max(*high_water);
        NEXT
    }

    /// Makes room for `depth` entries and some more, if the core's share of memory suffices. Returns whether it
    /// did.
    fn grow_stack(&mut self, depth: usize) -> bool {
        let stack = &mut self.warp.stack;
        let room = stack.capacity().saturating_mul(2).min(self.env.divergence_depth);
        let more = room.max(depth) - stack.capacity();
        let bytes = (more as u64).saturating_mul(size_of::<Entry>() as u64);
        let extra = room.max(depth) - stack.len();
        if bytes <= self.system.state_left && stack.try_reserve_exact(extra).is_ok() {
            self.system.state_left -= bytes;
            return true;
        }
        false
    }

    /// With [`Reconvergence::Pdom`], handles a `split` that control has come back to. Returns whether nothing
    /// remains to be done, else the `split` pushes as usual.
    ///
    /// [`Reconvergence::Pdom`]: crate::Reconvergence::Pdom
    fn reconverges(&mut self) -> bool {
        let taken = self.mask;
        let ours = |entry: &&Entry| entry.behind == self.next;
        let mut top = self.warp.stack.iter().rev();
        let Some(&upper) = top.next().filter(ours) else {
            return false;
        };
        match (upper.resume, top.next().filter(ours)) {
            (Some(_), Some(&lower)) => {
                if taken == 0 {
                    self.warp.stack.truncate(self.warp.stack.len() - 2);
                    self.warp.active = lower.mask;
                } else {
                    self.warp.active = taken;
                }
                true
            }
            // So far the lanes have agreed. If the entry had other lanes than the active ones, this would be
            // the other side of a split that has diverged.
            (None, _) if upper.mask == self.warp.active => {
                self.warp.stack.pop();
                taken == 0
            }
            _ => false,
        }
    }

    /// Pops an entry whatever the guard is, as the original does.
    #[inline(always)]
    pub(super) fn do_join(&mut self) -> Flow {
        let Some(Entry { mask, resume, .. }) = self.warp.stack.pop() else {
            let lanes = self.warp.active;
            return self.trap_once(TrapKind::StackUnderflow, lanes);
        };
        self.count_all();
        self.warp.active = mask;
        if let Some(pc) = resume {
            self.next = pc;
        }
        NEXT
    }

    /// `dst` := the lane's number.
    #[inline(never)]
    pub(super) fn do_tid(&mut self, dst: Gpr) -> Flow {
        let reg = self.warp.regs[index(dst)].as_flattened_mut();
        for lane in lanes_of(self.mask) {
            reg[lane] = W::from_u64(lane as u64);
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn do_csr(&mut self, dst: Gpr, given: i64) -> Flow {
        let value = match given {
            0 => return self.do_tid(dst),
            1 => self.number.into(),
            2 => self.env.core.into(),
            3 => self.env.lanes.into(),
            4 => self.env.warps.into(),
            5 => self.env.cores.into(),
            // The instructions before this one.
            6 => self.warp.stats.steps - 1,
            8 | 9 => word_of::<W>(self.warp.active, given - 8),
            _ => {
                let lanes = self.mask;
                return self.trap(TrapKind::BadIndex { opcode: Opcode::Csr, given }, lanes);
            }
        };
        self.fill(dst, W::from_u64(value))
    }

    #[inline(never)]
    pub(super) fn do_ballot(&mut self, dst: Gpr, src: Pred, given: i64) -> Flow {
        let lanes = self.mask;
        if !(0..2).contains(&given) {
            return self.trap(TrapKind::BadIndex { opcode: Opcode::Ballot, given }, lanes);
        }
        let bits = word_of::<W>(self.pred(src) & self.enabled(), given);
        self.fill(dst, W::from_u64(bits))
    }

    #[inline(always)]
    pub(super) fn do_anyp(&mut self, dst: Pred, src: Pred) -> Flow {
        let any = self.pred(src) & self.enabled() != 0;
        self.set_pred(dst, if any { u64::MAX } else { 0 })
    }

    #[inline(always)]
    pub(super) fn do_allp(&mut self, dst: Pred, src: Pred) -> Flow {
        let all = self.pred(src) & self.enabled() == self.enabled();
        self.set_pred(dst, if all { u64::MAX } else { 0 })
    }

    #[inline(never)]
    pub(super) fn do_shfl(&mut self, dst: Gpr, value: Gpr, from: Gpr) -> Flow {
        let values = *self.reg(value);
        let from = *self.reg(from);
        let enabled = self.enabled();
        let reg = self.warp.regs[index(dst)].as_flattened_mut();
        for lane in lanes_of(self.mask) {
            let other = from.as_flattened()[lane].to_u64();
            let executes = other < 64 && enabled >> other & 1 != 0;
            let source = if executes { other as usize } else { lane };
            reg[lane] = values.as_flattened()[source];
        }
        NEXT
    }
}

/// Word number `k`, 0 or 1, of a mask.
fn word_of<W: Word>(mask: u64, k: i64) -> u64 {
    match k {
        0 => mask & W::ONES.to_u64(),
        _ => mask.checked_shr(W::BITS).unwrap_or(0),
    }
}
