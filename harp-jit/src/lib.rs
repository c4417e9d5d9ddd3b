//! A JIT code generator for HARP in the manner of Cranelift.
//!
//! A [`KernelBuilder`] makes a kernel in Cranelift's intermediate representation;
//! [`KernelSource::compile`] turns it into machine code for one member of the HARP family:
//!
//! ```text
//! KernelBuilder -> CLIF                      builder    source places on every instruction
//!   -> CLIF, verified and optimized          compile    Cranelift's verifier and mid-end
//!   -> legal CLIF                            legalize   all control flow explicit
//!   -> facts: what is uniform in a warp      analysis
//!   -> plan: which branches split, joins     divergence unique join blocks
//!   -> VCode, virtual registers              isel       ISLE rules
//!   -> VCode, physical registers             regalloc   regalloc2, two register classes
//!   -> machine code                          emit       harp-isa encodes
//!   -> the same, proved                      checker    splits, joins, guards, what is uniform
//! ```
//!
//! Each stage states in its module what it assumes and what it guarantees; in debug builds, or with
//! [`CompileOptions::verify`], each result is checked. What is not covered is an error that names
//! the instruction, never a wrong program.
//!
//! # Values in registers
//!
//! What all stages after legalization rely on:
//!
//! * An integer narrower than the word has *unspecified upper bits* in its register, wherever it is: in
//!   code, as a block argument, in a call. What looks at them extends first; what does not, such as a sum,
//!   costs nothing extra.
//! * An integer of two words is *two values*, the low one first: as block arguments, parameters and
//!   results, and in memory. Legalization makes them, so that no later stage knows of it.
//! * A truth value, 0 or 1 in CLIF, may be in a predicate, in a general register, or in both.
//! * An instruction's only result is a word or less; sums with a carry are taken apart before.
//!
//! # Example
//!
//! ```
//! use harp_jit::prelude::*;
//!
//! let arch: ArchId = "harp32".parse()?;
//! let mut source = KernelSource::new("double", arch);
//! let mut b = KernelBuilder::new(&mut source);
//! let (data, n) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
//! let i = b.global_id(0);
//! let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
//! b.if_then(inside, |b| {
//!     let x = b.load_elem(b.word_int(), data, i);
//!     let x = b.ins().iadd(x, x);
//!     b.store_elem(x, data, i);
//! });
//! b.return_();
//! b.finalize()?;
//!
//! let kernel = source.compile(&CompileOptions::default())?;
//! assert_eq!(kernel.stats().divergent_branches, 1);
//! println!("{}", kernel.disassembly());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

// The generated rules name `alloc`.
extern crate alloc;

mod abi;
mod analysis;
mod branches;
mod builder;
mod checker;
mod compile;
mod compiler;
mod convergence;
mod divergence;
mod emit;
mod error;
mod forms;
mod function;
mod intrinsic;
mod isel;
mod kernel;
mod legalize;
mod library;
mod managed;
mod module;
mod options;
mod plan;
mod precheck;
mod profile;
mod record;
mod regalloc;
mod routine;
mod source;
mod stats;
mod stores;
mod strategy;
mod symbols;
#[cfg(feature = "text")]
pub mod text;
mod times;
mod unit;
mod vcode;

pub use abi::{CallLayout, WordPlace};
pub use builder::{KernelBuilder, KernelInstBuilder, KernelSource, ParamType, frontend_config};
pub use checker::{CodeError, CodeFault};
pub use compiler::{CompileStages, compile_function, compile_stages, explain_function};
pub use convergence::{BlockConvergence, ConvergenceProof};
pub use divergence::decide::{
    BlockReport, BranchReport, CostReport, DivergenceReport, OddsReport, RegionReport,
};
pub use error::{BuildError, BuildErrorKind, CompileError};
pub use function::{CompiledFunction, FunctionCode};
pub use harp_isa::ArchId;
pub use kernel::Kernel;
pub use module::{CompiledModule, DataAccess, Module, ModuleError};
pub use options::{CompileOptions, Execution, OptLevel};
pub use profile::{
    BranchCounters, BranchCounts, BranchId, BranchProfile, BranchSite, ProfileError, WarpCounts,
};
pub use source::{SourceMap, SourcePlace};
pub use stats::CompileStats;
pub use strategy::{Assignment, DivergenceStrategy, ProfileParams, Technique};
pub use times::{Stage, StageTimes};

/// What modules share with those of Cranelift.
pub use cranelift_module::{DataDescription, DataId, FuncId, Linkage, ModuleRelocTarget};

/// Calling conventions: `fast`, `tail`, and others, which are as `fast`.
pub use cranelift_codegen::isa::CallConv;

/// Cranelift's intermediate representation, of the version that this crate is built upon.
pub use cranelift_codegen::ir;

/// What building and compiling a kernel takes, in one import.
pub mod prelude {
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

    pub use crate::{
        ArchId, CompileError, CompileOptions, Kernel, KernelBuilder, KernelSource, OptLevel,
        ParamType,
    };
}
