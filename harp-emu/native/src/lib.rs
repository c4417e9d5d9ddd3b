//! Host code for HARP programs: a tier of [`harp_emu`] that translates hot regions of a program to the host's
//! instructions, by Cranelift, and is exact. Registers, predicates, memory, divergence stack, pc, counts and traps are
//! those of the interpreter after every instruction, whatever the machine.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harp_emu::{HostTier, Machine, MachineConfig, Memory};
//! use harp_isa::{ArchId, Gpr, Op, Pred};
//! use harp_native::{Native, When};
//!
//! // Counts to a million.
//! let arch: ArchId = "4w8/8/16/16".parse()?;
//! let (count, left, goes_on) = (Gpr::new(1), Gpr::new(2), Pred::new(0));
//! let program = [
//!     Op::Ldi { dst: left, imm: 1000 }.into(),
//!     Op::Muli { dst: left, src: left, imm: 1000 }.into(),
//!     Op::Addi { dst: count, src: count, imm: 1 }.into(),
//!     Op::Subi { dst: left, src: left, imm: 1 }.into(),
//!     Op::Rtop { dst: goes_on, src: left }.into(),
//!     harp_isa::Instruction::from(Op::Jmpi { rel: -16 }).guarded_by(goes_on),
//!     Op::Halt {}.into(),
//! ];
//! let mut code = Vec::new();
//! for instruction in program {
//!     harp_isa::encode(&instruction, arch, &mut code)?;
//! }
//! let memory = Memory::new(arch.word(), 1 << 16)?;
//! memory.write(0, &code)?;
//!
//! let mut machine = Machine::new(MachineConfig::new(arch), &memory)?;
//! if let Some(native) = Native::new(When::AtOnce) {
//!     let tier: Arc<dyn HostTier> = Arc::new(native);
//!     machine.set_host_tier(&tier);
//! }
//! let stats = machine.run()?;
//! assert_eq!(stats.issued(), 2 + 4 * 1_000_000 + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! A *region* is what is reachable from a hot address: blocks of instructions, calls included as long as the
//! link register's value is known. Before each block a data flow analysis says which registers have
//! the same value in all lanes or a constant difference between lanes: such a register is one word in host code, others
//! are vectors of 16 bytes. Those that lanes share are always one word, and what is done once for all lanes is done once
//! here, too. What is seen in the registers when a region is translated is assumed to hold when control comes back to
//! its head from outside of the loop there; this is checked, and so is what an entry expects.
//!
//! Blocks are transactions. What might stop in the middle leaves to the interpreter before it has an effect: instructions that
//! trap, accesses outside of plain memory, assumptions that do not hold, a budget that does not suffice. The interpreter
//! then does the same instructions, and makes the trap. So there is one definition of each trap. What an operation
//! means in a lane is defined once, too, where the host has no instruction for it: host code calls
//! [`harp_emu::compute`].
//!
//! Which NaN a float operation yields is unspecified, as in the interpreter. A program may promise that one of its
//! functions keeps the calling convention ([`Native::for_calls`]). Then registers that are dead are unspecified, too, and code
//! is up to several times faster; memory, counts, traps and what is live stay exact, unless the function reads registers
//! that nobody has written. Dead is also what only lanes that wait on the divergence stack hold, if they do not read it
//! afterwards.
//!
//! # How it is built
//!
//! | module | contents |
//! |---|---|
//! | `shape`, `body` | a machine's registers in host vectors; instructions by family |
//! | `calls` | what programs promise about a function |
//! | `class`, `state`, `rules` | what is known of registers, predicates and the divergence stack, and how instructions change it |
//! | `region`, `live`, `faint`, `needs` | blocks and edges; what is live; what nobody reads elsewhere; how much of the divergence stack matters |
//! | `waiting` | what lanes that wait on the divergence stack may still read |
//! | `homes` | which vectors are in the machine's registers between blocks |
//! | `rows`, `lent` | registers of which host code keeps lane 0 only; what it keeps of a warp from visit to visit |
//! | `frame`, `code` | the state that host code shares with Rust; the only `unsafe` code, with its argument |
//! | `emit` | regions to Cranelift's functions |
//! | `observe`, `record`, `begin` | what is seen of a machine; where warps are for long, and where they begin |
//! | `stats`, `translated`, `known`, `shared` | what is counted; regions with host code; what a tier knows of programs; the thread that translates |
//! | `adopted` | what a core sees of regions, and whether they are worth it |
//! | `tier` | how warps come to regions, enter them, leave them; when these are made and given up |
//! | `native` | the tier as machines and devices see it |
#![deny(unsafe_code)]

mod adopted;
mod begin;
mod body;
mod calls;
mod class;
mod code;
mod emit;
mod faint;
mod frame;
mod homes;
mod known;
mod lent;
mod live;
mod native;
mod needs;
mod observe;
mod record;
mod region;
mod rows;
mod rules;
mod shape;
mod shared;
mod state;
mod stats;
mod tier;
mod translated;
mod waiting;

#[cfg(test)]
mod tests;

pub use native::{Calls, HeldBack, Native};
pub use shared::{USUAL, When};
pub use stats::{LeaveCounts, TierStats};
