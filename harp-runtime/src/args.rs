//! Kernel arguments.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use harp_isa::WordSize;
use harp_jit::ir::Type;
use harp_jit::{MAX_GROUP_BYTES, Param, ParamType};
use harp_monitor::Argument;

use crate::buffer::{Buffer, Element};
use crate::device::Device;
use crate::error::{LaunchError, Parameter};
use crate::heap::ALIGNMENT;
use crate::kernel::KernelParts;
use crate::memory::BufferMemory;

/// An argument of a launch, made by `From`: a reference to a [`Buffer`], an integer, a float or a `bool`; or the
/// length of an array that work-groups share, made by [`group`](Arg::group). It keeps the buffer's memory alive.
///
/// The argument must have exactly the parameter's type, signedness aside: nothing is converted. An `usize` is
/// for parameters that are a word, which it must fit. If the parameter says what the elements of a buffer are,
/// they must be that.
#[derive(Clone)]
pub struct Arg {
    pub(crate) ty: ParamType,
    /// What a pointer points to, if that is known.
    pub(crate) element: Option<Type>,
    /// Bits above those of the type are zero. Of group memory, its size in bytes.
    pub(crate) bits: u64,
    /// The memory pointed to, and how many bytes of it.
    pub(crate) memory: Option<(Arc<BufferMemory>, u64)>,
}

impl Arg {
    /// A pointer that is not the start of a buffer, for instance into the middle of one, or 0, the null pointer. Only the
    /// latter is checked: nothing may be accessed through it.
    pub fn address(address: u64) -> Arg {
        Arg::new(ParamType::Pointer, address)
    }

    /// An array of `len` elements of `T` that each work-group gets and shares, for a parameter made by
    /// [`group_param`](harp_jit::KernelBuilder::group_param).
    ///
    /// ```
    /// use harp_runtime::prelude::*;
    ///
    /// // Each work-item takes the value of the first one in its group.
    /// let arch: ArchId = "harp32".parse()?;
    /// let mut source = KernelSource::new("first", arch);
    /// let mut b = KernelBuilder::new(&mut source);
    /// let (data, tile) = (b.buffer::<i32>("data"), b.group_param::<i32>("tile"));
    /// let (i, own, first) = (b.global_id(0), b.local_id(0), b.word_const(0));
    /// let value = b.load(data, i);
    /// b.store(tile, own, value);
    /// b.barrier();
    /// let value = b.load(tile, first);
    /// b.store(data, i, value);
    /// b.return_();
    /// b.finalize()?;
    /// let kernel = source.compile(&CompileOptions::default())?;
    ///
    /// let device = Device::new(DeviceConfig::new(arch))?;
    /// let data = device.buffer_from_slice(&[1, 2, 3, 4, 5, 6, 7])?;
    /// let groups = LaunchConfig::grid_1d(data.len()).with_groups_1d(4);
    /// device.launch(&kernel, groups, &[Arg::from(&data), Arg::group::<i32>(4)])?;
    /// assert_eq!(device.read(&data)?, [1, 1, 1, 1, 5, 5, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn group<T: Element>(len: usize) -> Arg {
        let bytes = (len as u64).saturating_mul(T::CLIF.bytes().into());
        Arg { element: Some(T::CLIF), ..Arg::new(ParamType::Group, bytes) }
    }

    fn new(ty: ParamType, bits: u64) -> Arg {
        Arg { ty, element: None, bits, memory: None }
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
        let memory = Some((Arc::clone(buffer.memory()), buffer.bytes()));
        let (element, bits) = (Some(T::CLIF), buffer.address());
        Arg { ty: ParamType::Pointer, element, bits, memory }
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
    bool => Bool, |value| value;
    usize => Word, |value| value as u64;
}

/// The arguments of a launch, as the kernel gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The words of the argument block after its header.
    pub(crate) words: Vec<u64>,
    /// Bytes of memory that each work-group gets.
    pub(crate) group_bytes: u32,
    /// What each lets the kernel access, if the launch is checked.
    pub(crate) regions: Vec<Argument>,
}

