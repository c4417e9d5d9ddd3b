//! Values of a function while it is translated.
//!
//! A value is a list of scalars, the leaves of its type in order: a vector's components, then those of a structure's
//! next member, and so on. Taking a composite apart and putting one together so costs nothing. Truth values are `i8`, 0 or
//! 1; halves are their bits, an `i16`; addresses are words.

use cranelift_codegen::ir;
use cranelift_frontend::Variable;
use smallvec::SmallVec;

use crate::reader::Id;
use crate::types::MatrixLayout;

/// The scalars of a value.
pub(crate) type Parts = SmallVec<[ir::Value; 4]>;

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Val {
    /// Its SPIR-V type.
    pub(crate) ty: Id,
    pub(crate) parts: Parts,
    /// How the matrix that it points to is stored, or the matrix of which it points to a column.
    pub(crate) matrix: Option<MatrixLayout>,
    /// Whether what it points to stays as it is while the kernel runs.
    pub(crate) constant: bool,
}

impl Val {
    pub(crate) fn new(ty: Id, parts: Parts) -> Val {
        Val { ty, parts, matrix: None, constant: false }
    }

    pub(crate) fn scalar(ty: Id, value: ir::Value) -> Val {
        Val::new(ty, Parts::from_slice(&[value]))
    }
}

/// A variable, or a part of one, that is no memory: each of its scalars is a variable of cranelift-frontend's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The type of its contents.
    pub(crate) ty: Id,
    first: u32,
}

impl Place {
    pub(crate) fn new(ty: Id, first: Variable) -> Place {
        Place { ty, first: first.as_u32() }
    }

    /// The part of type `ty` behind so many scalars.
    pub(crate) fn part(self, ty: Id, before: u64) -> Place {
        Place { ty, first: self.first + before as u32 }
    }

    /// The variables of so many scalars.
    pub(crate) fn variables(self, count: usize) -> impl Iterator<Item = Variable> + use<> {
        (self.first..).take(count).map(Variable::from_u32)
    }
}

/// A variable that stands for a value that the machine provides, or its component. Loads compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuiltinPlace {
    /// The type of its contents.
    pub(crate) ty: Id,
    /// The number of the built-in value.
    pub(crate) builtin: u32,
    pub(crate) component: Option<u32>,
}

/// An array of buffers, each with an address of its own.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    /// The type of a buffer's contents.
    pub(crate) ty: Id,
    pub(crate) addresses: Parts,
    /// Whether the contents stay as they are while the kernel runs.
    pub(crate) constant: bool,
}

/// What an id stands for in a function.
#[derive(Clone, Debug)]
pub(crate) enum Def {
    Value(Val),
    /// A pointer to a variable that is no memory.
    Place(Place),
    /// A pointer to a built-in value.
    Builtin(BuiltinPlace),
    /// A built-in vector that was loaded; its components are computed when they are used.
    LoadedBuiltin(BuiltinPlace),
    /// A pointer to an array of buffers.
    Buffers(Buffers),
    /// A pointer that only marks where a variable's life begins and ends.
    Marker,
}
