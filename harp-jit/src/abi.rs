//! The places of arguments and results of functions.
//!
//! Every scalar takes a word, or, if it is wider, several words, the lowest first.
//!
//! * **Arguments** are passed in the registers of the lower half from `%r0` on, then on the stack: at the
//!   callee's entry the first stack argument is at `%sp`, the next a word above, and so on.
//! * A **structure** passed by value, `sarg(n)`, is the address of a copy, which the caller keeps in its
//!   frame during the call and the callee may change.
//! * **Results** are returned in the same registers, then in words of the stack that the caller reserves
//!   above the stack arguments.
//! * Functions of the convention `tail` take the stack arguments off the stack when they return, so that one
//!   of them can end in a call to another that has more. They also leave the last register of the lower half
//!   free for the address of that callee. All other conventions are the same: the stack pointer is unchanged
//!   by a call.
//! * The upper bits of a value narrower than a word are unspecified, except where the signature says `uext`
//!   or `sext`.

use cranelift_codegen::ir::{Signature, Type, types};
use cranelift_codegen::isa::CallConv;
use harp_isa::abi::RegisterRoles;
use harp_isa::link::MAX_IMAGE_BYTES;
use harp_isa::{ArchId, Gpr, Layout, Opcode, WordSize};
use smallvec::SmallVec;

/// The integer type of a word.
pub(crate) fn word_int(word: WordSize) -> Type {
    match word {
        WordSize::Four => types::I32,
        WordSize::Eight => types::I64,
    }
}

/// How a function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// From the runtime library.
    Kernel,
    /// From other functions.
    Function,
}

/// Whether immediates have room for every call and every address.
pub(crate) fn reaches_everything(arch: ArchId) -> bool {
    let layout = Layout::new(arch);
    [Opcode::Jali, Opcode::Jmpi, Opcode::Ldi].into_iter().all(|opcode| {
        u64::try_from(*layout.immediate_range(opcode).end()).is_ok_and(|end| end >= MAX_IMAGE_BYTES)
    })
}

/// The place of a word of an argument or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordPlace {
    /// In a register.
    Register(Gpr),
    /// On the stack, this many words above the stack pointer at the callee's entry.
    Stack(u32),
}

impl WordPlace {
    /// The register; none for a word on the stack.
    pub(crate) fn register(self) -> Option<Gpr> {
        match self {
            WordPlace::Register(register) => Some(register),
            WordPlace::Stack(_) => None,
        }
    }
}

/// A list of places, mostly short.
type Places = SmallVec<[WordPlace; 8]>;

/// The places of a function's arguments and results.
///
/// ```
/// use harp_jit::{CallLayout, WordPlace, ir};
/// use ir::{AbiParam, Signature, types::I64};
///
/// let mut signature = Signature::new(harp_jit::CallConv::Fast);
/// signature.params.extend([AbiParam::new(I64); 3]);
/// // Four of the eight registers of this machine carry arguments, and its word is half an `i64`.
/// let layout = CallLayout::new(&signature, "4w8/8".parse()?);
/// assert_eq!(layout.params().len(), 6);
/// assert_eq!(layout.params()[4], WordPlace::Stack(0));
/// # Ok::<(), harp_isa::ArchIdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLayout {
    params: Places,
    returns: Places,
    stack_arguments: u32,
    stack_results: u32,
    callee_pops: bool,
}

impl CallLayout {
    /// The places for `signature` on `arch`.
    pub fn new(signature: &Signature, arch: ArchId) -> CallLayout {
        let words = |types: &mut dyn Iterator<Item = Type>| {
            types.map(|ty| words(ty, arch.word())).sum::<u32>()
        };
        let params = words(&mut signature.params.iter().map(|param| param.value_type));
        let returns = words(&mut signature.returns.iter().map(|param| param.value_type));
        let (params, stack_arguments) = places(params, argument_registers(signature, arch), 0);
        let (returns, end) = places(returns, argument_registers(signature, arch), stack_arguments);
        CallLayout {
            params,
            returns,
            stack_arguments,
            stack_results: end - stack_arguments,
            callee_pops: signature.call_conv == CallConv::Tail,
        }
    }

    /// The places of the arguments' words in order.
    pub fn params(&self) -> &[WordPlace] {
        &self.params
    }

    /// The places of the results' words in order.
    pub fn returns(&self) -> &[WordPlace] {
        &self.returns
    }

    /// Words of the stack that arguments take.
    pub fn stack_arguments(&self) -> u32 {
        self.stack_arguments
    }

    /// Words of the stack that results take, above the arguments.
    pub fn stack_results(&self) -> u32 {
        self.stack_results
    }

    /// The number of words by which the stack pointer is higher after the call than before.
    pub fn popped_words(&self) -> u32 {
        if self.callee_pops { self.stack_arguments } else { 0 }
    }

    /// The last register of the lower half if no argument is in it: it is free for the callee's address.
    pub(crate) fn address_register(&self, arch: ArchId) -> Option<Gpr> {
        let last = RegisterRoles::new(arch).caller_saved().last()?;
        (!self.params.contains(&WordPlace::Register(last))).then_some(last)
    }
}

/// How many words a value of type `ty` takes.
pub(crate) fn words(ty: Type, word: WordSize) -> u32 {
    ty.bits().div_ceil(word.bits().into())
}

fn argument_registers(signature: &Signature, arch: ArchId) -> impl Iterator<Item = Gpr> + use<> {
    let registers = usize::from(arch.gprs() / 2);
    let kept = usize::from(signature.call_conv == CallConv::Tail);
    RegisterRoles::new(arch).caller_saved().take(registers - kept)
}

/// Places for `count` words, in registers and then on the stack from word `stack` on, and the end of the
/// stack words.
fn places(count: u32, mut registers: impl Iterator<Item = Gpr>, stack: u32) -> (Places, u32) {
    let mut end = stack;
    let places = (0..count).map(|_| match registers.next() {
        Some(register) => WordPlace::Register(register),
        None => {
            end += 1;
            WordPlace::Stack(end - 1)
        }
    });
    (places.collect(), end)
}