impl Arguments {
    /// Checks the arguments of `kernel`. Arrays that work-groups share lie behind those that the kernel itself
    /// has, in the order of the parameters.
    ///
    /// # Errors
    ///
    /// If the number or a type of the arguments is not what the kernel expects, a buffer belongs to another
    /// device, an address or a `usize` does not fit the machine's word, or work-groups get too much memory.
    pub(crate) fn new(
        device: &Device,
        kernel: KernelParts<'_>,
        args: &[Arg],
        is_checked: bool,
    ) -> Result<Arguments, LaunchError> {
        let (expected, given) = (kernel.params.len(), args.len());
        if expected != given {
            let kernel = kernel.name.to_owned();
            return Err(LaunchError::ArgumentCount { kernel, expected, given });
        }
        let word = device.arch().word();
        let (words, regions) = (Vec::new(), Vec::new());
        let mut arguments = Arguments { words, group_bytes: kernel.group_bytes, regions };
        for (index, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
            let parameter = || Parameter::new(kernel.name, index, param);
            arg.check(device, param, &parameter)?;
            match arg.ty {
                ParamType::Group => {
                    let bytes = arguments.add_group_array(arg, &parameter)?;
                    if is_checked {
                        arguments.regions.push(Argument::Group { bytes });
                    }
                }
                _ => {
                    arguments.words.extend(arg.words(word));
                    if param.ty() == ParamType::SizedPointer {
                        arguments.words.extend(arg.memory.as_ref().map(|(_, bytes)| *bytes));
                    }
                    if is_checked {
                        arguments.regions.push(arg.region(param));
                    }
                }
            }
        }
        Ok(arguments)
    }

    fn add_group_array(
        &mut self,
        arg: &Arg,
        parameter: &dyn Fn() -> Parameter,
    ) -> Result<Range<u64>, LaunchError> {
        // Whatever the kernel takes the elements for, none is larger than the array.
        let largest = 1 << arg.bits.max(1).ilog2().min(ALIGNMENT.ilog2());
        let start = u64::from(self.group_bytes).next_multiple_of(largest);
        let (given, limit) = (start.saturating_add(arg.bits), u64::from(MAX_GROUP_BYTES));
        let Some(end) = u32::try_from(given).ok().filter(|_| given <= limit) else {
            return Err(LaunchError::GroupMemory { parameter: parameter(), given, limit });
        };
        self.group_bytes = end;
        self.words.push(start);
        Ok(start..end.into())
    }
}

impl Arg {
    fn check(
        &self,
        device: &Device,
        param: &Param,
        parameter: &dyn Fn() -> Parameter,
    ) -> Result<(), LaunchError> {
        let (expected, given) = (param.ty(), self.ty);
        let fits = match expected {
            ParamType::SizedPointer => given == ParamType::Pointer && self.memory.is_some(),
            ParamType::F16 => given == ParamType::I16,
            _ => given == expected,
        };
        if !fits {
            return Err(LaunchError::ArgumentType { parameter: parameter(), expected, given });
        }
        if let (Some(expected), Some(given)) = (param.element(), self.element)
            && expected != given
        {
            return Err(LaunchError::ElementType { parameter: parameter(), expected, given });
        }
        if self.memory.as_ref().is_some_and(|(memory, _)| !memory.heap().is(device.heap())) {
            return Err(LaunchError::ForeignBuffer { parameter: parameter() });
        }
        let (word, given) = (device.arch().word(), self.bits);
        if matches!(self.ty, ParamType::Pointer | ParamType::Word) && given > word.mask() {
            let (parameter, word_bytes) = (parameter(), word.bytes());
            return Err(LaunchError::ArgumentTooWide { parameter, given, word_bytes });
        }
        Ok(())
    }

    /// What the argument lets a kernel access through a parameter.
    fn region(&self, param: &Param) -> Argument {
        match (&self.memory, self.element) {
            (Some((memory, bytes)), Some(element)) => Argument::Buffer {
                range: self.bits..self.bits + bytes,
                element,
                name: memory.name(),
                is_constant: param.is_constant(),
            },
            (None, _) if (self.ty, self.bits) == (ParamType::Pointer, 0) => Argument::Null,
            _ => Argument::Other,
        }
    }

    /// The memory that it points to, and which bytes of it.
    pub(crate) fn part(&self) -> Option<(&BufferMemory, Range<u64>)> {
        let (memory, bytes) = self.memory.as_ref()?;
        let start = self.bits - memory.range().start;
        Some((memory, start..start + bytes))
    }

    /// The memory that it points to.
    pub(crate) fn memory(&self) -> Option<&BufferMemory> {
        self.memory.as_ref().map(|(memory, _)| &**memory)
    }

    /// The words of the value, lowest first.
    fn words(&self, word: WordSize) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        (0..self.ty.words(word))
            .map(move |index| bits >> (index * u32::from(word.bits())) & word.mask())
    }
}
