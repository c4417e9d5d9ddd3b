//! Numbers that all blocks share and change: the trace of the path, and counts of visits.

use cranelift_codegen::ir::types::{I16, I32, I64};
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_frontend::{FunctionBuilder as Builder, Variable};

use super::super::choices::Choices;

/// Where a number is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In values, with parameters where blocks meet.
    Variable(Variable),
    /// In the work-item's memory or on its stack, with this number.
    Memory(u32),
    /// In a parameter that all blocks have, with this number.
    Param(usize),
}

/// A number that blocks read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    place: Place,
    pub(super) ty: Type,
}

/// All of these numbers.
pub(super) struct Cells {
    word: Type,
    /// The address of those in memory.
    own: Value,
    slot: Option<StackSlot>,
    /// How many are there.
    pub(super) in_memory: u32,
    /// Those in parameters, where the current block has them.
    pub(super) params: Vec<(Value, Type)>,
}

impl Cells {
    /// Cells of a word each lie in memory, from `own` on or on the stack.
    pub(super) fn new(b: &mut Builder<'_>, own: Value, choices: &mut Choices<'_>) -> Cells {
        let word = b.func.dfg.value_type(own);
        let bytes = super::fill::CELLS * word.bytes();
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
        let slot = choices.once_in(3).then(|| b.create_sized_stack_slot(data));
        Cells { word, own, slot, in_memory: 0, params: Vec::new() }
    }

    /// A new one, anywhere.
    pub(super) fn anywhere(
        &mut self,
        b: &mut Builder<'_>,
        choices: &mut Choices<'_>,
        start: Value,
    ) -> Cell {
        let ty = b.func.dfg.value_type(start);
        let place = match choices.below(5) {
            0..=2 => Place::Variable(b.declare_var(ty)),
            3 => {
                self.params.push((start, ty));
                Place::Param(self.params.len() - 1)
            }
            _ if ty == self.word && self.in_memory < super::fill::CELLS => {
                self.in_memory += 1;
                Place::Memory(self.in_memory - 1)
            }
            _ => Place::Variable(b.declare_var(ty)),
        };
        let cell = Cell { place, ty };
        self.set(b, cell, start);
        cell
    }

    /// The parameters that all blocks begin with.
    pub(super) fn param_types(&self) -> Vec<Type> {
        self.params.iter().map(|(_, ty)| *ty).collect()
    }

    /// The arguments of a branch for these parameters.
    pub(super) fn args(&self) -> Vec<Value> {
        self.params.iter().map(|(value, _)| *value).collect()
    }

    /// Goes on in a block, with its parameters.
    pub(super) fn enter(&mut self, b: &Builder<'_>, block: Block) {
        let params = b.block_params(block);
        self.params.iter_mut().zip(params).for_each(|(cell, value)| cell.0 = *value);
    }

    fn address(&self, b: &mut Builder<'_>, index: u32) -> (Value, i32) {
        let base = self.slot.map_or(self.own, |slot| b.ins().stack_addr(self.word, slot, 0));
        (base, (index * self.word.bytes()).cast_signed())
    }

    pub(super) fn get(&self, b: &mut Builder<'_>, cell: Cell) -> Value {
        match cell.place {
            Place::Variable(variable) => b.use_var(variable),
            Place::Param(index) => self.params[index].0,
            Place::Memory(index) => {
                let (base, offset) = self.address(b, index);
                b.ins().load(self.word, MemFlagsData::trusted(), base, offset)
            }
        }
    }

    pub(super) fn set(&mut self, b: &mut Builder<'_>, cell: Cell, value: Value) {
        match cell.place {
            Place::Variable(variable) => b.def_var(variable, value),
            Place::Param(index) => self.params[index].0 = value,
            Place::Memory(index) => {
                let (base, offset) = self.address(b, index);
                b.ins().store(MemFlagsData::trusted(), value, base, offset);
            }
        }
    }
}

/// The type of a count, which is never above 30,000.
pub(super) fn count_type(choices: &mut Choices<'_>, word: Type) -> Type {
    choices.one(&[word, word, I32, I16, I64])
}
