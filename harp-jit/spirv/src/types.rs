//! A module's types: what they are made of, their size and place in memory, and the scalars that a value consists of.
//!
//! The layout of a structure or array is what its decorations say (`Offset`, `ArrayStride`), as Vulkan wants it. Where
//! there are none it is C's: OpenCL's layout (OpenCL C specification, section 6.1.5: a vector is aligned to its size, and
//! one of 3 components takes the room of 4), which is also as good as any for memory that the host never sees.

use cranelift_codegen::ir::{self, types};
use hashbrown::HashMap;
use rspirv::spirv::{Decoration, Op, StorageClass};
use smallvec::SmallVec;

use crate::decorations::Decorations;
use crate::error::{Result, SpirvErrorKind};
use crate::reader::{Id, Instruction};

/// The most bytes of a type.
const MAX_BYTES: u64 = 1 << 30;

/// The most types inside of each other.
const MAX_DEPTH: u32 = 64;

/// The most scalars of a value that is not in memory.
pub(crate) const MAX_LEAVES: u64 = 4096;

/// What a pointer points to that is declared and not defined yet: the id of nothing.
const NO_TYPE: Id = 0;

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Void,
    Bool,
    /// An integer of 8, 16, 32 or 64 bits.
    Int {
        bits: u32,
        signed: bool,
    },
    /// A float of 16, 32 or 64 bits.
    Float {
        bits: u32,
    },
    Vector {
        of: Id,
        count: u32,
    },
    Matrix {
        column: Id,
        count: u32,
    },
    Array {
        of: Id,
        count: u64,
        stride: u64,
    },
    RuntimeArray {
        of: Id,
        stride: u64,
    },
    Struct {
        members: Box<[Member]>,
    },
    Pointer {
        class: StorageClass,
        to: Id,
    },
    Function {
        result: Id,
        params: Box<[Id]>,
    },
    /// The event of an asynchronous copy, which has no contents.
    Event,
    /// A type that no instruction here can do anything with.
    Opaque {
        name: String,
    },
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) ty: Id,
    pub(crate) offset: u64,
    /// How a matrix in it is stored, if it has one.
    pub(crate) matrix: Option<MatrixLayout>,
    /// The number of scalars before it.
    pub(crate) first_leaf: u64,
}

/// How a matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixLayout {
    /// The distance of its columns, or of its rows if it is stored by rows.
    pub(crate) stride: u64,
    pub(crate) by_rows: bool,
}

/// A type with what is known of its size.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) kind: Kind,
    /// Bytes in memory; 0 if it has no size.
    pub(crate) size: u64,
    /// A power of two.
    pub(crate) align: u64,
    /// The number of scalars of a value.
    pub(crate) leaves: u64,
    depth: u32,
}

/// A scalar in memory: its offset and its type there.
pub(crate) type Leaf = (u64, ir::Type);

/// The scalars of a type. Most types have few.
pub(crate) type Leaves = SmallVec<[Leaf; 4]>;

/// The types of a module by their ids.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    by_id: HashMap<Id, Type>,
    /// Bytes of an address; those that the machine has if there are only logical ones.
    address_bytes: Option<u8>,
}

impl Types {
    /// No types yet; addresses in memory have a size unless they are logical.
    pub(crate) fn new(address_bytes: Option<u8>) -> Types {
        Types { by_id: HashMap::new(), address_bytes }
    }

    /// Declares a pointer that is defined behind its uses.
    pub(crate) fn declare_pointer(
        &mut self,
        inst: Instruction<'_>,
        decorations: &Decorations,
    ) -> Result<()> {
        let class = inst.enumerant(1, "storage class", StorageClass::from_u32)?;
        let id = inst.word(0)?;
        let pointer = self.measured(Kind::Pointer { class, to: NO_TYPE }, id, decorations)?;
        if self.by_id.contains_key(&id) {
            return Err(SpirvErrorKind::malformed("this pointer is defined already"));
        }
        self.by_id.insert(id, pointer);
        Ok(())
    }

