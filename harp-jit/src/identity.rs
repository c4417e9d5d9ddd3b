//! What the result of a compilation depends on, for the keys of caches.

use std::any::TypeId;
use std::hash::{Hash, Hasher};

use crate::builder::KernelSource;
use crate::kernel::Kernel;
use crate::options::CompileOptions;

/// A hash of the sources of the code generator and of the instruction set, computed by the build script: what versions
/// of this crate differ in. Kernels that another version has [saved](Kernel#saving-and-loading) may not be readable.
pub const SOURCES_HASH: &str = env!("HARP_JIT_SOURCES");

impl KernelSource {
    /// Feeds a hasher with everything that the result of [`compile`](Self::compile) depends on: the CLIF with its
    /// source places and messages, what a launch knows of the kernel, the machine, the options, and this very build
    /// of the code generator. So kernels with the same hash compile to the same code, if the hasher is one that has
    /// no collisions, such as SHA-256. What is hashed is the same in all runs of one build, but not on other hosts.
    ///
    /// ```
    /// use std::hash::{DefaultHasher, Hasher};
    /// # use harp_jit::prelude::*;
    ///
    /// let hash = |number: i64, options: &CompileOptions| {
    ///     let mut source = KernelSource::new("store", "harp32".parse().unwrap());
    ///     let mut b = KernelBuilder::new(&mut source);
    ///     let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    ///     let value = b.ins().iconst(types::I32, number);
    ///     b.store(data, i, value);
    ///     b.return_();
    ///     b.finalize().unwrap();
    ///     let mut hasher = DefaultHasher::new();
    ///     source.hash_compilation(options, &mut hasher);
    ///     hasher.finish()
    /// };
    /// let options = CompileOptions::default();
    /// assert_eq!(hash(1, &options), hash(1, &options));
    /// assert_ne!(hash(1, &options), hash(2, &options));
    /// assert_ne!(hash(1, &options), hash(1, &CompileOptions { convergence: true, ..options.clone() }));
    /// ```
    pub fn hash_compilation(&self, options: &CompileOptions, state: &mut impl Hasher) {
        (SOURCES_HASH, cranelift_codegen::VERSION).hash(state);
        // Cargo makes ids of types from the versions and features of a crate and of all that it depends on.
        TypeId::of::<Kernel>().hash(state);
        options.hash(state);
        self.hash_contents(state);
    }
}
