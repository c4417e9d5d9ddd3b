//! Variables: of the module, of the function, and the memory that some of them need.

use cranelift_codegen::ir::{self, InstBuilder, StackSlotData, StackSlotKind};
use harp_jit::DataId;
use rspirv::spirv::StorageClass;

use super::Translator;
use crate::error::{Result, SpirvErrorKind};
use crate::prologue::Item;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{BuiltinPlace, Def, Place, Val};

/// The most bytes of a variable in a work-item's stack.
const MAX_SLOT_BYTES: u64 = 1 << 20;

impl Translator<'_, '_, '_> {
    /// The address of a variable of the module.
    pub(crate) fn global_address(&mut self, variable: Id) -> Result<ir::Value> {
        match self.global(variable)? {
            Def::Value(Val { parts, .. }) if parts.len() == 1 => Ok(parts[0]),
            _ => {
                Err(SpirvErrorKind::unsupported(format!("the address of the variable %{variable}")))
            }
        }
    }

    /// What a variable of the module stands for here.
    pub(super) fn global(&mut self, id: Id) -> Result<Def> {
        if let Some(def) = self.globals.get(&id) {
            return Ok(def.clone());
        }
        let module = self.module;
        let global = &module.globals[&id];
        let pointer = module.constants.ty(id)?;
        let address = match global.class {
            StorageClass::Input => {
                let Some(builtin) = module.decorations.builtin(id) else {
                    return Err(SpirvErrorKind::unsupported(format!("the input %{id}")));
                };
                let place = BuiltinPlace { ty: global.ty, builtin, component: None };
                return Ok(Def::Builtin(place));
            }
            StorageClass::Workgroup => {
                let offset = self.unit.group_offset(id)?;
                let word = self.unit.word;
                let memory = self.prologue_word("harp_group_memory");
                // Added even if it is zero: checks tell arrays apart by what is added.
                self.prologue.insert(&mut *self.b.func, |at| {
                    let offset = at.ins().iconst(word, i64::from(offset));
                    at.ins().iadd(memory, offset)
                })
            }
            _ if module.is_data(global) => {
                let data = self.unit.data(id)?;
                self.data_address(data)?
            }
            class => {
                return Err(SpirvErrorKind::unsupported(format!(
                    "the variable %{id} in {class:?}"
                )));
            }
        };
        let def = Def::Value(Val::scalar(pointer, address));
        self.globals.insert(id, def.clone());
        Ok(def)
    }

    /// A word that an intrinsic without arguments gives, computed at the function's start.
    pub(crate) fn prologue_word(&mut self, name: &'static str) -> ir::Value {
        self.prologue.item(self.b.func, Item::Word(name))
    }

    /// A variable of the function.
    pub(super) fn variable(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (class, ty) = self.module.types.pointer(inst.ty)?;
        if class != StorageClass::Function {
            return Err(SpirvErrorKind::malformed("a variable of a function in another class"));
        }
        if let Some(&constant) = self.frame.variables.tables.get(&inst.id) {
            let table = self.table(inst.ty, constant)?;
            return self.define(inst.id, Def::Value(table));
        }
        let def = if self.frame.variables.promoted.contains(&inst.id) {
            Def::Place(self.place(ty)?)
        } else {
            let align = self.unit.stack_alignment(&self.frame.variables, inst.id, ty)?;
            Def::Value(self.slot(inst.id, inst.ty, ty, align)?)
        };
        if let Some(&initial) = inst.operands.get(1) {
            self.store_id(&def, initial, ty, None)?;
        }
        self.define(inst.id, def)
    }

    /// Whether a variable of the function is data.
    pub(crate) fn is_table(&self, variable: Id) -> bool {
        self.frame.variables.tables.contains_key(&variable)
    }

    /// A pointer of a type to data that is a constant.
    pub(crate) fn table(&mut self, pointer: Id, constant: Id) -> Result<Val> {
        let data = self.unit.constant_data(constant)?;
        let address = self.data_address(data)?;
        Ok(Val { constant: true, ..Val::scalar(pointer, address) })
    }

    /// The address of data, computed at the function's start.
    fn data_address(&mut self, data: DataId) -> Result<ir::Value> {
        let word = self.unit.word;
        let symbol = self.unit.declarations.declare_data_in_func(data, self.b.func)?;
        let func = &mut *self.b.func;
        Ok(self.prologue.insert(func, |at| at.ins().symbol_value(word, symbol)))
    }

    /// A new variable that is no memory.
    pub(crate) fn place(&mut self, ty: Id) -> Result<Place> {
        let leaves = self.leaf_types(ty)?;
        let mut first = None;
        for leaf in leaves {
            let variable = self.b.declare_var(leaf);
            first.get_or_insert(variable);
        }
        let first = first.ok_or_else(|| SpirvErrorKind::malformed("a variable of no scalars"))?;
        Ok(Place::new(ty, first))
    }

    /// A pointer to new memory in the stack whose address nobody can see: a variable of a shader.
    pub(crate) fn hidden_slot(&mut self, id: Id, pointer: Id, ty: Id) -> Result<Val> {
        let align = self.module.types.get(ty)?.align;
        self.slot(id, pointer, ty, align.min(self.unit.word.bytes().into()))
    }

    /// A pointer to new memory in the stack for `id`, aligned to so many bytes.
    pub(crate) fn slot(&mut self, id: Id, pointer: Id, ty: Id, align: u64) -> Result<Val> {
        let found = self.module.types.get(ty)?;
        if found.size == 0 && !matches!(found.kind, Kind::Struct { .. }) {
            let what = format!("a variable of {}", self.module.types.describe(ty));
            return Err(SpirvErrorKind::unsupported(what));
        }
        if found.size > MAX_SLOT_BYTES {
            let (given, limit) = (found.size, MAX_SLOT_BYTES);
            return Err(SpirvErrorKind::TooMany { what: "bytes of a variable", given, limit });
        }
        let align = align.trailing_zeros() as u8;
        let name = self.module.decorations.name(id).filter(|name| !name.is_empty());
        // clang's copy of a parameter.
        let name = name.map(|name| name.strip_suffix(".addr").unwrap_or(name));
        let data = StackSlotData {
            key: name.map(|name| self.unit.sources.variable(name)),
            ..StackSlotData::new(StackSlotKind::ExplicitSlot, found.size.max(1) as u32, align)
        };
        let slot = self.b.create_sized_stack_slot(data);
        let word = self.unit.word;
        let address = self.b.ins().stack_addr(word, slot, 0);
        Ok(Val::scalar(pointer, address))
    }
}
