//! The variables that a launch provides to a shader: buffers and push constants.

use rspirv::spirv::{Decoration, StorageClass};
use smallvec::SmallVec;

use super::interface::{EntryParam, EntryParamKind};
use super::{Global, SpirvModule};
use crate::error::{Result, SpirvErrorKind};
use crate::reader::Id;
use crate::types::Kind;

/// The most elements of an array of buffers.
const MOST_BUFFERS: u64 = 64;

impl SpirvModule {
    /// The variables that a launch provides among those that a function and its callees use: buffers by their bindings,
    /// then push constants.
    pub(super) fn resources(&self, function: Id) -> Vec<Id> {
        let mut found = self.used_globals(function, |&Global { class, ty, .. }| match class {
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant => {
                true
            }
            // Images and samplers, which are refused by name.
            StorageClass::UniformConstant => {
                matches!(self.types.kind(ty), Ok(Kind::Opaque { .. }))
            }
            _ => false,
        });
        let number = |id, decoration| self.decorations.number(id, decoration);
        found.sort_by_key(|&id| {
            let is_constant = self.globals[&id].class == StorageClass::PushConstant;
            let set = number(id, Decoration::DescriptorSet);
            (is_constant, set, number(id, Decoration::Binding), id)
        });
        found
    }

    /// Whether nothing changes what is in a variable that a launch provides, or in an element of one, which is of type `ty`:
    /// variables do not overlap unless they say so.
    fn is_constant_variable(&self, id: Id, ty: Id) -> bool {
        let class = self.globals[&id].class;
        let has = |decoration| self.decorations.has(id, decoration);
        let members = match self.types.kind(ty) {
            Ok(Kind::Struct { members }) => members.len() as u32,
            _ => 0,
        };
        let member_has =
            |member, decoration| self.decorations.of_member(ty, member, decoration).is_some();
        let any_has = |decoration| {
            has(decoration) || (0..members).any(|member| member_has(member, decoration))
        };
        let only_read = has(Decoration::NonWritable)
            || (members > 0
                && (0..members).all(|member| member_has(member, Decoration::NonWritable)));
        let is_block =
            class == StorageClass::Uniform && !self.decorations.has(ty, Decoration::BufferBlock);
        (only_read || is_block) && !any_has(Decoration::Aliased) && !any_has(Decoration::Volatile)
    }

    /// Whether a function or its callees ask how long the array at the end of a buffer is.
    pub(super) fn asks_for_lengths(&self, function: Id) -> bool {
        self.reachable(function).iter().any(|function| self.functions[function].asks_for_lengths)
    }

    /// The name of a block: of the type, or of what it wraps, as blocks without a dynamic array are by some compilers.
    fn block_name(&self, ty: Id) -> Option<&str> {
        let wrapped = match self.types.kind(ty) {
            Ok(Kind::Struct { members }) if members.len() == 1 => Some(members[0].ty),
            _ => None,
        };
        [Some(ty), wrapped].into_iter().flatten().find_map(|ty| self.decorations.name(ty))
    }

    /// The type of a buffer's contents and the number of buffers, if a variable is an array of them.
    pub(super) fn buffers(&self, id: Id) -> Result<Option<(Id, u64)>> {
        let Global { ty, class, .. } = self.globals[&id];
        match *self.types.kind(ty)? {
            Kind::Array { of, count, .. } if class != StorageClass::PushConstant => {
                if count > MOST_BUFFERS {
                    let (given, limit) = (count, MOST_BUFFERS);
                    return Err(SpirvErrorKind::TooMany {
                        what: "buffers of an array",
                        given,
                        limit,
                    });
                }
                Ok(Some((of, count)))
            }
            _ => Ok(None),
        }
    }

    /// The descriptor set and the binding of a variable.
    fn binding(&self, id: Id) -> Option<(u32, u32)> {
        let number = |decoration| self.decorations.number(id, decoration);
        number(Decoration::DescriptorSet).zip(number(Decoration::Binding))
    }

    /// Whether two variables are the same buffer, or array of buffers, for which a module may declare different types.
    pub(super) fn are_views(&self, one: Id, other: Id) -> bool {
        let count = |id| self.buffers(id).map(|found| found.map(|(_, count)| count));
        let [of_one, of_other] = [one, other].map(|id| self.binding(id));
        of_one.is_some() && of_one == of_other && count(one) == count(other)
    }

    /// The parameter for variables that are the same buffer, or for an element of such arrays.
    pub(super) fn resource(&self, views: &[Id], is_sized: bool) -> Result<EntryParam> {
        let types = views.iter().map(|&id| match self.buffers(id)? {
            Some((of, _)) => Ok(of),
            None => Ok(self.globals[&id].ty),
        });
        let types = types.collect::<Result<SmallVec<[Id; 1]>>>()?;
        let (id, ty) = (views[0], types[0]);
        let kind = if self.globals[&id].class == StorageClass::PushConstant {
            self.fields(ty)?
        } else {
            let is_block = |&ty: &Id| matches!(self.types.kind(ty), Ok(Kind::Struct { .. }));
            if let Some(&other) = types.iter().find(|ty| !is_block(ty)) {
                let what = format!("the variable %{id}, {},", self.types.describe(other));
                return Err(SpirvErrorKind::unsupported(what));
            }
            let element = self.element(ty).filter(|element| {
                types.iter().all(|&ty| self.element(ty).as_ref() == Some(element))
            });
            if is_sized {
                EntryParamKind::SizedBuffer(element)
            } else {
                EntryParamKind::Buffer(element)
            }
        };
        let name = self.decorations.name(id).or_else(|| self.block_name(ty)).map(str::to_owned);
        let mut of_types = views.iter().zip(&types);
        let constant = of_types.all(|(&id, &ty)| self.is_constant_variable(id, ty));
        Ok(EntryParam { name, kind, binding: self.binding(id), constant })
    }
}
