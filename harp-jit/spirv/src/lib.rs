//! SPIR-V modules as kernels of HARP's JIT.
//!
//! SPIR-V is what OpenCL C, WGSL, GLSL, HLSL and SYCL are compiled to. [`SpirvModule::parse`] reads a module, its
//! [`kernel`](SpirvModule::kernel) turns an entry point into a [`SpirvKernel`] for a machine, and that compiles to a
//! [`harp_jit::Kernel`], which launches as any other does.
//!
//! ```text
//! words -> instructions          reader       offsets, source lines
//!   -> declarations              module       decorations, types, constants, outlines of functions
//!   -> what a kernel takes       module       buffers, numbers, memory of work-groups
//!   -> functions of CLIF         function     blocks, phis, calls; instruction, extended: what is in blocks
//!   -> a kernel                  kernel       with the functions and data that it needs
//! ```
//!
//! Both flavours of modules are read: kernels, with addresses of 4 or 8 bytes and any control flow, and compute shaders,
//! with buffers by bindings. Divergence is managed for any graph; of merge instructions only those of a shader's loops matter,
//! which say what belongs to a round. Work-items of shaders come together as `VK_KHR_shader_maximal_reconvergence` wants it,
//! apart from ways out of loops with barriers. A warp is a subgroup: kernels that ask for subgroups of another size are refused.
//! Denormals are kept, also where a module asks for zeros instead. Images, samplers, pipes and queues are not supported.
//!
//! What a module promises not to change while a kernel runs, lanes load as one, so that branches on it do not diverge: memory in
//! `UniformConstant`, what a kernel's parameters point to that are `NoAlias` and `NoWrite`, blocks in `Uniform`, and buffers that are
//! `NonWritable`, unless they are `Aliased` or `Volatile`.
//!
//! A module that is not valid is an error or some kernel, but no panic. An [`SpirvError`] names the instruction by its
//! [`InstructionPlace`] and says what is wrong by its [`SpirvErrorKind`]. [`EntryPoint`]s have [`EntryParam`]s, of an
//! [`EntryParamKind`] each; [`SpecConstant`]s can be given values by [`SpirvModule::parse_specialized`].
#![forbid(unsafe_code)]

mod constants;
mod decorations;
mod error;
mod escape;
mod extended;
mod fold;
mod function;
mod half;
mod instruction;
mod kernel;
mod module;
mod prologue;
mod reader;
mod sets;
mod tails;
mod types;
mod unit;
mod values;

pub use error::{InstructionPlace, SpirvError, SpirvErrorKind};
pub use kernel::SpirvKernel;
pub use module::{EntryParam, EntryParamKind, EntryPoint, SpecConstant, SpirvModule};
