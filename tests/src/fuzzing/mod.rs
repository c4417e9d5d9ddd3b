//! Generators and oracles of machine code, assembly text, object files and builder calls, which the fuzz targets call.
//! Those of CLIF are in [`random`](crate::random).

use std::ops::{AddAssign, Index};

use crate::random::{Counts, merge};

pub mod asm;
pub mod builder;
pub mod hof;
pub mod isa;
pub mod machine;

/// How often cases came to something, by name: how much of them was more than noise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached(Counts);

impl Reached {
    /// These counts.
    pub fn of<const N: usize>(counts: [(&str, usize); N]) -> Reached {
        Reached(counts.map(|(what, count)| (what.to_owned(), count as u64)).into())
    }

    /// All that there are counts of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn add(&mut self, what: impl Into<String>, count: u64) {
        *self.0.entry(what.into()).or_default() += count;
    }
}

impl Index<&str> for Reached {
    type Output = u64;

    fn index(&self, what: &str) -> &u64 {
        self.0.get(what).unwrap_or(&0)
    }
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        merge(&mut self.0, other.0);
    }
}
