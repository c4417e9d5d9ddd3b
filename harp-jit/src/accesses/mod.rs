//! Code that reports its accesses to memory, for launches that check them.
//!
//! Before each access, the function stores the address to a word of its own above the memory
//! ([`MonitorWord`]); a device behind these words sees the executing lanes do that. What need not be computed at run time
//! stands in a table beside the code: the type, and the objects that the address may point into, as far as the function
//! shows them (see `roots`). Reports come before the mid-end, so they are about what the program says, not about what
//! loads and stores are made of it.

use std::collections::HashMap;
use std::ops::Range;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, MemFlagsData, Opcode, StackSlot, TrapCode, Type, Value, types,
};
use harp_isa::WordSize;
use harp_isa::abi::{MonitorWord, Order};
use serde::{Deserialize, Serialize};

use crate::abi::word_int;
use crate::intrinsic::{Intrinsic, Orders};
use crate::source::SourceMap;
use crate::symbols::Symbols;

mod moves;
mod roots;

use moves::Moves;
use roots::{Found, Roots};

/// An access to memory as the program says it, or what orders such.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryAccess {
    /// What it does.
    pub kind: AccessKind,
    /// The type that is loaded or stored; a word for what orders accesses.
    #[serde(with = "crate::scalar")]
    pub ty: Type,
    /// The address should be a multiple of so many bytes, or the machine moves only a part of what is accessed: 1 if the
    /// program does not promise that it is aligned.
    pub alignment: u8,
    /// Whether a load is a part of a [copy](COPIED), or nothing depends on what it reads beside such a copy, so that this
    /// need not have been written.
    pub is_copied: bool,
    /// For a store in a copy, the number in the function's table of the load that has read what is stored.
    pub copy_of: Option<u32>,
    /// What the address may point into; empty if that is not known.
    pub roots: Vec<Root>,
}

/// The trap code of loads and stores that copy bytes whatever they are, in front ends. What such a load reads need not have
/// been written: then what is stored has not been, either.
pub const COPIED: TrapCode = TrapCode::unwrap_user(129);

/// What an access does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes, atomically.
    Atomic,
    /// It is a barrier or a fence, which orders accesses.
    Order,
}

/// An object in memory that an address points into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Root {
    /// What the argument for the kernel's parameter with this number points to.
    Param(u32),
    /// The array of the group's memory that begins there and has so many bytes.
    GroupArray {
        /// Its name, if it has one.
        name: Option<String>,
        /// Bytes from the start of the group's memory.
        start: u32,
        /// Bytes of the array.
        bytes: u32,
    },
    /// The memory of the work-group.
    Group,
    /// A stack slot of the function.
    Slot {
        /// The name of the variable that it is for, if it has one.
        name: Option<String>,
        /// Bytes of the slot.
        bytes: u32,
    },
    /// The datum of the module with this linker's name: one of [`Kernel::data`](crate::Kernel::data).
    Datum(String),
}

/// An array that the work-items of a group share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupArray {
    /// Its name in messages.
    pub name: Option<String>,
    /// Where it is in the memory of a work-group.
    pub bytes: Range<u32>,
}

/// What addresses a kernel gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelShape {
    /// For each word of the arguments, the number of the parameter that begins there and is an address.
    pub(crate) words: Vec<Option<u32>>,
    /// Where its arrays are in the memory of a work-group.
    pub(crate) group_arrays: Vec<GroupArray>,
}

