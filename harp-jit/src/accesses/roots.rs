//! What addresses point into, as far as a function shows it.
//!
//! A value's *roots* are the objects that it may be an address in. They come from parameters of the kernel, the memory of
//! the work-group, stack slots and data of the module, and pass through sums, selections and block parameters. In a sum of an address and
//! something else, the latter is taken for an index. What is loaded from memory or returned from a call may be any
//! address. The sets grow to a fixed point, block by block.

use std::ops::Range;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    BlockArg, Function, GlobalValue, GlobalValueData, Inst, InstructionData, Opcode, StackSlot,
    StackSlotData, Value,
};
use harp_isa::WordSize;
use harp_isa::abi::{ArgumentBlock, GroupField, LaunchGrid, LaunchMemory, LaunchOffset};
use smallvec::SmallVec;

use super::{GroupArray, KernelShape, Root};
use crate::analysis::edges;
use crate::constant;
use crate::intrinsic::Intrinsic;
use crate::source::SourceMap;
use crate::symbols::Symbols;

/// The most objects that a value's roots are told apart for.
const MOST: usize = 8;

/// An object that an address may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Param(u32),
    Group,
    /// By its place among the kernel's.
    GroupArray(usize),
    Slot(StackSlot),
    Datum(GlobalValue),
    /// The argument block.
    Arguments,
    /// Memory of the compiler's own, such as the print area.
    Own,
}

/// What is known about a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Known {
    /// It is no address, as far as is known.
    #[default]
    Plain,
    /// An index, or an address in any object: what is loaded, given to the function or made of such values.
    Any,
    /// An address in one of these objects, in ascending order.
    In(SmallVec<[Object; 2]>),
    /// An address in any object.
    Anywhere,
}

impl Known {
    fn one(object: Object) -> Known {
        Known::In(SmallVec::from_slice(&[object]))
    }

    /// What holds whichever of the two values it is.
    fn or(&self, other: &Known) -> Known {
        match (self, other) {
            (Known::Plain, known) | (known, Known::Plain) => known.clone(),
            (Known::Any, Known::Any) => Known::Any,
            (Known::In(a), Known::In(b)) => {
                let mut all: SmallVec<[Object; 2]> = a.iter().chain(b).copied().collect();
                all.sort_unstable();
                all.dedup();
                if all.len() > MOST { Known::Anywhere } else { Known::In(all) }
            }
            _ => Known::Anywhere,
        }
    }

    /// What is known about a sum.
    fn plus(&self, other: &Known) -> Known {
        match (self, other) {
            (Known::Plain | Known::Any, Known::In(objects))
            | (Known::In(objects), Known::Plain | Known::Any) => Known::In(objects.clone()),
            (Known::Plain, known) | (known, Known::Plain) => known.clone(),
            (Known::Any, Known::Any) => Known::Any,
            _ => Known::Anywhere,
        }
    }
}

/// What the report of an access needs to know about its address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) roots: Vec<Root>,
    /// The stack slot that it is in, which is the only root then.
    pub(super) slot: Option<StackSlot>,
}

/// What is known about the values of a function.
pub(super) struct Roots {
    known: SecondaryMap<Value, Known>,
    /// What stack slots are as roots.
    slots: Vec<Root>,
    /// What arrays of work-groups are as roots.
    arrays: Vec<Root>,
    /// The names of the data.
    names: SecondaryMap<GlobalValue, Option<String>>,
}

impl Roots {
    pub(super) fn of(
        func: &Function,
        word: WordSize,
        kernel: Option<&KernelShape>,
        symbols: &dyn Symbols,
        sources: &SourceMap,
    ) -> Roots {
        let mut solver = Solver { func, word, kernel, known: SecondaryMap::new() };
        solver.solve();
        let slot = |slot: &StackSlotData| {
            let name = slot.key.and_then(|key| sources.variable_name(key));
            Root::Slot { name: name.map(str::to_owned), bytes: slot.size }
        };
        let slots = func.sized_stack_slots.values().map(slot).collect();
        let mut names = SecondaryMap::new();
        for (global, data) in &func.global_values {
            if let GlobalValueData::Symbol { name, .. } = data {
                names[global] = Some(symbols.name(func, name));
            }
        }
        let array = |GroupArray { name, bytes: Range { start, end } }: &GroupArray| {
            Root::GroupArray { name: name.clone(), start: *start, bytes: end - start }
        };
        let arrays = kernel.iter().flat_map(|kernel| &kernel.group_arrays).map(array).collect();
        Roots { known: solver.known, slots, arrays, names }
    }