    /// The type with an id.
    pub(crate) fn get(&self, id: Id) -> Result<&Type> {
        let undefined = || SpirvErrorKind::Undefined { id, role: "a type" };
        self.by_id.get(&id).ok_or_else(undefined)
    }

    /// What the type with an id is.
    pub(crate) fn kind(&self, id: Id) -> Result<&Kind> {
        Ok(&self.get(id)?.kind)
    }

    /// Defines the type of an instruction. `length` gives the value of a constant.
    pub(crate) fn define(
        &mut self,
        inst: Instruction<'_>,
        decorations: &Decorations,
        length: impl Fn(&Types, Id) -> Result<u64>,
    ) -> Result<()> {
        let kind = self.kind_of(inst, decorations, length)?;
        let ty = self.measured(kind, inst.id, decorations)?;
        if ty.size > MAX_BYTES {
            let (given, limit) = (ty.size, MAX_BYTES);
            return Err(SpirvErrorKind::TooMany { what: "bytes of a type", given, limit });
        }
        if ty.depth > MAX_DEPTH {
            let (given, limit) = (ty.depth.into(), MAX_DEPTH.into());
            return Err(SpirvErrorKind::TooMany {
                what: "types inside of each other",
                given,
                limit,
            });
        }
        let class = match ty.kind {
            Kind::Pointer { class, .. } => Some(class),
            _ => None,
        };
        match self.by_id.insert(inst.id, ty).map(|before| before.kind) {
            None => Ok(()),
            Some(Kind::Pointer { class: declared, to: NO_TYPE }) if class == Some(declared) => {
                Ok(())
            }
            Some(Kind::Pointer { class: declared, to: NO_TYPE }) => {
                let what = format!("it was declared as a pointer to {declared:?}");
                Err(SpirvErrorKind::malformed(what))
            }
            Some(_) => Err(SpirvErrorKind::malformed("this id is defined twice")),
        }
    }

    fn kind_of(
        &self,
        inst: Instruction<'_>,
        decorations: &Decorations,
        length: impl Fn(&Types, Id) -> Result<u64>,
    ) -> Result<Kind> {
        Ok(match inst.op {
            Op::TypeVoid => Kind::Void,
            Op::TypeBool => Kind::Bool,
            Op::TypeInt => match inst.word(0)? {
                bits @ (8 | 16 | 32 | 64) => Kind::Int { bits, signed: inst.word(1)? != 0 },
                bits => {
                    return Err(SpirvErrorKind::unsupported(format!("an integer of {bits} bits")));
                }
            },
            Op::TypeFloat => match (inst.word(0)?, inst.rest(1)) {
                (bits @ (16 | 32 | 64), []) => Kind::Float { bits },
                (bits, _) => {
                    return Err(SpirvErrorKind::unsupported(format!("this float of {bits} bits")));
                }
            },
            Op::TypeVector => {
                let (of, count) = (inst.word(0)?, inst.word(1)?);
                let scalar = matches!(
                    self.kind(of)?,
                    Kind::Bool | Kind::Int { .. } | Kind::Float { .. } | Kind::Pointer { .. }
                );
                if !scalar || !matches!(count, 2 | 3 | 4 | 8 | 16) {
                    return Err(SpirvErrorKind::unsupported(format!(
                        "a vector of {count} of %{of}"
                    )));
                }
                Kind::Vector { of, count }
            }
            Op::TypeMatrix => {
                let (column, count) = (inst.word(0)?, inst.word(1)?);
                if !matches!(self.kind(column)?, Kind::Vector { .. }) || !(2..=4).contains(&count) {
                    return Err(SpirvErrorKind::malformed("a matrix has 2 to 4 vectors"));
                }
                Kind::Matrix { column, count }
            }
            Op::TypeArray => {
                let (of, count) = (inst.word(0)?, length(self, inst.word(1)?)?);
                let stride = self.stride(inst.id, of, decorations)?;
                Kind::Array { of, count, stride }
            }
            Op::TypeRuntimeArray => {
                let of = inst.word(0)?;
                Kind::RuntimeArray { of, stride: self.stride(inst.id, of, decorations)? }
            }
            Op::TypeStruct => Kind::Struct { members: self.members(inst, decorations)? },
            Op::TypePointer => {
                let class = inst.enumerant(0, "storage class", StorageClass::from_u32)?;
                Kind::Pointer { class, to: inst.word(1)? }
            }
            Op::TypeFunction => {
                Kind::Function { result: inst.word(0)?, params: inst.rest(1).into() }
            }
            Op::TypeEvent => Kind::Event,
            op => Kind::Opaque { name: crate::reader::op_name(op) },
        })
    }

