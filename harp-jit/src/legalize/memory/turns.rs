//! Accesses that take several instructions on machines without extension X, in turns.
//!
//! ```text
//!     for turn in 0..turns {
//!         if turn = 0 { lock }                       the warp takes the runtime library's lock
//!         if turn = own { access }
//!         if turn + 1 = turns { unlock }
//!     }
//! ```
//!
//! Lanes of a warp take turns in the order of their numbers, as with the instructions of extension X. For stores to an
//! aligned part of a word, turns are by the part's place in its word: lanes that store at the same time then write
//! different words, or the same part of one, of which one lane's stays whole. Warps take turns by
//! the [lock](harp_isa::abi::Lock): no two of them are at such an access at the same time. All
//! lanes that execute the access take the lock together, and wait for it together: how they got here may differ from
//! lane to lane, but the loop and the calls do not. Nothing in between takes the lock, ends, or leaves the loop but a
//! trap, which ends the launch.
//!
//! The calls are in the loop because lanes run a loop as a whole. Blocks before and after it may be parts of a region
//! whose parts are run one after the other (`divergence/structurize/linear.rs`), and others may come in between: lanes
//! that take the lock themselves, or that wait for other warps to take it.

use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Inst, InstBuilder, Value};
use harp_isa::abi::Lock;

use super::Memory;
use crate::abi::word_int;
use crate::intrinsic::Intrinsic;
use crate::legalize::resized;
use crate::lock;

/// Who takes which turn.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    /// The number of a lane's turn, a word.
    own: Value,
    /// The number of turns, a word.
    count: Value,
}

impl Memory<'_> {
    /// Turns of one lane each.
    pub(super) fn turns_of_lanes(&mut self) -> Turns {
        let [own, count] =
            [Intrinsic::LANE_ID, Intrinsic::LANE_COUNT].map(|number| self.ask(number));
        Turns { own, count }
    }

    /// Turns for stores of `bytes` bytes, a power of two below a word's, to a multiple of them.
    pub(super) fn turns_of_parts(&mut self, bytes: u32, address: Value, offset: i32) -> Turns {
        let count = i64::from(u32::from(self.arch.word().bytes()) / bytes);
        let place = self.at.ins().iadd_imm_s(address, i64::from(offset));
        let part = self.at.ins().ushr_imm_u(place, i64::from(bytes.ilog2()));
        let own = self.at.ins().band_imm_u(part, count - 1);
        // Addresses may be of any integer type.
        let word = word_int(self.arch.word());
        let own = resized(&mut self.at, own, word);
        let count = self.at.ins().iconst(word, count);
        Turns { own, count }
    }

    /// Moves the instruction, which has no results, to where lanes execute it in turns.
    pub(super) fn move_to_turns(&mut self, turns: Turns, inst: Inst) {
        self.at.goto_inst(inst);
        self.in_turns(turns, |memory| {
            memory.at.func.layout.remove_inst(inst);
            memory.at.insert_inst(inst);
            None
        });
        self.changed = true;
    }

    /// Lets the lanes execute in turns what `access` writes, and returns its result, an integer. The instruction at the
    /// cursor and everything after it move to a new block, at whose begin the cursor is then.
    pub(super) fn in_turns(
        &mut self,
        turns: Turns,
        access: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let inst = self.at.current_inst().expect("the cursor is at an instruction");
        let word = word_int(self.arch.word());
        let first = self.at.ins().iconst(word, 0);
        let func = &mut *self.at.func;
        let before = func.layout.inst_block(inst).expect("it is in the layout");
        let blocks: [Block; 8] = std::array::from_fn(|_| func.dfg.make_block());
        let [round, take, choose, own_turn, next, release, latch, after] = blocks;
        func.layout.split_block(after, inst);
        for block in blocks.into_iter().filter(|&block| block != after) {
            func.layout.insert_block(block, after);
        }
        self.at.goto_bottom(own_turn);
        let result = access(self);

        // A result so far, of a lane that had its turn. Without a result nothing is passed on.
        let dfg = &mut self.at.func.dfg;
        let ty = result.map(|result| dfg.value_type(result));
        let turn = dfg.append_block_param(round, word);
        let [so_far, seen] =
            [round, next].map(|block| ty.map(|ty| dfg.append_block_param(block, ty)));
        let with = |value: Option<Value>| value.map(BlockArg::from);
        self.at.ins().jump(next, with(result).as_slice());

        self.at.goto_bottom(before);
        let none = ty.map(|ty| self.at.ins().iconst(ty, 0));
        let first: Vec<_> = [BlockArg::from(first)].into_iter().chain(with(none)).collect();
        self.at.ins().jump(round, &first);

        self.at.goto_bottom(round);
        self.at.ins().brif(turn, choose, &[], take, &[]);
        self.at.goto_bottom(take);
        self.call(Lock::TAKE);
        self.at.ins().jump(choose, &[]);
        self.at.goto_bottom(choose);
        let is_own = self.at.ins().icmp(IntCC::Equal, turn, turns.own);
        self.at.ins().brif(is_own, own_turn, &[], next, with(so_far).as_slice());

        self.at.goto_bottom(next);
        let following = self.at.ins().iadd_imm_s(turn, 1);
        let more = self.at.ins().icmp(IntCC::UnsignedLessThan, following, turns.count);
        self.at.ins().brif(more, latch, &[], release, &[]);
        self.at.goto_bottom(release);
        self.call(Lock::RELEASE);
        self.at.ins().jump(latch, &[]);
        self.at.goto_bottom(latch);
        let again: Vec<_> = [BlockArg::from(following)].into_iter().chain(with(seen)).collect();
        self.at.ins().brif(more, round, &again, after, &[]);

        self.at.goto_first_insertion_point(after);
        seen
    }

    /// Writes `access` for lanes that execute it together and at once, while no others are at such an access.
    pub(super) fn locked(
        &mut self,
        access: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        self.call(Lock::TAKE);
        let result = access(self);
        self.call(Lock::RELEASE);
        result
    }

    /// Calls a function of the lock.
    fn call(&mut self, name: &str) {
        let args = [Intrinsic::CORE_ID, Intrinsic::WARP_ID].map(|number| self.ask(number));
        let callee = lock::declare(self.at.func, name, word_int(self.arch.word()));
        self.at.ins().call(callee, &args);
    }

    fn ask(&mut self, number: Intrinsic) -> Value {
        let callee = number.declare(self.at.func, word_int(self.arch.word()));
        let call = self.at.ins().call(callee, &[]);
        self.at.func.dfg.first_result(call)
    }
}
