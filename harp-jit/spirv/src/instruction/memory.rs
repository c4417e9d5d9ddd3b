//! Loads, stores, copies and the addresses of parts.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, MemFlagsData};
use cranelift_frontend::Variable;
use harp_jit::ParamType;
use rspirv::spirv::{Decoration, Op, StorageClass};

use super::copy::MAX_UNROLLED;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::prologue::Item;
use crate::reader::{Id, Instruction};
use crate::types::{Kind, MatrixLayout};
use crate::values::{Buffers, BuiltinPlace, Def, Parts, Place, Val};

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn memory(&mut self, inst: Instruction<'_>) -> Result<bool> {
        match inst.op {
            Op::Load => self.load_instruction(inst)?,
            Op::Store => self.store_instruction(inst)?,
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain => self.access_chain(inst)?,
            Op::CopyMemory => {
                let (to, from) = (inst.word(0)?, inst.word(1)?);
                let ((from, ty), (to, to_ty)) = (self.pointed(from)?, self.pointed(to)?);
                if to_ty != ty {
                    return Err(SpirvErrorKind::malformed("the pointers have different targets"));
                }
                let value = self.load_from(&from, ty, inst.alignment(2))?;
                self.store_to(&to, &value, inst.alignment(2))?;
            }
            Op::CopyMemorySized => self.copy_sized(inst)?,
            Op::PtrDiff => self.pointer_difference(inst)?,
            Op::ArrayLength => self.array_length(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What the pointer with an id stands for, and the type of what it points to.
    pub(crate) fn pointed(&mut self, id: Id) -> Result<(Def, Id)> {
        let def = self.def(id)?;
        let ty = match &def {
            Def::Value(value) => self.module.types.pointer(value.ty)?.1,
            Def::Place(Place { ty, .. }) | Def::Builtin(BuiltinPlace { ty, .. }) => *ty,
            Def::LoadedBuiltin(place) => {
                return Err(self.mismatch(id, place.ty, "a pointer".to_owned()));
            }
            Def::Buffers(_) => {
                return Err(SpirvErrorKind::unsupported("the contents of an array of buffers"));
            }
            Def::Marker => return Err(SpirvErrorKind::malformed("a pointer of another type")),
        };
        Ok((def, ty))
    }

    fn load_instruction(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (mut pointer, ty) = self.pointed(inst.word(0)?)?;
        if ty != inst.ty {
            return Err(SpirvErrorKind::malformed("the pointer has another target"));
        }
        if let Def::Builtin(place) = pointer {
            return self.define(inst.id, Def::LoadedBuiltin(place));
        }
        if inst.is_volatile(1) {
            // The mid-end takes no value from before this place for what is there now.
            self.b.ins().sequence_point();
            if let Def::Value(pointer) = &mut pointer {
                pointer.constant = false;
            }
        }
        let value = self.load_from(&pointer, inst.ty, inst.alignment(1))?;
        self.define(inst.id, Def::Value(value))
    }

    /// Loads a value of type `ty` through a pointer of any kind.
    fn load_from(&mut self, pointer: &Def, ty: Id, align: Option<u64>) -> Result<Val> {
        match pointer {
            Def::Place(place) => {
                let variables = self.variables(*place)?;
                Ok(Val::new(ty, variables.map(|v| self.b.use_var(v)).collect()))
            }
            Def::Value(pointer) => self.load(pointer, ty, align),
            Def::Builtin(place) => self.load_builtin(*place),
            _ => Err(SpirvErrorKind::malformed("a load through something else than a pointer")),
        }
    }

    fn store_instruction(&mut self, inst: Instruction<'_>) -> Result<()> {
        if self.is_table(inst.word(0)?) {
            // It is this constant already.
            return Ok(());
        }
        let (pointer, ty) = self.pointed(inst.word(0)?)?;
        self.store_id(&pointer, inst.word(1)?, ty, inst.alignment(2))?;
        if inst.is_volatile(2) {
            // A later store does not make this one superfluous.
            self.b.ins().sequence_point();
        }
        Ok(())
    }

    /// Stores what an id is through a pointer of any kind to its type `ty`. Large constants are copied from data to variables of a
    /// work-item; in other memory the bytes between scalars are left as they are.
    pub(crate) fn store_id(
        &mut self,
        pointer: &Def,
        id: Id,
        ty: Id,
        align: Option<u64>,
    ) -> Result<()> {
        let module = self.module;
        if let Def::Value(pointer) = pointer
            && pointer.matrix.is_none()
            && module.constants.is_of_numbers(id)
            && module.constants.ty(id)? == ty
            && module.types.get(ty)?.leaves > MAX_UNROLLED
            && let (StorageClass::Function | StorageClass::Private, _) =
                module.types.pointer(pointer.ty)?
        {
            let (from, found) = (self.table(pointer.ty, id)?, module.types.get(ty)?);
            let align = align.unwrap_or(found.align);
            return self.copy(pointer.parts[0], from.parts[0], found.size, align);
        }
        let value = self.value_of(id, ty)?;
        self.store_to(pointer, &value, align)
    }

    /// Stores a value through a pointer of any kind to its type.
    fn store_to(&mut self, pointer: &Def, value: &Val, align: Option<u64>) -> Result<()> {
        match pointer {
            Def::Place(place) => self.assign(*place, value),
            Def::Value(pointer) => self.store(pointer, value, align),
            _ => Err(SpirvErrorKind::malformed("a store through something else than a pointer")),
        }
    }

    /// Stores the result of an extended instruction through the pointer among its operands.
    pub(crate) fn store_result(&mut self, pointer: Id, value: &Val) -> Result<()> {
        let (def, ty) = self.pointed(pointer)?;
        if !self.alike(ty, value.ty)? {
            return Err(self.mismatch(pointer, ty, self.module.types.describe(value.ty)));
        }
        self.store_to(&def, &Val::new(ty, value.parts.clone()), None)
    }

    fn variables(&self, place: Place) -> Result<impl Iterator<Item = Variable> + use<>> {
        let count = self.module.types.get(place.ty)?.leaves as usize;
        Ok(place.variables(count))
    }

    /// Assigns a value to a variable that is no memory.
    pub(crate) fn assign(&mut self, place: Place, value: &Val) -> Result<()> {
        if value.ty != place.ty {
            return Err(SpirvErrorKind::malformed(
                "a variable is assigned a value of another type",
            ));
        }
        for (variable, &part) in self.variables(place)?.zip(&value.parts) {
            self.b.def_var(variable, part);
        }
        Ok(())
    }

    /// Loads a value from memory. The address is a multiple of `align`, or of each scalar's size.
    pub(crate) fn load(&mut self, pointer: &Val, ty: Id, align: Option<u64>) -> Result<Val> {
        let (class, _) = self.module.types.pointer(pointer.ty)?;
        let leaves = self.module.types.leaves(ty, pointer.matrix, self.unit.word)?;
        let constant = pointer.constant || class == StorageClass::UniformConstant;
        // What is constant is not in the stack, whatever the class.
        let class = if constant { StorageClass::UniformConstant } else { class };
        let mut parts = Parts::new();
        for (offset, leaf) in leaves {
            let mut flags = flags(class, align, leaf);
            if constant {
                flags = flags.with_readonly();
            }
            let offset = offset_of(offset)?;
            parts.push(self.b.ins().load(leaf, flags, pointer.parts[0], offset));
        }
        Ok(Val::new(ty, parts))
    }

    /// Stores a value to memory.
    pub(crate) fn store(&mut self, pointer: &Val, value: &Val, align: Option<u64>) -> Result<()> {
        let (class, _) = self.module.types.pointer(pointer.ty)?;
        let leaves = self.module.types.leaves(value.ty, pointer.matrix, self.unit.word)?;
        for ((offset, leaf), &part) in leaves.into_iter().zip(&value.parts) {
            let flags = flags(class, align, leaf);
            self.b.ins().store(flags, part, pointer.parts[0], offset_of(offset)?);
        }
        Ok(())
    }

    fn access_chain(&mut self, inst: Instruction<'_>) -> Result<()> {
        let by_element = matches!(inst.op, Op::PtrAccessChain | Op::InBoundsPtrAccessChain);
        let indices = inst.rest(1 + usize::from(by_element));
        let base = inst.word(0)?;
        let (_, target) = self.module.types.pointer(inst.ty)?;
        let def = match self.def(base)? {
            Def::Place(place) => Def::Place(self.part_of_place(place, indices)?),
            Def::Builtin(place) => self.part_of_builtin(place, indices)?,
            Def::Value(pointer) => {
                let element = if by_element { Some(inst.word(1)?) } else { None };
                let (_, ty) = self.module.types.pointer(pointer.ty)?;
                Def::Value(self.address_of(pointer, ty, element, indices, inst.ty)?)
            }
            Def::Buffers(buffers) if !by_element && !indices.is_empty() => {
                let pointer = self.buffer_of(&buffers, indices[0], inst.ty)?;
                Def::Value(self.address_of(pointer, buffers.ty, None, &indices[1..], inst.ty)?)
            }
            _ => return Err(SpirvErrorKind::malformed("an access chain without a pointer")),
        };
        let found = match &def {
            Def::Place(Place { ty, .. }) | Def::Builtin(BuiltinPlace { ty, .. }) => *ty,
            _ => target,
        };
        if found != target {
            let (given, expected) =
                (self.module.types.describe(found), self.module.types.describe(target));
            return Err(SpirvErrorKind::Mismatch { id: inst.id, given, expected });
        }
        self.define(inst.id, def)
    }

    fn part_of_place(&self, mut place: Place, indices: &[Id]) -> Result<Place> {
        for &index in indices {
            let index = self.module.constants.length(index, &self.module.types)?;
            let (ty, before) = self.module.types.part(place.ty, index)?;
            place = place.part(ty, before);
        }
        Ok(place)
    }

    fn part_of_builtin(&mut self, place: BuiltinPlace, indices: &[Id]) -> Result<Def> {
        let unsupported = || SpirvErrorKind::unsupported("such an index of a built-in value");
        let (&[index], None) = (indices, place.component) else { return Err(unsupported()) };
        let Ok(index) = self.module.constants.length(index, &self.module.types) else {
            return Err(unsupported());
        };
        let (ty, _) = self.module.types.part(place.ty, index)?;
        Ok(Def::Builtin(BuiltinPlace { ty, component: Some(index as u32), ..place }))
    }

    /// The address of the buffer with an index.
    fn buffer_of(&mut self, buffers: &Buffers, index: Id, pointer: Id) -> Result<Val> {
        let count = buffers.addresses.len();
        let address = match self.module.constants.length(index, &self.module.types) {
            Ok(known) => {
                let found = usize::try_from(known).ok().and_then(|at| buffers.addresses.get(at));
                *found.ok_or_else(|| {
                    SpirvErrorKind::malformed(format!("buffer {known} of an array of {count}"))
                })?
            }
            Err(_) => {
                let index = self.integer(index)?;
                self.pick(&buffers.addresses, index)
            }
        };
        Ok(Val { constant: buffers.constant, ..Val::scalar(pointer, address) })
    }

    /// The address of a part of what a pointer points to, which is of type `ty`, or of an element of the array that begins
    /// there.
    fn address_of(
        &mut self,
        base: Val,
        mut ty: Id,
        element: Option<Id>,
        indices: &[Id],
        result: Id,
    ) -> Result<Val> {
        let mut address = Address { base: base.parts[0], offset: 0 };
        if let Some(element) = element {
            let stride = self.element_stride(base.ty, ty)?;
            self.step(&mut address, element, stride)?;
        }
        let mut matrix = base.matrix;
        for &index in indices {
            let types = &self.module.types;
            match types.kind(ty)? {
                Kind::Struct { members } => {
                    let number = self.module.constants.length(index, types)?;
                    let member = members.get(usize::try_from(number).unwrap_or(usize::MAX));
                    let member = member.ok_or_else(|| {
                        SpirvErrorKind::malformed(format!(
                            "member {number} of a structure without it"
                        ))
                    })?;
                    (ty, matrix) = (member.ty, member.matrix);
                    address.offset = address.offset.wrapping_add(member.offset.cast_signed());
                }
                &Kind::Array { of, stride, .. } | &Kind::RuntimeArray { of, stride } => {
                    ty = of;
                    self.step(&mut address, index, stride)?;
                }
                &Kind::Matrix { column, .. } => {
                    let natural = types.get(column)?.size;
                    let layout = matrix.unwrap_or(MatrixLayout { stride: natural, by_rows: false });
                    let (of, _) = types.components(column)?;
                    let size = types.get(of)?.size;
                    ty = column;
                    self.step(
                        &mut address,
                        index,
                        if layout.by_rows { size } else { layout.stride },
                    )?;
                    matrix = Some(layout).filter(|layout| layout.by_rows);
                }
                &Kind::Vector { of, .. } => {
                    let stride = types.component_stride(of, matrix)?;
                    ty = of;
                    self.step(&mut address, index, stride)?;
                    matrix = None;
                }
                _ => {
                    let expected = "a composite".to_owned();
                    let given = types.describe(ty);
                    return Err(SpirvErrorKind::Mismatch { id: index, given, expected });
                }
            }
        }
        let (_, target) = self.module.types.pointer(result)?;
        if target != ty {
            let (given, expected) =
                (self.module.types.describe(ty), self.module.types.describe(target));
            return Err(SpirvErrorKind::Mismatch { id: target, given, expected });
        }
        let value = match address.offset {
            0 => address.base,
            offset => self.b.ins().iadd_imm_s(address.base, offset),
        };
        Ok(Val { matrix, constant: base.constant, ..Val::scalar(result, value) })
    }

    /// The distance of consecutive values of the type that a pointer points to.
    fn element_stride(&self, pointer: Id, ty: Id) -> Result<u64> {
        let found = self.module.types.get(ty)?;
        let natural = found.size.next_multiple_of(found.align);
        let stride = self.module.decorations.number(pointer, Decoration::ArrayStride);
        Ok(stride.map_or(natural, u64::from))
    }

    /// Moves an address by so many strides.
    fn step(&mut self, address: &mut Address, index: Id, stride: u64) -> Result<()> {
        if self.module.constants.contains(index)
            && let Ok(index) = self.module.constants.index(index, &self.module.types)
        {
            let distance = index.wrapping_mul(stride.cast_signed());
            address.offset = address.offset.wrapping_add(distance);
            return Ok(());
        }
        let word = self.unit.word;
        let index = self.integer(index)?;
        let index = self.resized(index, word, true);
        let distance = match stride {
            1 => index,
            stride if stride.is_power_of_two() => {
                let by = self.b.ins().iconst(word, i64::from(stride.trailing_zeros()));
                self.b.ins().ishl(index, by)
            }
            stride => self.b.ins().imul_imm_s(index, stride.cast_signed()),
        };
        address.base = self.b.ins().iadd(address.base, distance);
        Ok(())
    }

    /// The address that a value of a pointer type is.
    pub(crate) fn pointer(&mut self, id: Id) -> Result<(Val, StorageClass, Id)> {
        let value = self.value(id)?;
        let (class, to) = self.module.types.pointer(value.ty)?;
        Ok((value, class, to))
    }

    /// Does something for each number, a word, from `start` up to `end` by `step`, with values that each round gives the
    /// next one, at first `initial`; returns the last ones.
    pub(crate) fn repeat(
        &mut self,
        start: ir::Value,
        end: ir::Value,
        step: ir::Value,
        initial: &[ir::Value],
        body: impl FnOnce(&mut Self, ir::Value, &[ir::Value]) -> Result<Vec<ir::Value>>,
    ) -> Result<Vec<ir::Value>> {
        let [head, inside, after] = [(); 3].map(|()| self.b.create_block());
        let first: Vec<_> = std::iter::once(start).chain(initial.iter().copied()).collect();
        let mut params = Vec::new();
        for &value in &first {
            let ty = self.b.func.dfg.value_type(value);
            params.push(self.b.append_block_param(head, ty));
        }
        let args =
            |values: &[ir::Value]| values.iter().map(|&v| BlockArg::from(v)).collect::<Vec<_>>();
        self.b.ins().jump(head, &args(&first));
        self.b.switch_to_block(head);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, params[0], end);
        self.b.ins().brif(more, inside, &[], after, &[]);
        self.b.switch_to_block(inside);
        let values = body(self, params[0], &params[1..])?;
        let next = self.b.ins().iadd(params[0], step);
        let next: Vec<_> = std::iter::once(next).chain(values).collect();
        self.b.ins().jump(head, &args(&next));
        self.b.switch_to_block(after);
        Ok(params.split_off(1))
    }

    fn pointer_difference(&mut self, inst: Instruction<'_>) -> Result<()> {
        let ((x, _, to), (y, _, _)) = (self.pointer(inst.word(0)?)?, self.pointer(inst.word(1)?)?);
        let stride = self.element_stride(x.ty, to)?;
        let distance = self.b.ins().isub(x.parts[0], y.parts[0]);
        let stride = self.b.ins().iconst(self.unit.word, stride.max(1).cast_signed());
        let count = self.b.ins().sdiv(distance, stride);
        let (_, ty) = self.vector_type(inst.ty, super::Of::Int)?;
        let count = self.resized(count, ty, true);
        self.set(inst, Parts::from_slice(&[count]))
    }

    /// The number of elements of the array at the end of a buffer.
    fn array_length(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (buffer, _, ty) = self.pointer(inst.word(0)?)?;
        let number = inst.word(1)? as usize;
        let member = match self.module.types.kind(ty)? {
            Kind::Struct { members } => members.get(number),
            _ => None,
        };
        let stride = member.map(|member| self.module.types.kind(member.ty)).transpose()?;
        let (Some(member), Some(&Kind::RuntimeArray { stride, .. })) = (member, stride) else {
            return Err(self.mismatch(
                inst.word(0)?,
                ty,
                "a structure with such an array".to_owned(),
            ));
        };
        let Some(&size) = self.sizes.get(&buffer.parts[0]) else {
            return Err(SpirvErrorKind::unsupported("the length of an array of this buffer"));
        };
        let size = self.prologue.item(self.b.func, Item::Argument(ParamType::Word, size));
        let (before, word) = (member.offset, self.unit.word);
        let count = self.at_start(|at| {
            let before = at.ins().iconst(word, before.cast_signed());
            // A buffer that is too short for what is before the array has no elements.
            let end = at.ins().umax(size, before);
            let bytes = at.ins().isub(end, before);
            let stride = at.ins().iconst(word, stride.max(1).cast_signed());
            at.ins().udiv(bytes, stride)
        });
        let (_, ty) = self.vector_type(inst.ty, super::Of::Int)?;
        let count = self.resized(count, ty, false);
        self.set(inst, Parts::from_slice(&[count]))
    }
}

/// An address that is being computed.
struct Address {
    base: ir::Value,
    offset: i64,
}

fn offset_of(offset: u64) -> Result<i32> {
    i32::try_from(offset).map_err(|_| SpirvErrorKind::TooMany {
        what: "the offset of a scalar in a value",
        given: offset,
        limit: i32::MAX as u64,
    })
}

/// The flags of an access to a scalar. Without an alignment in the module, all is aligned as its type wants it.
fn flags(class: StorageClass, align: Option<u64>, ty: ir::Type) -> MemFlagsData {
    let mut flags = MemFlagsData::new();
    if align.is_none_or(|align| align >= u64::from(ty.bytes())) {
        flags = flags.with_aligned();
    }
    if class == StorageClass::Function {
        flags = flags.with_notrap();
    }
    flags
}
