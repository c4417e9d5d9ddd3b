//! Host code: made executable, called, freed. The only module with `unsafe`.
//!
//! The argument. Host code comes from [`emit`](crate::emit) alone, through Cranelift, which checks that it is well
//! formed. It gets one pointer, to a [`RawFrame`], which it may read and write, and which holds the addresses and sizes
//! of three other pieces of memory: registers, predicates, guest memory. [`HostFunction::call`] takes these as
//! references, compares their sizes with those that the code was made for, and keeps them borrowed until the code returns. The code
//! addresses registers and predicates by constants below these sizes, the stack by an index that it compares with a
//! limit that the frame's array has room for, and guest memory only by what it has compared with its size.
//!
//! Guest memory is shared with other host threads, which access whole words with relaxed atomic operations. Host code
//! does the same with the host's plain instructions, of which those on aligned words, and each aligned word of those
//! on vectors, are not torn on x86-64, and atomic ones where the guest's are; the Rust compiler does not see them.
//!
//! Pages of code are writable while Cranelift fills them, and from then on executable and not writable. They are freed
//! when the last owner of the function is dropped; a call borrows the function.

#![expect(unsafe_code, reason = "calls code that was made at run time, as the module argues")]

use std::fmt;
use std::sync::{Mutex, PoisonError};

use cranelift_codegen::Context;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use harp_emu::{MemoryWords, RegisterWords};
use harp_isa::Opcode;

use crate::frame::RawFrame;
use crate::shape::Shape;

/// The addresses that are set aside for a function and those that it calls. Only what they need becomes memory.
const MOST_BYTES: usize = 1 << 24;

/// A function of host code.
pub(crate) struct HostFunction {
    enter: unsafe extern "C" fn(*mut RawFrame),
    /// Owns the function's memory; none only while it is dropped.
    module: Mutex<Option<JITModule>>,
    shape: Shape,
    memory_bytes: u64,
    /// Bytes of code.
    pub(crate) bytes: usize,
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFunction").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl HostFunction {
    /// Compiles a function that takes a pointer to a [`RawFrame`] and returns nothing, for machines of that shape with
    /// that much memory, and behind it in the same module the functions that it calls. `None` if Cranelift cannot, or the host has no memory left.
    pub(crate) fn compile(
        isa: OwnedTargetIsa,
        mut helpers: Vec<Context>,
        mut context: Context,
        shape: Shape,
        memory_bytes: u64,
    ) -> Option<HostFunction> {
        let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
        // Each function's memory may be anywhere otherwise, too far apart for calls if the program has mapped gigabytes.
        builder.memory_provider(Box::new(ArenaMemoryProvider::new_with_size(MOST_BYTES).ok()?));
        let mut module = JITModule::new(builder);
        let made = Self::define(&mut module, &mut helpers, &mut context);
        let Some((enter, bytes)) = made else {
            // SAFETY: no function of the module has been called or will be.
            unsafe { module.free_memory() };
            return None;
        };
        // SAFETY: the function has this signature: `emit` declares one pointer and no result, in the host's C calling
        // convention.
        let enter =
            unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn(*mut RawFrame)>(enter) };
        Some(HostFunction { enter, module: Mutex::new(Some(module)), shape, memory_bytes, bytes })
    }

    fn define(
        module: &mut JITModule,
        helpers: &mut [Context],
        region: &mut Context,
    ) -> Option<(*const u8, usize)> {
        let mut bytes = 0;
        let mut last = None;
        for (number, context) in helpers.iter_mut().chain([region]).enumerate() {
            let (name, signature) = (format!("f{number}"), &context.func.signature);
            let id = module.declare_function(&name, Linkage::Local, signature).ok()?;
            module.define_function(id, context).ok()?;
            bytes += context.compiled_code()?.code_buffer().len();
            last = Some(id);
        }
        module.finalize_definitions().ok()?;
        Some((module.get_finalized_function(last?), bytes))
    }

    /// Calls it. Returns whether registers and memory are those that it was made for; otherwise nothing happens.
    #[inline]
    pub(crate) fn call(
        &self,
        frame: &mut RawFrame,
        registers: &mut RegisterWords<'_>,
        predicates: &mut [u64; 64],
        memory: MemoryWords<'_>,
    ) -> bool {
        let (register_words, word, registers) = match registers {
            RegisterWords::Four(words) => (words.len(), 4, words.as_mut_ptr().expose_provenance()),
            RegisterWords::Eight(words) => (words.len(), 8, words.as_mut_ptr().expose_provenance()),
        };
        let (bytes, memory) = match memory {
            MemoryWords::Four(words) => (size_of_val(words), words.as_ptr().expose_provenance()),
            MemoryWords::Eight(words) => (size_of_val(words), words.as_ptr().expose_provenance()),
        };
        let fits = word == self.shape.bytes()
            && register_words >= 64 * self.shape.lane_words
            && bytes as u64 == self.memory_bytes
            && frame.stack_len <= frame.stack.len() as u64
            && frame.stack_limit <= frame.stack.len() as u64;
        if !fits {
            return false;
        }
        frame.registers = registers as u64;
        frame.predicates = predicates.as_mut_ptr().expose_provenance() as u64;
        frame.memory = memory as u64;
        frame.size = bytes as u64;
        (frame.word, frame.lanes) = (word as u64, self.shape.lanes as u64);
        // SAFETY: the module's documentation argues that the code accesses nothing but the frame and what it points
        // to, which is borrowed here and as large as the code expects. The code lives as long as `self`.
        unsafe { (self.enter)(frame) };
        true
    }
}

impl Drop for HostFunction {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(module) = module {
            // SAFETY: nobody else has the function, which is called by borrowers only.
            unsafe { module.free_memory() };
        }
    }
}

/// The address of what host code calls for instructions that it does not do itself: a function of the frame and the
/// opcode's number.
pub(crate) fn slow_address() -> usize {
    (slow as *const ()).expose_provenance()
}

/// The address of what host code calls at a barrier for one warp: a function of the frame.
pub(crate) fn passes_address() -> usize {
    (passes as *const ()).expose_provenance()
}

/// Whether a warp passes the barrier at which it is, as 1 or 0.
extern "C" fn passes(frame: *const RawFrame) -> u64 {
    // SAFETY: as in `slow`.
    let frame = unsafe { &*frame };
    frame.passes().into()
}

/// Does instruction number `opcode` on the frame's scratch vectors.
extern "C" fn slow(frame: *mut RawFrame, opcode: u32) {
    // SAFETY: host code passes the pointer that it got, which is a unique reference in `call`, and does not use the
    // frame meanwhile.
    let frame = unsafe { &mut *frame };
    if let Some(&opcode) = Opcode::ALL.get(opcode as usize) {
        frame.slow(opcode);
    }
}
