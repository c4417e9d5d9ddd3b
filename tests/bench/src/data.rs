//! The generator of inputs.

use harp_isa::{ArchId, WordSize};
use harp_jit::ParamType;

/// The generator of all inputs: x' = x * 1664525 + 1013904223 modulo 2^32, of which the upper 24
/// bits are used (Knuth's constants as given in Numerical Recipes, 2nd edition, section 7.1).
#[derive(Clone, Debug)]
pub struct Generator(u32);

impl Generator {
    /// The seed that every workload starts from.
    pub const SEED: u32 = 12345;

    /// A generator at its start.
    pub fn new() -> Generator {
        Generator(Self::SEED)
    }
}

impl Default for Generator {
    fn default() -> Self {
        Generator::new()
    }
}

impl Iterator for Generator {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(self.0 >> 8)
    }
}

/// The numbers of a new [`Generator`], one after the other.
pub(super) fn numbers() -> impl FnMut() -> usize {
    let mut numbers = Generator::new();
    move || numbers.next().expect("the generator never ends") as usize
}

/// The type of a parameter that is as wide as an index.
pub fn index_type(arch: ArchId) -> ParamType {
    match arch.word() {
        WordSize::Four => ParamType::I32,
        WordSize::Eight => ParamType::I64,
    }
}
