//! The HARP instruction set: architecture ids, the instruction table, and everything that is derived
//! from the table (the instruction type, both binary encodings, the printer, the visitor).
//!
//! HARP is a family of SIMT machines. An [`ArchId`] names one member: word size, encoding, register
//! counts, lanes and warps. The set of instructions is the same for all of them, the optional
//! extension aside; only field widths differ.
//!
//! # One table
//!
//! The [`table`] holds one row an instruction, in files by family. A row states the opcode, the
//! mnemonic, the operands with their roles and the properties. From it come
//!
//! * [`Op`], one variant with named operands an instruction, and [`Opcode`], the same without operands;
//! * [`Visitor`], one method an instruction and no default bodies, which an emulator implements;
//! * [`encode`] and [`decode`], for the fixed-width word and the byte-stream encoding;
//! * the disassembler's printer ([`Instruction::display`]) and the assembler's operand lists.
//!
//! # From text or code to an image
//!
//! ```text
//! text -> asm::assemble -> Object -> link::link -> Image -> disassemble, listing
//!         (or a code generator)  \-> object::hof, Object::display, Object::display_exact
//! ```
//!
//! Bit positions exist in this crate only.
//!
//! # Example
//!
//! ```
//! use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};
//!
//! let arch: ArchId = "4w8/8/16/16".parse()?;
//! let add = Instruction::new(Op::Add { dst: Gpr::new(1), a: Gpr::new(2), b: Gpr::new(3) })
//!     .guarded_by(Pred::new(0));
//!
//! let mut code = Vec::new();
//! harp_isa::encode(&add, arch, &mut code)?;
//! let (back, size) = harp_isa::decode(&code, arch)?;
//!
//! assert_eq!((back, size), (add, 4));
//! assert_eq!(back.display(arch).to_string(), "@p0 ? add %r1 %r2 %r3 ;");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod abi;
mod arch;
pub mod asm;
mod disassemble;
mod encoding;
mod error_list;
mod instruction;
pub mod link;
pub mod object;
mod opcode;
mod reg;
pub mod table;

pub use arch::{ArchId, ArchIdError, Encoding, Field as ArchIdField, TripleError, WordSize};
pub use asm::{AsmError, AsmErrors, assemble};
pub use disassemble::{Disassembly, disassemble, listing};
pub use encoding::{DecodeError, EncodeError, Layout, MAX_ENCODED_BYTES, decode, encode};
pub use error_list::ErrorList;
pub use instruction::{Instruction, Operand, OperandError};
pub use link::{Image, LinkError, LinkErrors, link, link_named};
pub use object::{Chunk, Object, Permissions, Reference};
pub use opcode::{Class, OpcodeFlags, OperandDesc, OperandKind, Role, Space};
pub use reg::{Gpr, Pred, RegClass};
pub use table::{Imm, Op, Opcode, Rel, Visitor};