    /// The distance of an array's elements.
    fn stride(&self, array: Id, of: Id, decorations: &Decorations) -> Result<u64> {
        let element = self.get(of)?;
        let natural = element.size.next_multiple_of(element.align);
        Ok(decorations.number(array, Decoration::ArrayStride).map_or(natural, u64::from))
    }

    fn members(&self, inst: Instruction<'_>, decorations: &Decorations) -> Result<Box<[Member]>> {
        let packed = decorations.has(inst.id, Decoration::CPacked);
        let mut members = Vec::with_capacity(inst.operands.len());
        let (mut end, mut first_leaf) = (0_u64, 0_u64);
        for (&ty, number) in inst.operands.iter().zip(0..) {
            let found = self.get(ty)?;
            let align = if packed { 1 } else { found.align };
            let explicit = decorations.member_number(inst.id, number, Decoration::Offset);
            let offset = explicit.map_or(end.next_multiple_of(align), u64::from);
            let of = |decoration| decorations.member_number(inst.id, number, decoration);
            let by_rows = decorations.of_member(inst.id, number, Decoration::RowMajor).is_some();
            let matrix = of(Decoration::MatrixStride)
                .map(|stride| MatrixLayout { stride: stride.into(), by_rows });
            members.push(Member { ty, offset, matrix, first_leaf });
            end = offset.saturating_add(found.size);
            first_leaf = first_leaf.saturating_add(found.leaves);
        }
        Ok(members.into())
    }

    fn measured(&self, kind: Kind, id: Id, decorations: &Decorations) -> Result<Type> {
        let address = u64::from(self.address_bytes.unwrap_or(8));
        let (size, align, leaves, depth) = match &kind {
            Kind::Void | Kind::Function { .. } | Kind::Opaque { .. } => (0, 1, 0, 0),
            Kind::Bool => (1, 1, 1, 0),
            Kind::Event => (4, 4, 1, 0),
            Kind::Int { bits, .. } | Kind::Float { bits } => {
                let bytes = u64::from(bits / 8);
                (bytes, bytes, 1, 0)
            }
            Kind::Pointer { .. } => (address, address, 1, 0),
            Kind::Vector { of, count } => {
                let of = self.get(*of)?;
                let size = of.size * u64::from(count.next_power_of_two());
                (size, size, u64::from(*count), of.depth + 1)
            }
            Kind::Matrix { column, count } => {
                let (column, count) = (self.get(*column)?, u64::from(*count));
                (column.size * count, column.align, column.leaves * count, column.depth + 1)
            }
            Kind::Array { of, count, stride } => {
                let of = self.get(*of)?;
                let size = stride.saturating_mul(*count);
                (size, of.align, of.leaves.saturating_mul(*count), of.depth + 1)
            }
            Kind::RuntimeArray { of, .. } => {
                let of = self.get(*of)?;
                (0, of.align, u64::MAX, of.depth + 1)
            }
            Kind::Struct { members } => {
                let packed = decorations.has(id, Decoration::CPacked);
                let (mut end, mut align, mut leaves, mut depth) = (0_u64, 1, 0_u64, 0);
                for member in members {
                    let ty = self.get(member.ty)?;
                    end = end.max(member.offset.saturating_add(ty.size));
                    leaves = leaves.saturating_add(ty.leaves);
                    depth = depth.max(ty.depth + 1);
                    align = align.max(if packed { 1 } else { ty.align });
                }
                (end.checked_next_multiple_of(align).unwrap_or(u64::MAX), align, leaves, depth)
            }
        };
        Ok(Type { kind, size, align, leaves, depth })
    }