    /// What `address` points into; none if that is memory that users do not see.
    pub(super) fn of_address(&self, address: Value) -> Option<Found> {
        let Known::In(objects) = &self.known[address] else { return Some(Found::default()) };
        let is_hidden = |object: &Object| match *object {
            Object::Arguments | Object::Own => true,
            Object::Datum(global) => {
                let of_launch = [LaunchMemory::SYMBOL, LaunchOffset::SYMBOL, LaunchGrid::SYMBOL];
                self.names[global].as_deref().is_some_and(|name| of_launch.contains(&name))
            }
            _ => false,
        };
        if objects.iter().any(is_hidden) {
            return None;
        }
        if let [Object::Slot(slot)] = objects[..] {
            let root = &self.slots[slot.as_u32() as usize];
            return Some(Found { roots: vec![root.clone()], slot: Some(slot) });
        }
        let seen = |object: &Object| match *object {
            Object::Param(number) => Some(Root::Param(number)),
            Object::Group => Some(Root::Group),
            Object::GroupArray(array) => Some(self.arrays[array].clone()),
            Object::Datum(global) => self.names[global].clone().map(Root::Datum),
            Object::Slot(_) | Object::Arguments | Object::Own => None,
        };
        let roots = objects.iter().map(seen).collect::<Option<Vec<Root>>>();
        Some(Found { roots: roots.unwrap_or_default(), slot: None })
    }
}

/// The computation of what is known.
struct Solver<'a> {
    func: &'a Function,
    word: WordSize,
    kernel: Option<&'a KernelShape>,
    known: SecondaryMap<Value, Known>,
}

