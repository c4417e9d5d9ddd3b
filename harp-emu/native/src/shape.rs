//! The shape of a machine's registers in host code.

use std::ops::Range;

use cranelift_codegen::ir::{Type, types};
use harp_isa::abi::RegisterRoles;
use harp_isa::{ArchId, WordSize};

/// Bytes of the host's vectors.
pub(crate) const VECTOR_BYTES: usize = 16;

/// Words, lanes, and the vectors that hold a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) arch: ArchId,
    pub(crate) word: WordSize,
    /// Lanes of the machine.
    pub(crate) lanes: usize,
    /// Words from a register to the next.
    pub(crate) lane_words: usize,
}

impl Shape {
    pub(crate) fn new(arch: ArchId, lane_words: usize) -> Shape {
        Shape { arch, word: arch.word(), lanes: arch.lanes().into(), lane_words }
    }

    /// Bytes of a word.
    pub(crate) fn bytes(self) -> usize {
        self.word.bytes().into()
    }

    /// Lanes in a vector.
    pub(crate) fn per_vector(self) -> usize {
        VECTOR_BYTES / self.bytes()
    }

    /// Vectors of a register.
    pub(crate) fn vectors(self) -> usize {
        self.lanes.div_ceil(self.per_vector())
    }

    /// The lanes in vector `k` of a register.
    pub(crate) fn lanes_of(self, k: usize) -> Range<usize> {
        let first = k * self.per_vector();
        first..self.lanes.min(first + self.per_vector())
    }

    /// Whether vectors have no more lanes than the machine.
    pub(crate) fn is_whole(self) -> bool {
        self.lanes.is_multiple_of(self.per_vector())
    }

    /// The register in which functions find where they return to.
    pub(crate) fn link(self) -> usize {
        RegisterRoles::new(self.arch).return_address().index().into()
    }

    /// All lanes of the machine.
    pub(crate) fn full(self) -> u64 {
        u64::MAX >> (64 - self.lanes)
    }

    /// The low bits that a word has.
    pub(crate) fn cut(self, value: u64) -> u64 {
        value & self.word.mask()
    }

    pub(crate) fn int(self) -> Type {
        match self.word {
            WordSize::Four => types::I32,
            WordSize::Eight => types::I64,
        }
    }

    pub(crate) fn float(self) -> Type {
        match self.word {
            WordSize::Four => types::F32,
            WordSize::Eight => types::F64,
        }
    }

    pub(crate) fn int_vector(self) -> Type {
        match self.word {
            WordSize::Four => types::I32X4,
            WordSize::Eight => types::I64X2,
        }
    }

    /// Where lane `lane` is, from the lowest address of a row.
    pub(crate) fn distance(self, stride: u64, lane: usize) -> i32 {
        let signed = self.word.sign_extend(stride);
        let steps = if signed >= 0 { lane } else { self.lanes - 1 - lane };
        i32::try_from(signed.unsigned_abs() * steps as u64).unwrap_or(i32::MAX)
    }
}
