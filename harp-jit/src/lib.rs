//! A JIT code generator for HARP in the manner of Cranelift.
//!
//! A [`KernelBuilder`] makes a kernel in Cranelift's intermediate representation;
//! a [`Compiler`] turns it into machine code for one member of the HARP family:
//!
//! ```text
//! KernelBuilder -> CLIF                      builder    source places on every instruction
//!   -> CLIF, verified and optimized          mid_end    Cranelift's verifier and mid-end
//!   -> legal CLIF                            legalize   values of a word, all control flow explicit
//!   -> facts: what is uniform in a warp      analysis
//!   -> plan: which branches split, joins     divergence unique join blocks
//!   -> VCode, virtual registers              isel       ISLE rules
//!   -> VCode, some of it predicated          if_convert what the plan says
//!   -> VCode, physical registers             regalloc   regalloc2, two register classes
//!   -> machine code                          emit       harp-isa encodes
//!   -> the same, proved                      harp-check splits, joins, guards, what is uniform
//! ```
//!
//! Each stage states in its module what it assumes and what it guarantees. In debug builds, or with
//! [`CompileOptions::verify`], each stage's result is checked. What the compiler does not support is an error
//! that names the instruction, never a wrong program.
//!
//! # Values in registers
//!
//! All stages after legalization rely on this:
//!
//! * An integer narrower than the word has *unspecified upper bits* in its register everywhere: in code, as a
//!   block argument, in a call. Operations whose result depends on the upper bits extend first; others, such
//!   as a sum, cost nothing extra.
//! * An integer of two words is *two values*, the low word first: as block arguments, parameters and results,
//!   and in memory. Legalization splits it, so later stages never see it.
//! * A truth value, 0 or 1 in CLIF, may be in a predicate, in a general register, or in both.
//! * An instruction has at most one result, of at most a word; sums with a carry are expanded before.
//!
//! # Example
//!
//! ```
//! use harp_jit::prelude::*;
//!
//! let arch: ArchId = "harp32".parse()?;
//! let mut source = KernelSource::new("double", arch);
//! let mut b = KernelBuilder::new(&mut source);
//! let (data, n) = (b.buffer::<i32>("data"), b.scalar::<u32>("n"));
//! let i = b.global_id(0);
//! let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
//! b.if_then(inside, |b| {
//!     let x = b.load(data, i);
//!     let x = b.ins().iadd(x, x);
//!     b.store(data, i, x);
//! });
//! b.return_();
//! b.finalize()?;
//!
//! let kernel = source.compile(&CompileOptions::default())?;
//! assert_eq!(kernel.stats().divergent_branches, 1);
//! println!("{}", kernel.disassembly());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is here
//!
//! **To build kernels.** A [`KernelBuilder`] fills a [`KernelSource`] with [`Param`]s of [`ParamType`]s: those of
//! a [`ScalarType`], and [`BufferParam`]s, arrays of an [`ElementType`], which atomic operations need to be an
//! [`IntegerElement`]; its [`ins`](KernelBuilder::ins) returns a [`KernelInstBuilder`]. A [`Reduction`] combines
//! the values of several lanes; arrays that a work-group shares have at most [`MAX_GROUP_BYTES`]. What a kernel
//! prints, the launch reads by its [`PrintSites`], as [`PrintRecord`]s from a [`PrintArea`]. Front ends make a
//! [`KernelSource`] of a function and [`KernelParts`] with its [`GroupArray`]s, and print at a [`PrintSite`] with a
//! [`Printer`]. Misuse is a [`BuildError`] of a [`BuildErrorKind`], with the [`SourcePlace`] from the [`SourceMap`].
//!
//! [`ir`] re-exports Cranelift's intermediate representation in the version that this crate is built on;
//! [`Variable`]s and the [`FunctionBuilder`], with its [`FunctionBuilderContext`], are cranelift-frontend's. Functions built with that take
//! [`frontend_config`], the [`TargetFrontendConfig`] of a [`Triple`], or a [`TripleError`]. [`WordSize`] is that
//! of a machine.
//!
//! **To compile them.** A [`Compiler`] for an [`ArchId`] and [`CompileOptions`] ([`OptLevel`], [`Execution`])
//! makes a [`Kernel`] or a [`CompiledFunction`], with [`FunctionCode`], [`CompileStats`], and [`StageTimes`]
//! by [`Stage`]. [`CompileStages`] shows the intermediate forms as text. What cannot be compiled is a
//! [`CompileError`]. Kernels can be [saved and loaded](Kernel#saving-and-loading) by the version of this crate that has
//! the same [`SOURCES_HASH`]; what is saved beside them has types as [`Scalar`]s.
//!
//! **To put functions and data together.** A [`Module`] takes declarations and definitions and becomes a
//! [`CompiledModule`], or a [`ModuleError`]. Kernels refer to them by [`KernelBuilder::call`],
//! [`data`](KernelBuilder::data) and [`data_address`](KernelBuilder::data_address). [`DataAccess`] says whether code may write a datum,
//! [`CallLayout`] in which [`WordPlace`]s arguments are passed. [`FuncId`], [`DataId`], [`DataDescription`],
//! [`Linkage`] and [`ModuleRelocTarget`] are cranelift-module's. [`CallConv`] is Cranelift's: `fast`, `tail`,
//! and others, which are treated as `fast`.
//!
//! **To choose how divergence is managed.** A [`DivergenceStrategy`], with [`ProfileParams`] if it uses a
//! [`BranchProfile`], or an [`Assignment`] of [`Technique`]s to branches. A [`DivergenceReport`] says what
//! was chosen and why: [`BranchReport`], [`RegionReport`], [`BlockReport`], [`CostReport`], [`OddsReport`], [`ValueReport`]. A
//! profile counts how often lanes disagree: [`BranchCounts`] and [`WarpCounts`] of a [`BranchId`] at a
//! [`BranchSite`]. The emulator observes it, or the kernel counts it itself with [`BranchCounters`]. A
//! profile that does not fit the function is a [`ProfileError`].
//!
//! **To be sure of the code.** [`Kernel::check`] proves that lanes stay converged where they must, or says
//! with a [`CodeError`] what it cannot prove: a [`CodeFault`], about [`MachineRegister`]s, under [`OpenSplit`]s. A [`ConvergenceProof`]
//! says why all lanes of a warp reach a block ([`BlockConvergence`]) together. Code that reports its accesses to memory
//! has a table of them: a [`MemoryAccess`] has an [`AccessKind`] and the [`Root`]s of its address.
//! Front ends mark copies by [`COPIED`].
#![forbid(unsafe_code)]