impl Solver<'_> {
    fn solve(&mut self) {
        let entry = self.func.layout.entry_block();
        let params = entry.map_or(&[][..], |entry| self.func.dfg.block_params(entry));
        match (self.kernel, params) {
            (Some(_), [arguments, ..]) => self.known[*arguments] = Known::one(Object::Arguments),
            (Some(_), []) => {}
            (None, params) => params.iter().for_each(|&param| self.known[param] = Known::Any),
        }
        loop {
            let mut changed = false;
            for block in self.func.layout.blocks() {
                for inst in self.func.layout.block_insts(block) {
                    changed |= self.inst(inst);
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// Adds what an instruction shows. Returns whether anything is new.
    fn inst(&mut self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let mut changed = false;
        for destination in edges(dfg, inst) {
            let params = dfg.block_params(destination.block(&dfg.value_lists));
            for (&param, arg) in params.iter().zip(destination.args(&dfg.value_lists)) {
                if let BlockArg::Value(arg) = arg {
                    let known = self.of(arg);
                    changed |= self.add(param, &known);
                }
            }
        }
        match dfg.inst_results(inst) {
            &[result] => changed |= self.add(result, &self.result(inst)),
            results => {
                for &result in results {
                    changed |= self.add(result, &Known::Any);
                }
            }
        }
        changed
    }

    fn add(&mut self, value: Value, known: &Known) -> bool {
        let all = self.known[value].or(known);
        let changed = all != self.known[value];
        self.known[value] = all;
        changed
    }

    fn of(&self, value: Value) -> Known {
        self.known[self.func.dfg.resolve_aliases(value)].clone()
    }

    fn result(&self, inst: Inst) -> Known {
        let dfg = &self.func.dfg;
        let args = dfg.inst_args(inst);
        match dfg.insts[inst] {
            InstructionData::Load { opcode: Opcode::Load, offset, .. } => {
                self.loaded(&self.of(args[0]), offset.into())
            }
            InstructionData::StackAddr { stack_slot, .. } => Known::one(Object::Slot(stack_slot)),
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                self.symbol(global_value)
            }
            InstructionData::Binary { opcode: Opcode::Iadd, .. } => self.sum(args[0], args[1]),
            InstructionData::Binary { opcode: Opcode::Isub, .. } => {
                match (self.of(args[0]), self.of(args[1])) {
                    (Known::In(objects), Known::Plain | Known::Any) => Known::In(objects),
                    // A distance.
                    (Known::In(_), Known::In(_)) => Known::Plain,
                    (a @ (Known::Plain | Known::Any), b @ (Known::Plain | Known::Any)) => a.or(&b),
                    _ => Known::Anywhere,
                }
            }
            InstructionData::Ternary { opcode: Opcode::Select, .. } => {
                self.of(args[1]).or(&self.of(args[2]))
            }
            InstructionData::Call { .. } => match Intrinsic::of_call(self.func, inst) {
                Some(Intrinsic::GroupWord(GroupField::Memory)) => Known::one(Object::Group),
                Some(Intrinsic::AssumeUniform | Intrinsic::OfSomeLane) => self.of(args[0]),
                Some(_) => self.made_of(args),
                None => Known::Any,
            },
            _ => self.made_of(args),
        }
    }

    /// What is known about a value that is made of others in some way.
    fn made_of(&self, args: &[Value]) -> Known {
        match args.iter().all(|&arg| self.of(arg) == Known::Plain) {
            true => Known::Plain,
            false => Known::Any,
        }
    }

    /// A sum; that of the group's memory and a known distance may be an array.
    fn sum(&self, a: Value, b: Value) -> Known {
        let known = [self.of(a), self.of(b)];
        let group = Known::one(Object::Group);
        if known == [group.clone(), Known::Plain]
            && let Some(start) = constant::unsigned(&self.func.dfg, b)
            && let Some(array) = self.group_array_at(start)
        {
            return Known::one(Object::GroupArray(array));
        }
        match &known {
            [memory, Known::In(param)]
                if *memory == group && matches!(param[..], [Object::Param(_)]) =>
            {
                known[1].clone()
            }
            [a, b] => a.plus(b),
        }
    }

    /// The address of a symbol, or of a place in what it names.
    fn symbol(&self, mut global: GlobalValue) -> Known {
        while let GlobalValueData::IAddImm { base, .. } = self.func.global_values[global] {
            global = base;
        }
        match self.func.global_values[global] {
            GlobalValueData::Symbol { .. } => Known::one(Object::Datum(global)),
            _ => Known::Anywhere,
        }
    }

    fn group_array_at(&self, start: u64) -> Option<usize> {
        let mut arrays = self.kernel?.group_arrays.iter();
        arrays.position(|array| u64::from(array.bytes.start) == start)
    }

    /// What is known about a value loaded from `offset` bytes behind the start of an object.
    fn loaded(&self, address: &Known, offset: i32) -> Known {
        let Known::In(objects) = address else { return Known::Any };
        match objects[..] {
            [Object::Own] => Known::one(Object::Own),
            [Object::Arguments] => self.argument(offset),
            _ => Known::Any,
        }
    }

    /// The value of the argument block's word at `offset`.
    fn argument(&self, offset: i32) -> Known {
        let header = ArgumentBlock::argument(0, self.word);
        let Some(behind) = u32::try_from(offset).ok().and_then(|at| at.checked_sub(header)) else {
            return Known::Plain;
        };
        let word = (behind / u32::from(self.word.bytes())) as usize;
        let words = self.kernel.map_or(&[][..], |kernel| &kernel.words);
        match words.get(word) {
            Some(Some(param)) => Known::one(Object::Param(*param)),
            Some(None) => Known::Any,
            // Behind the parameters are the compiler's own arguments.
            None => Known::one(Object::Own),
        }
    }
}