/// Makes the function report its accesses; the table of them, by the number with which they are reported. `kernel` is
/// given for the function of a kernel, which also reports its work-item; `symbols` has the names of data, `sources` those of
/// variables.
pub(crate) fn report(
    func: &mut Function,
    word: WordSize,
    kernel: Option<&KernelShape>,
    symbols: &dyn Symbols,
    sources: &SourceMap,
) -> Vec<MemoryAccess> {
    let roots = Roots::of(func, word, kernel, symbols, sources);
    let insts: Vec<Inst> =
        func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect();
    let is_foreign = |&inst: &Inst| {
        func.dfg.insts[inst].opcode().is_call() && Intrinsic::of_call(func, inst).is_none()
    };
    let uses_stack = !func.sized_stack_slots.is_empty() || insts.iter().any(is_foreign);
    let mut reporter = Reporter { at: FuncCursor::new(func), word };
    if kernel.is_some() {
        reporter.begin(uses_stack);
    }
    let moves = Moves::of(reporter.at.func, &roots);
    let mut table = Vec::new();
    let mut copied: HashMap<Value, u32> = HashMap::new();
    for inst in insts {
        if let Some(order) = order_of(reporter.at.func, inst) {
            reporter.order(inst, order, table.len());
            table.push(MemoryAccess {
                kind: AccessKind::Order,
                ty: word_int(word),
                alignment: 1,
                is_copied: false,
                copy_of: None,
                roots: Vec::new(),
            });
        } else if let Some(access) = Access::by(reporter.at.func, inst) {
            let Some(Found { roots, slot }) = roots.of_address(access.address) else { continue };
            reporter.access(inst, access, slot, table.len());
            let Access { kind, ty, is_aligned, is_copy, stored, .. } = access;
            let result = reporter.at.func.dfg.inst_results(inst).first();
            let result = result.filter(|_| kind == AccessKind::Load);
            let is_copied = result.is_some_and(|&result| is_copy || moves.is_moved(result));
            if let Some(&result) = result.filter(|_| is_copied) {
                copied.insert(result, table.len() as u32);
            }
            let copy_of = stored.and_then(|value| {
                copied.get(&reporter.at.func.dfg.resolve_aliases(value)).copied()
            });
            // What is wider than a word is moved in words.
            let bytes = ty.bytes().min(word.bytes().into()) as u8;
            table.push(MemoryAccess {
                kind,
                ty,
                alignment: if is_aligned { bytes } else { 1 },
                is_copied,
                copy_of,
                roots,
            });
        }
    }
    table
}

/// What an instruction orders, if it is a barrier or a fence: bits of [`Order`].
fn order_of(func: &Function, inst: Inst) -> Option<u64> {
    let all = Order::GROUP | Order::OTHER;
    if func.dfg.insts[inst].opcode() == Opcode::Fence {
        return Some(all);
    }
    let Some(Intrinsic::Barrier(orders)) = Intrinsic::of_call(func, inst) else { return None };
    let ordered = match orders {
        Orders::All => all,
        Orders::Group => Order::GROUP,
        Orders::Other => Order::OTHER,
        Orders::Nothing => 0,
    };
    Some(Order::BARRIER | ordered)
}

/// An access of an instruction.
#[derive(Clone, Copy, Debug)]
struct Access {
    kind: AccessKind,
    ty: Type,
    /// What the address is, with `offset` added.
    address: Value,
    offset: i32,
    /// Whether the program promises that the address is aligned.
    is_aligned: bool,
    is_copy: bool,
    /// What is stored, if that is known beforehand.
    stored: Option<Value>,
}

impl Access {
    fn by(func: &Function, inst: Inst) -> Option<Access> {
        let dfg = &func.dfg;
        let args = dfg.inst_args(inst);
        let result = || dfg.value_type(dfg.first_result(inst));
        let data = &dfg.insts[inst];
        let opcode = data.opcode();
        let (kind, ty, stored) = match opcode {
            Opcode::Load => (AccessKind::Load, result(), None),
            Opcode::Uload8 | Opcode::Sload8 => (AccessKind::Load, types::I8, None),
            Opcode::Uload16 | Opcode::Sload16 => (AccessKind::Load, types::I16, None),
            Opcode::Uload32 | Opcode::Sload32 => (AccessKind::Load, types::I32, None),
            Opcode::Store => (AccessKind::Store, dfg.value_type(args[0]), Some(args[0])),
            Opcode::Istore8 => (AccessKind::Store, types::I8, Some(args[0])),
            Opcode::Istore16 => (AccessKind::Store, types::I16, Some(args[0])),
            Opcode::Istore32 => (AccessKind::Store, types::I32, Some(args[0])),
            Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas => {
                (AccessKind::Atomic, result(), None)
            }
            Opcode::AtomicStore => (AccessKind::Atomic, dfg.value_type(args[0]), None),
            _ => return None,
        };
        // Stores have their address behind the value, the others before it.
        let is_behind = kind == AccessKind::Store || opcode == Opcode::AtomicStore;
        let address = dfg.resolve_aliases(args[usize::from(is_behind)]);
        let offset = data.load_store_offset().unwrap_or(0);
        let is_aligned = kind == AccessKind::Atomic
            || data.memflags_data(dfg).is_some_and(MemFlagsData::aligned);
        let is_copy = matches!(opcode, Opcode::Load | Opcode::Store)
            && data.memflags_data(dfg).and_then(MemFlagsData::trap_code) == Some(COPIED);
        Some(Access { kind, ty, address, offset, is_aligned, is_copy, stored })
    }
}