// The generated rules name `alloc`.
extern crate alloc;

mod abi;
mod accesses;
mod aliases;
mod analysis;
mod builder;
mod compiler;
mod constant;
mod convergence;
mod divergence;
mod emit;
mod error;
mod forms;
mod function;
mod groups;
mod identity;
mod if_convert;
mod intrinsic;
mod isel;
mod kernel;
mod legalize;
mod library;
mod lock;
mod mid_end;
mod module;
mod options;
mod pipeline;
mod plan;
mod precheck;
mod print;
mod profile;
mod regalloc;
mod routine;
mod scalar;
mod sharing;
mod source;
mod stats;
mod strategy;
mod symbols;
#[cfg(feature = "text")]
pub mod text;
mod times;
mod unit;
mod validate;
mod vcode;
mod width;

// To build kernels.
pub use builder::{
    BufferParam, ElementType, IntegerElement, KernelBuilder, KernelInstBuilder, KernelParts,
    KernelSource, MAX_GROUP_BYTES, Param, ParamType, ScalarType, frontend_config,
};
pub use cranelift_codegen::ir;
pub use cranelift_codegen::isa::TargetFrontendConfig;
pub use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
pub use error::{BuildError, BuildErrorKind};
pub use harp_isa::{TripleError, WordSize};
pub use intrinsic::Reduction;
pub use print::{PrintArea, PrintRecord, PrintSite, PrintSites, Printer};
pub use source::{SourceMap, SourcePlace};
pub use target_lexicon::Triple;

// To compile them.
pub use compiler::{CompileStages, Compiler};
pub use error::CompileError;
pub use function::{CompiledFunction, FunctionCode};
pub use harp_isa::ArchId;
pub use identity::SOURCES_HASH;
pub use kernel::Kernel;
pub use options::{CompileOptions, Execution, OptLevel};
pub use scalar::Scalar;
pub use stats::CompileStats;
pub use times::{Stage, StageTimes};

// To put functions and data together.
pub use abi::{CallLayout, WordPlace};
pub use cranelift_codegen::isa::CallConv;
pub use cranelift_module::{DataDescription, DataId, FuncId, Linkage, ModuleRelocTarget};
pub use module::{CompiledModule, DataAccess, Module, ModuleError};

// To choose how divergence is managed, and to see what was chosen.
pub use divergence::decide::{
    BlockReport, BranchReport, CostReport, DivergenceReport, OddsReport, RegionReport,
};
pub use profile::{
    BranchCounters, BranchCounts, BranchId, BranchProfile, BranchSite, ProfileError, WarpCounts,
};
pub use sharing::ValueReport;
pub use strategy::{Assignment, DivergenceStrategy, ProfileParams, Technique};

// To be sure of the code, and of what it does.
pub use accesses::{AccessKind, COPIED, GroupArray, MemoryAccess, Root};
pub use convergence::{BlockConvergence, ConvergenceProof};
pub use harp_check::{CodeError, CodeFault, MachineRegister, OpenSplit};

/// What building and compiling a kernel takes, in one import.
pub mod prelude {
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::{
        AtomicRmwOp, Block, FuncRef, InstBuilder, MemFlagsData, TrapCode, Type, Value, types,
    };
    pub use cranelift_frontend::Variable;

    pub use crate::{
        ArchId, BufferParam, BuildError, BuildErrorKind, CompileError, CompileOptions, Kernel,
        KernelBuilder, KernelSource, OptLevel, ParamType, Reduction,
    };
}