    /// The scalar that a value of this type is; none for other types. Halves are kept as their bits, and so are truth
    /// values, 0 or 1.
    pub(crate) fn scalar(&self, id: Id, word: ir::Type) -> Result<Option<ir::Type>> {
        Ok(match self.kind(id)? {
            Kind::Bool => Some(types::I8),
            Kind::Int { bits, .. } => ir::Type::int_with_byte_size((bits / 8) as u16),
            Kind::Float { bits: 16 } => Some(types::I16),
            Kind::Float { bits: 32 } => Some(types::F32),
            Kind::Float { .. } => Some(types::F64),
            Kind::Pointer { .. } => Some(word),
            Kind::Event => Some(types::I32),
            _ => None,
        })
    }

    /// Whether two types are the same, or integers of the same size, or pointers to the same class of memory.
    pub(crate) fn are_alike(&self, x: Id, y: Id) -> bool {
        match (self.kind(x), self.kind(y)) {
            _ if x == y => true,
            (Ok(Kind::Int { bits, .. }), Ok(Kind::Int { bits: other, .. })) => bits == other,
            (Ok(Kind::Pointer { .. }), Ok(Kind::Pointer { .. })) => {
                self.pointer(x).ok().map(|found| found.0)
                    == self.pointer(y).ok().map(|found| found.0)
            }
            _ => false,
        }
    }

    /// The scalars that a value of this type consists of, with their offsets in memory.
    ///
    /// # Errors
    ///
    /// If there are too many, or the type has no values.
    pub(crate) fn leaves(
        &self,
        id: Id,
        matrix: Option<MatrixLayout>,
        word: ir::Type,
    ) -> Result<Leaves> {
        self.check_leaves(id)?;
        let mut leaves = Leaves::new();
        self.append_leaves(id, matrix, word, 0, &mut leaves)?;
        Ok(leaves)
    }

    /// The scalars of a type that is memory only, however many there are.
    pub(crate) fn all_leaves(&self, id: Id, word: ir::Type) -> Result<Leaves> {
        let mut leaves = Leaves::new();
        self.append_leaves(id, None, word, 0, &mut leaves)?;
        Ok(leaves)
    }

    /// Checks that values of a type can be something else than memory.
    pub(crate) fn check_leaves(&self, id: Id) -> Result<()> {
        let (given, limit) = (self.get(id)?.leaves, MAX_LEAVES);
        if given > limit {
            let what = "scalars of a value";
            return Err(SpirvErrorKind::TooMany { what, given, limit });
        }
        Ok(())
    }

    fn append_leaves(
        &self,
        id: Id,
        matrix: Option<MatrixLayout>,
        word: ir::Type,
        offset: u64,
        leaves: &mut Leaves,
    ) -> Result<()> {
        if let Some(scalar) = self.scalar(id, word)? {
            leaves.push((offset, scalar));
            return Ok(());
        }
        if self.get(id)?.leaves == 0 && !matches!(self.kind(id)?, Kind::Opaque { .. }) {
            return Ok(());
        }
        match self.kind(id)? {
            Kind::Vector { of, count } => {
                let stride = self.component_stride(*of, matrix)?;
                for index in 0..u64::from(*count) {
                    self.append_leaves(*of, None, word, offset + index * stride, leaves)?;
                }
            }
            &Kind::Matrix { column, count } => {
                let natural = self.get(column)?.size;
                let Kind::Vector { of, count: rows } = *self.kind(column)? else {
                    return Err(SpirvErrorKind::malformed("a matrix has vectors"));
                };
                let size = self.get(of)?.size;
                let layout = matrix.unwrap_or(MatrixLayout { stride: natural, by_rows: false });
                let (across, down) = match layout.by_rows {
                    true => (size, layout.stride),
                    false => (layout.stride, size),
                };
                for column in 0..u64::from(count) {
                    for row in 0..u64::from(rows) {
                        let at = offset + column * across + row * down;
                        self.append_leaves(of, None, word, at, leaves)?;
                    }
                }
            }
            Kind::Array { of, count, stride } => {
                for index in 0..*count {
                    self.append_leaves(*of, matrix, word, offset + index * stride, leaves)?;
                }
            }
            Kind::Struct { members } => {
                for member in members {
                    let at = offset + member.offset;
                    self.append_leaves(member.ty, member.matrix, word, at, leaves)?;
                }
            }
            _ => return Err(self.has_no_values(id)),
        }
        Ok(())
    }