/// Inserts reports.
struct Reporter<'f> {
    at: FuncCursor<'f>,
    word: WordSize,
}

impl Reporter<'_> {
    /// Reports the work-item at the entry, with its stack if there may be slots in it.
    fn begin(&mut self, uses_stack: bool) {
        let entry = self.at.func.layout.entry_block().expect("a verified function has an entry");
        self.at.goto_first_insertion_point(entry);
        self.at.set_srcloc(cranelift_codegen::ir::SourceLoc::default());
        let stack = uses_stack.then_some((Intrinsic::FrameEnd, MonitorWord::Stack));
        for (id, word) in [(Intrinsic::GlobalIdX, MonitorWord::Begin)].into_iter().chain(stack) {
            let callee = id.declare(self.at.func, word_int(self.word));
            let call = self.at.ins().call(callee, &[]);
            let value = self.at.func.dfg.first_result(call);
            self.store(value, word.offset(self.word).into());
        }
    }

    /// Reports a barrier when it has been passed, or a fence: number `index` of what is reported.
    fn order(&mut self, inst: Inst, order: u64, index: usize) {
        self.at.goto_after_inst(inst);
        self.at.set_srcloc(self.at.func.srcloc(inst));
        let order = self.at.ins().iconst(word_int(self.word), order.cast_signed());
        self.store_numbered(order, index);
    }

    /// Reports access number `index` before it happens.
    fn access(&mut self, inst: Inst, access: Access, slot: Option<StackSlot>, index: usize) {
        self.at.goto_inst(inst);
        self.at.use_srcloc(inst);
        let word = word_int(self.word);
        if let Some(stored) = access.stored {
            let bits = self.bits(stored);
            self.store(bits, MonitorWord::Value.offset(self.word).into());
        }
        if let Some(slot) = slot {
            let start = self.at.ins().stack_addr(word, slot, 0);
            self.store(start, MonitorWord::Slot.offset(self.word).into());
        }
        let address = match access.offset {
            0 => access.address,
            offset => self.at.ins().iadd_imm_s(access.address, i64::from(offset)),
        };
        self.store_numbered(address, index);
    }

    /// Stores to the word with a number.
    fn store_numbered(&mut self, value: Value, index: usize) {
        let index = u32::try_from(index).expect("CLIF numbers instructions with 32 bits");
        self.store(value, MonitorWord::access_offset(index, self.word));
    }

    fn store(&mut self, value: Value, offset: u64) {
        let first = MonitorWord::first_address(self.word).wrapping_add(offset).cast_signed();
        let address = self.at.ins().iconst(word_int(self.word), first);
        let flags = MemFlagsData::new().with_aligned().with_notrap();
        self.at.ins().store(flags, value, address, 0);
    }

    /// A word that differs where scalars differ, or nearly so if they are wider than a word.
    fn bits(&mut self, value: Value) -> Value {
        let (ty, word) = (self.at.func.dfg.value_type(value), word_int(self.word));
        let int = ty.as_int();
        let value = match ty.is_float() {
            true => self.at.ins().bitcast(int, MemFlagsData::new(), value),
            false => value,
        };
        if int.bits() <= word.bits() {
            return if int == word { value } else { self.at.ins().uextend(word, value) };
        }
        let high = self.at.ins().ushr_imm_u(value, i64::from(word.bits()));
        let mixed = self.at.ins().imul_imm_s(high, 0x9e37_79b9);
        let mixed = self.at.ins().bxor(mixed, value);
        self.at.ins().ireduce(word, mixed)
    }
}
