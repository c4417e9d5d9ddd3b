//! The HARP instruction set: architecture ids, the instruction table, and everything that is derived
//! from the table (the instruction type, both binary encodings, the printer, the visitor).
//!
//! HARP is a family of SIMT machines. An [`ArchId`] names one member: word size, encoding, register
//! counts, lanes and warps. Apart from the optional extension, all members have the same instructions;
//! only field widths differ.
//!
//! # One table
//!
//! The [`table`] holds one row per instruction, in files by family. A row states the opcode, the
//! mnemonic, the operands with their roles and the properties. The rest is derived from it:
//!
//! * [`Op`], with a variant with named operands for each instruction, and [`Opcode`], the same without operands;
//! * [`Visitor`], with a method for each instruction and no default bodies, which an emulator implements;
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
//! # What is here
//!
//! | to | types and functions |
//! |---|---|
//! | name a machine | [`ArchId`], [`WordSize`], [`Encoding`]; [`ArchIdError`] with the [`ArchIdField`] that is wrong; [`TripleError`] of target triples |
//! | write an instruction | [`Instruction`], [`Op`], [`Operand`], [`Gpr`], [`Pred`], [`Imm`], [`Rel`]; [`OperandError`] |
//! | give instructions a meaning | [`Visitor`]; [`for_each_instruction`] gives the table's rows to a macro |
//! | query the table | [`Opcode`], [`OpcodeFlags`], [`OperandDesc`], [`OperandKind`], [`Role`], [`RegClass`], [`Space`] |
//! | know what lanes share | [`Sharing`], [`Op::sharing`], [`ArchId::with_shared`] |
//! | encode and decode | [`encode`], [`decode`], [`EncodeError`], [`DecodeError`], [`MAX_ENCODED_BYTES`]; [`Layout`], which immediates fit where |
//! | assemble | [`assemble`], [`AsmError`], [`AsmErrors`]; [`asm`] has the language |
//! | make objects and files of them | [`Object`], [`Chunk`], [`Permissions`], [`Reference`]; [`object::hof`] is the file format |
//! | link | [`link()`](link()), [`link_named`], [`Image`], [`LinkError`], [`LinkErrors`] |
//! | disassemble | [`disassemble`](fn@disassemble), [`Disassembly`], [`listing`] |
//! | call and be called | [`abi`]: registers' roles, what a launch passes, lane control blocks |
//!
//! [`ErrorList`] holds the errors of one input, in order. Feature `render`, off by default, shows the assembler's
//! errors with the line and a caret, for terminals; feature `serde` saves and loads architecture ids and chunks.
//!
//! Enums that may grow are `#[non_exhaustive]`. The others are exhaustive: because architecture ids or rows of the
//! table can have no other values, or, like [`Op`] and [`Opcode`], so that code that handles every instruction does
//! not compile until it handles a new one.
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
mod operand;
mod reg;
mod sharing;
mod symbol;
pub mod table;

// Machines.
pub use arch::{ArchId, ArchIdError, Encoding, Field as ArchIdField, TripleError, WordSize};
// Instructions, and the table behind them.
pub use instruction::Instruction;
pub use opcode::{OpcodeFlags, OperandDesc, OperandKind, Role, Space};
pub use operand::Operand;
pub use reg::{Gpr, Pred, RegClass};
pub use sharing::Sharing;
pub use table::{Imm, Op, Opcode, OperandError, Rel, Visitor};
// To code and back.
pub use disassemble::{Disassembly, disassemble, listing};
pub use encoding::{DecodeError, EncodeError, Layout, MAX_ENCODED_BYTES, decode, encode};
// From text to an image.
pub use asm::{AsmError, AsmErrors, assemble};
pub use error_list::ErrorList;
pub use link::{Image, LinkError, LinkErrors, link, link_named};
pub use object::{Chunk, Object, Permissions, Reference};
