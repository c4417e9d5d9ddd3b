//! Kernel arguments.

use std::fmt;
use std::sync::Arc;

use harp_isa::WordSize;
use harp_jit::ParamType;

use crate::buffer::{Buffer, BufferMemory, Element};
use crate::device::Device;
use crate::error::LaunchError;

/// An argument of a launch, made by `From`: a reference to a [`Buffer`], an integer or a float. It keeps the buffer's
/// memory alive.
///
/// The argument must have exactly the parameter's type, signedness aside: nothing is converted.
#[derive(Clone)]
pub struct Arg {
    ty: ParamType,
    /// Bits above those of the type are zero.
    bits: u64,
    /// The memory pointed to.
    memory: Option<Arc<BufferMemory>>,
}

impl Arg {
    /// A pointer that is not the start of a buffer, for instance into the middle of one. It is not checked.
    pub fn address(address: u64) -> Arg {
        Arg::new(ParamType::Pointer, address)
    }

    fn new(ty: ParamType, bits: u64) -> Arg {
        Arg { ty, bits, memory: None }
    }
}

impl Arg {
    /// The type that a parameter must have to take this argument.
    pub fn param_type(&self) -> ParamType {
        self.ty
    }
}

impl fmt::Debug for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arg({} {:#x})", self.ty, self.bits)
    }
}

impl<T: Element> From<&Buffer<T>> for Arg {
    fn from(buffer: &Buffer<T>) -> Arg {
        let memory = Some(Arc::clone(buffer.memory()));
        Arg { ty: ParamType::Pointer, bits: buffer.address(), memory }
    }
}

macro_rules! scalar_arguments {
    ($($ty:ty => $param:ident, |$value:ident| $bits:expr;)*) => { $(
        impl From<$ty> for Arg {
            fn from($value: $ty) -> Self {
                Arg::new(ParamType::$param, $bits.into())
            }
        }
    )* };
}

scalar_arguments! {
    u8 => I8, |value| value;
    i8 => I8, |value| value.cast_unsigned();
    u16 => I16, |value| value;
    i16 => I16, |value| value.cast_unsigned();
    u32 => I32, |value| value;
    i32 => I32, |value| value.cast_unsigned();
    u64 => I64, |value| value;
    i64 => I64, |value| value.cast_unsigned();
    f32 => F32, |value| value.to_bits();
    f64 => F64, |value| value.to_bits();
}

/// The words of the argument block for `args`, after its header.
///
/// # Errors
///
/// If the number or a type of the arguments is not what the kernel expects, a buffer belongs to another
/// device, or an address does not fit the machine's word.
pub(crate) fn words(
    device: &Device,
    params: &[ParamType],
    args: &[Arg],
) -> Result<Vec<u64>, LaunchError> {
    if params.len() != args.len() {
        let (expected, given) = (params.len(), args.len());
        return Err(LaunchError::ArgumentCount { expected, given });
    }
    let mut words = Vec::new();
    for (index, (&expected, arg)) in params.iter().zip(args).enumerate() {
        arg.check(device, index, expected)?;
        words.extend(arg.words(device.arch().word()));
    }
    Ok(words)
}

impl Arg {
    fn check(&self, device: &Device, index: usize, expected: ParamType) -> Result<(), LaunchError> {
        if self.ty != expected {
            return Err(LaunchError::ArgumentType { index, expected, given: self.ty });
        }
        if self.memory.as_ref().is_some_and(|memory| !memory.heap().is(device.heap())) {
            return Err(LaunchError::ForeignBuffer { index });
        }
        let word = device.arch().word();
        if self.ty == ParamType::Pointer && self.bits > word.mask() {
            let (ty, word_bytes) = (self.ty, word.bytes());
            return Err(LaunchError::ArgumentTooWide { index, ty, word_bytes });
        }
        Ok(())
    }

    /// The words of the value, lowest first.
    fn words(&self, word: WordSize) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        (0..self.ty.words(word))
            .map(move |index| bits >> (index * u32::from(word.bits())) & word.mask())
    }
}
