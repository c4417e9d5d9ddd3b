//! What is known of a register's lanes: a lattice.

/// What is known of a general register's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// All lanes have this value.
    Const(u64),
    /// All lanes have the same value.
    Uniform,
    /// Each lane's value is that of the lane before plus this stride, which is not 0.
    Affine(u64),
    Vector,
}

impl Class {
    pub(crate) fn is_uniform(self) -> bool {
        matches!(self, Class::Const(_) | Class::Uniform)
    }

    /// The difference between lanes, if it is known.
    pub(crate) fn stride(self) -> Option<u64> {
        match self {
            Class::Const(_) | Class::Uniform => Some(0),
            Class::Affine(stride) => Some(stride),
            Class::Vector => None,
        }
    }

    pub(crate) fn of_stride(stride: Option<u64>) -> Class {
        match stride {
            Some(0) => Class::Uniform,
            Some(stride) => Class::Affine(stride),
            None => Class::Vector,
        }
    }

    /// What is known of one lane's value.
    pub(crate) fn in_one_lane(self) -> Class {
        match self {
            Class::Const(_) => self,
            _ => Class::Uniform,
        }
    }

    /// What holds if either holds.
    pub(crate) fn join(self, other: Class) -> Class {
        match (self, other) {
            _ if self == other => self,
            _ if self.stride() == other.stride() => Class::of_stride(self.stride()),
            _ => Class::Vector,
        }
    }
}
