//! Critical sections, in kernels that were made without.
//!
//! Under a lock a work-item may do anything: the oracle, which runs one after the other, finds it free every time. What
//! is counted there must come to the same sum. In a warp, the lane that has the lock must give it back before the others can
//! go on.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, Block, Function, Inst, InstBuilder, MemFlagsData, Value};

use super::choices::Choices;
use super::words::Words;
use super::{Generated, Mark};

/// The words of the lock's buffer: the lock or the next ticket, the ticket whose turn it is, and a sum.
const WORDS: usize = 3;

/// The kernel, or the same with a critical section: few have one, as it adds branches on which lanes agree. It is made of
/// bytes from the middle on, so that what the kernel is made of stays as it is.
pub(super) fn with_lock(mut kernel: Generated, bytes: &[u8]) -> Generated {
    let bytes: Vec<u8> = bytes.iter().rev().skip(bytes.len() / 2).copied().collect();
    let choices = &mut Choices::new(&bytes);
    if choices.below(10) != 1 {
        return kernel;
    }
    let Some(words) = Words::given(&mut kernel.case, WORDS) else { return kernel };

    let func = &mut kernel.case.functions[0];
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let block = choices.one(&blocks);
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    let from = choices.below(insts.len());
    let length = choices.below(insts.len() - from);
    // Others may be waited for there.
    let calls = |inst: &&Inst| func.dfg.insts[**inst].opcode().is_call();
    let to = insts[from..from + length].iter().position(|inst| calls(&inst));
    let to = insts[from + to.unwrap_or(length)];

    let lock = Lock { words, has_tickets: choices.once_in(3) };
    let rest = func.dfg.make_block();
    func.layout.split_block(rest, to);
    let section = func.dfg.make_block();
    if insts[from] != to {
        func.layout.split_block(section, insts[from]);
    } else {
        func.layout.insert_block_after(section, block);
    }
    kernel.case.waits = true;
    lock.take(func, block, section, choices);
    lock.count(func, section, rest, choices);
    kernel.marks.push(Mark { function: 0, block, construct: "critical section" });
    kernel
}

struct Lock {
    words: Words,
    /// Whether work-items come in the order of their tickets.
    has_tickets: bool,
}

impl Lock {
    /// The address of a word of the buffer.
    fn address(&self, at: &mut FuncCursor<'_>, index: i64) -> Value {
        let start = self.words.start(at);
        at.ins().iadd_imm_s(start, index * i64::from(self.words.ty.bytes()))
    }

    /// Takes the lock at the end of a block, which goes on with the section.
    fn take(&self, func: &mut Function, before: Block, section: Block, choices: &mut Choices<'_>) {
        let spin = func.dfg.make_block();
        func.layout.insert_block(spin, section);
        let flags = MemFlagsData::trusted();
        let mut at = FuncCursor::new(func).at_bottom(before);
        let one = at.ins().iconst(self.words.ty, 1);
        let address = self.address(&mut at, 0);
        let waits = if self.has_tickets {
            let turn = self.address(&mut at, 1);
            let ticket = at.ins().atomic_rmw(self.words.ty, flags, AtomicRmwOp::Add, address, one);
            at.ins().jump(spin, &[]);
            at = at.at_bottom(spin);
            let now = at.ins().atomic_load(self.words.ty, flags, turn);
            at.ins().icmp(IntCC::NotEqual, now, ticket)
        } else {
            at.ins().jump(spin, &[]);
            at = at.at_bottom(spin);
            if choices.once_in(2) {
                at.ins().atomic_rmw(self.words.ty, flags, AtomicRmwOp::Xchg, address, one)
            } else {
                let free = at.ins().iconst(self.words.ty, 0);
                at.ins().atomic_cas(flags, address, free, one)
            }
        };
        if choices.once_in(2) {
            at.ins().brif(waits, spin, &[], section, &[]);
            return;
        }
        let again = at.func.dfg.make_block();
        at.ins().brif(waits, again, &[], section, &[]);
        at.insert_block(again);
        at.ins().jump(spin, &[]);
    }

    /// Counts at the section's end, perhaps by lanes, and gives the lock back.
    fn count(&self, func: &mut Function, section: Block, rest: Block, choices: &mut Choices<'_>) {
        let parts = choices.below(3);
        let mut at = FuncCursor::new(func).at_bottom(section);
        if parts == 0 {
            self.add(&mut at, 1);
            self.give_back(&mut at);
            at.ins().jump(rest, &[]);
            return;
        }
        let odd = self.words.item(&mut at);
        let odd = at.ins().band_imm_u(odd, 1);
        let [yes, no, end] = std::array::from_fn(|_| at.func.dfg.make_block());
        at.ins().brif(odd, yes, &[], no, &[]);
        for (block, number) in [(yes, 3), (no, 5)] {
            at.insert_block(block);
            self.add(&mut at, number);
            if parts == 2 {
                self.give_back(&mut at);
            }
            at.ins().jump(end, &[]);
        }
        at.insert_block(end);
        if parts == 1 {
            self.give_back(&mut at);
        }
        at.ins().jump(rest, &[]);
    }

    fn add(&self, at: &mut FuncCursor<'_>, number: i64) {
        let flags = MemFlagsData::trusted();
        let address = self.address(at, 2);
        let sum = at.ins().load(self.words.ty, flags, address, 0);
        let sum = at.ins().iadd_imm_s(sum, number);
        at.ins().store(flags, sum, address, 0);
    }

    fn give_back(&self, at: &mut FuncCursor<'_>) {
        let flags = MemFlagsData::trusted();
        let number = at.ins().iconst(self.words.ty, i64::from(self.has_tickets));
        let address = self.address(at, i64::from(self.has_tickets));
        if self.has_tickets {
            at.ins().atomic_rmw(self.words.ty, flags, AtomicRmwOp::Add, address, number);
        } else {
            at.ins().atomic_store(flags, number, address);
        }
    }
}
