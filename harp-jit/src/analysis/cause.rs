//! Why a value or a branch is divergent.

use std::fmt;

use cranelift_codegen::ir::{Inst, Value};

use crate::intrinsic::Intrinsic;

/// Why a value differs, or may differ, between lanes that execute its definition together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is the result of an intrinsic such as the lane's number.
    Intrinsic(Intrinsic),
    /// It is an argument of a function, and nothing is known about the callers'.
    Argument,
    /// It was loaded from memory that is private to lanes or may be written during the launch.
    Memory,
    /// It comes from an operation about which nothing is known, such as a call.
    Operation,
    /// It is computed from, or chosen among, several values, of which this one is divergent.
    Operand(Value),
    /// It is chosen by the path that lanes took from this divergent branch.
    Merge(Inst),
    /// It is computed from `value`, which each lane has from the iteration in which it left the loop around
    /// `value`; because of `branch`, lanes leave the loop in different iterations.
    Iteration { value: Value, branch: Inst },
    /// The function has a cycle with several entries, which the analysis does not support.
    Irreducible,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Intrinsic(intrinsic) => write!(f, "{intrinsic}"),
            Cause::Argument => f.write_str("argument"),
            Cause::Memory => f.write_str("memory"),
            Cause::Operation => f.write_str("unknown operation"),
            Cause::Operand(value) => write!(f, "{value}"),
            Cause::Merge(branch) => write!(f, "merge after {branch}"),
            Cause::Iteration { value, branch } => {
                write!(f, "{value} of the iteration left by {branch}")
            }
            Cause::Irreducible => f.write_str("irreducible control flow"),
        }
    }
}