    /// The distance of a vector's components of this type: one that is a column of a matrix stored by rows has one in each.
    pub(crate) fn component_stride(&self, of: Id, matrix: Option<MatrixLayout>) -> Result<u64> {
        match matrix {
            Some(layout) if layout.by_rows => Ok(layout.stride),
            _ => Ok(self.get(of)?.size),
        }
    }

    fn has_no_values(&self, id: Id) -> SpirvErrorKind {
        SpirvErrorKind::unsupported(format!("a value of {}", self.describe(id)))
    }

    /// A part of a composite: its type, and the number of scalars before it.
    pub(crate) fn part(&self, id: Id, index: u64) -> Result<(Id, u64)> {
        let outside = |count: u64| {
            SpirvErrorKind::malformed(format!("index {index} of something with {count} parts"))
        };
        let (of, count) = match self.kind(id)? {
            Kind::Vector { of, count } => (*of, u64::from(*count)),
            Kind::Matrix { column, count } => (*column, u64::from(*count)),
            Kind::Array { of, count, .. } => (*of, *count),
            Kind::Struct { members } => {
                let member = usize::try_from(index).ok().and_then(|index| members.get(index));
                let member = member.ok_or_else(|| outside(members.len() as u64))?;
                return Ok((member.ty, member.first_leaf));
            }
            _ => {
                let (given, expected) = (self.describe(id), "a composite".to_owned());
                return Err(SpirvErrorKind::Mismatch { id, given, expected });
            }
        };
        if index >= count {
            return Err(outside(count));
        }
        Ok((of, index * self.get(of)?.leaves))
    }

    /// How many parts a composite has.
    pub(crate) fn parts(&self, id: Id) -> Result<u64> {
        Ok(match self.kind(id)? {
            Kind::Vector { count, .. } | Kind::Matrix { count, .. } => (*count).into(),
            Kind::Array { count, .. } => *count,
            Kind::Struct { members } => members.len() as u64,
            Kind::Opaque { name } => return Err(SpirvErrorKind::unsupported(name)),
            _ => 0,
        })
    }

    /// The class and target of a pointer.
    pub(crate) fn pointer(&self, id: Id) -> Result<(StorageClass, Id)> {
        match self.kind(id)? {
            Kind::Pointer { class, to } => Ok((*class, *to)),
            _ => {
                let (given, expected) = (self.describe(id), "a pointer".to_owned());
                Err(SpirvErrorKind::Mismatch { id, given, expected })
            }
        }
    }

    /// The type of the components of a vector, and how many it has; of another type, itself and 1.
    pub(crate) fn components(&self, id: Id) -> Result<(Id, u32)> {
        Ok(match self.kind(id)? {
            Kind::Vector { of, count } => (*of, *count),
            _ => (id, 1),
        })
    }

    /// A type for a message.
    pub(crate) fn describe(&self, id: Id) -> String {
        let Ok(kind) = self.kind(id) else { return format!("%{id}, which is no type") };
        match kind {
            Kind::Void => "void".to_owned(),
            Kind::Bool => "bool".to_owned(),
            Kind::Int { bits, .. } => format!("an integer of {bits} bits"),
            Kind::Float { bits } => format!("a float of {bits} bits"),
            Kind::Vector { of, count } => {
                format!("a vector of {count} times {}", self.describe(*of))
            }
            Kind::Matrix { count, .. } => format!("a matrix of {count} columns"),
            Kind::Array { count, .. } => format!("an array of {count} elements"),
            Kind::RuntimeArray { .. } => "an array without a length".to_owned(),
            Kind::Struct { members } => format!("a structure of {} members", members.len()),
            Kind::Pointer { class, .. } => format!("a pointer to {class:?}"),
            Kind::Function { .. } => "a function".to_owned(),
            Kind::Event => "an event".to_owned(),
            Kind::Opaque { name } => name.clone(),
        }
    }
}
