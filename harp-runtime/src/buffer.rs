//! Typed arrays in guest memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;
use harp_jit::ElementType;
use harp_monitor::BufferName;
use thiserror::Error;

use crate::device::Device;
use crate::heap::{ALIGNMENT, OutOfMemory};
use crate::memory::BufferMemory;

// Guest memory is little-endian, and elements are copied in the host's byte order.
#[cfg(target_endian = "big")]
compile_error!("harp-runtime needs a little-endian host");

/// What a [`Buffer`] holds: the integers of 1, 2, 4 and 8 bytes and the two float formats.
pub trait Element: Pod + Send + ElementType {}

impl<T: Pod + Send + ElementType> Element for T {}

/// Why a buffer was not made, read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The guest's memory is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// More bytes than can be counted.
    #[error("{len} elements of {element_bytes} bytes are more than any memory holds")]
    TooLong {
        /// Elements asked for.
        len: usize,
        /// Bytes of an element.
        element_bytes: usize,
    },
    /// The buffer was made by another device.
    #[error("{buffer} belongs to another device")]
    ForeignBuffer {
        /// The buffer.
        buffer: BufferName,
    },
    /// The host's slice, or another buffer, and the buffer differ in length.
    #[error("{given} elements given for {buffer}, which has {expected}")]
    Length {
        /// The buffer.
        buffer: BufferName,
        /// Elements given.
        given: usize,
        /// Elements of the buffer.
        expected: usize,
    },
    /// A range that is not inside the buffer.
    #[error("elements {start} to {end} of {buffer}, which has {len}")]
    Range {
        /// The buffer.
        buffer: BufferName,
        /// The first element.
        start: usize,
        /// The element behind the last.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },
    /// The host would read or write what a queued command may write or read meanwhile: found where
    /// [races](crate::Checks::races) are checked.
    #[error("{buffer} is in use: {command} may not have ended, nobody has waited for it")]
    InUse {
        /// The buffer.
        buffer: BufferName,
        /// The command, which is still queued as far as the host knows.
        command: String,
    },
}

/// An array of `T` in the memory of one [`Device`], or a part of one: kernels see a pointer to the first element. An
/// array's address is a multiple of 128.
///
/// A buffer is a handle. Its clones and [views](Self::view) are handles of the same memory, which is freed when all of
/// them, and all queued commands that use them, are gone.
///
/// ```
/// use harp_runtime::prelude::*;
///
/// let device = Device::new(DeviceConfig::new("harp32".parse()?))?;
/// let all = device.buffer_from_slice(&[1, 2, 3, 4, 5])?.named("all");
/// let middle = all.view(1..4)?;
/// device.fill(&middle, 0)?;
/// assert_eq!(device.read(&all)?, [1, 0, 0, 0, 5]);
/// assert_eq!(all.view(4..9).unwrap_err().to_string(), "elements 4 to 9 of buffer `all`, which has 5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Buffer<T> {
    memory: Arc<BufferMemory>,
    /// Bytes before the first element.
    offset: u64,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Buffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The guest's address of the first element.
    pub fn address(&self) -> u64 {
        self.memory.range().start + self.offset
    }

    /// Gives the buffer, its clones and its views a name, for messages and reports.
    pub fn named(self, name: impl Into<String>) -> Buffer<T> {
        self.memory.set_name(name.into());
        self
    }

    /// Its name.
    pub fn name(&self) -> BufferName {
        self.memory.name()
    }

    /// The elements of `range` as a buffer. It shares their memory with this one.
    ///
    /// # Errors
    ///
    /// If the range is not inside the buffer.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<Buffer<T>, BufferError> {
        let Range { start, end } = self.elements(range);
        if start > end || end > self.len {
            let (buffer, len) = (self.name(), self.len);
            return Err(BufferError::Range { buffer, start, end, len });
        }
        let offset = self.offset + (start * size_of::<T>()) as u64;
        let memory = Arc::clone(&self.memory);
        Ok(Buffer { memory, offset, len: end - start, element: PhantomData })
    }

    fn elements(&self, range: impl RangeBounds<usize>) -> Range<usize> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        start..end
    }

    /// The bytes of its elements in the memory that it is in.
    pub(crate) fn byte_range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes()
    }

    /// Bytes of its elements.
    pub(crate) fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Notes that all elements were written.
    fn is_written(&self) {
        self.memory.unwritten().write(self.byte_range());
    }

    /// The memory that it is in.
    pub(crate) fn memory(&self) -> &Arc<BufferMemory> {
        &self.memory
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        let &Buffer { ref memory, offset, len, element } = self;
        Buffer { memory: Arc::clone(memory), offset, len, element }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("name", &self.memory.name().0)
            .field("element", &std::any::type_name::<T>())
            .field("address", &(self.memory.range().start + self.offset))
            .field("len", &self.len)
            .finish()
    }
}

/// Buffers are read and written at once, whatever launches of other threads or [queues](crate::Queue) do meanwhile.
/// Elements that such a launch writes have unspecified values. For commands of a queue whose
/// [races](crate::Checks::races) are checked it is an [error](BufferError::InUse) to read or write before they are known
/// to have ended.
impl Device {
    /// A buffer with a copy of `data`.
    ///
    /// # Errors
    ///
    /// If the guest's memory is exhausted.
    pub fn buffer_from_slice<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, BufferError> {
        let buffer = self.allocate(data.len())?;
        self.put_all(&buffer, data);
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    ///
    /// If the guest's memory is exhausted.
    pub fn buffer_zeroed<T: Element>(&self, len: usize) -> Result<Buffer<T>, BufferError> {
        let buffer = self.allocate(len)?;
        self.put_repeated(&buffer, T::zeroed());
        Ok(buffer)
    }

    /// A buffer of `len` elements with unspecified values.
    ///
    /// # Errors
    ///
    /// If the guest's memory is exhausted.
    pub fn buffer_uninitialized<T: Element>(&self, len: usize) -> Result<Buffer<T>, BufferError> {
        let buffer = self.allocate(len)?;
        buffer.memory.unwritten().forget(0..buffer.bytes());
        Ok(buffer)
    }

    /// A copy of the buffer's elements.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device or is in use.
    pub fn read<T: Element>(&self, buffer: &Buffer<T>) -> Result<Vec<T>, BufferError> {
        check_unused(buffer, false)?;
        self.read_queued(buffer)
    }

    /// Reads as a command of a queue, which has its turn.
    pub(crate) fn read_queued<T: Element>(
        &self,
        buffer: &Buffer<T>,
    ) -> Result<Vec<T>, BufferError> {
        self.check_own(buffer)?;
        let mut elements = vec![T::zeroed(); buffer.len];
        self.get(buffer.address(), bytemuck::cast_slice_mut(&mut elements));
        Ok(elements)
    }

    /// Copies the buffer's elements to `out`.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device or is in use, or `out` has another length.
    pub fn read_into<T: Element>(
        &self,
        buffer: &Buffer<T>,
        out: &mut [T],
    ) -> Result<(), BufferError> {
        self.check_length(buffer, out.len())?;
        check_unused(buffer, false)?;
        self.get(buffer.address(), bytemuck::cast_slice_mut(out));
        Ok(())
    }

    /// Copies `data` to the buffer.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device or is in use, or `data` has another length.
    pub fn write<T: Element>(&self, buffer: &Buffer<T>, data: &[T]) -> Result<(), BufferError> {
        check_unused(buffer, true)?;
        self.write_queued(buffer, data)
    }

    /// Writes as a command of a queue, which has its turn.
    pub(crate) fn write_queued<T: Element>(
        &self,
        buffer: &Buffer<T>,
        data: &[T],
    ) -> Result<(), BufferError> {
        self.check_length(buffer, data.len())?;
        self.put_all(buffer, data);
        Ok(())
    }

    /// Sets each element of the buffer to `value`.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device or is in use.
    pub fn fill<T: Element>(&self, buffer: &Buffer<T>, value: T) -> Result<(), BufferError> {
        check_unused(buffer, true)?;
        self.fill_queued(buffer, value)
    }

    /// Fills as a command of a queue, which has its turn.
    pub(crate) fn fill_queued<T: Element>(
        &self,
        buffer: &Buffer<T>,
        value: T,
    ) -> Result<(), BufferError> {
        self.check_own(buffer)?;
        self.put_repeated(buffer, value);
        Ok(())
    }

    /// Copies all elements of `from` to `to`. If they overlap, `to` gets what `from` held before.
    ///
    /// # Errors
    ///
    /// If a buffer belongs to another device or is in use, or they differ in length.
    pub fn copy<T: Element>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<(), BufferError> {
        let elements = self.read(from)?;
        self.write(to, &elements)
    }

    /// Lets `change` read and change the elements of the buffer, and returns its result. It works on a copy, which is
    /// then written back; if it panics, nothing is.
    ///
    /// ```
    /// # use harp_runtime::prelude::*;
    /// # let device = Device::new(DeviceConfig::new("harp32".parse()?))?;
    /// let buffer = device.buffer_from_slice(&[3, 1, 2])?;
    /// let largest = device.map(&buffer, |elements| {
    ///     elements.sort();
    ///     elements.last().copied()
    /// })?;
    /// assert_eq!((device.read(&buffer)?, largest), (vec![1, 2, 3], Some(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device or is in use.
    pub fn map<T: Element, R>(
        &self,
        buffer: &Buffer<T>,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R, BufferError> {
        check_unused(buffer, true)?;
        let mut elements = self.read(buffer)?;
        let result = change(&mut elements);
        self.put_all(buffer, &elements);
        Ok(result)
    }

    fn allocate<T: Element>(&self, len: usize) -> Result<Buffer<T>, BufferError> {
        let element_bytes = size_of::<T>();
        let bytes = len.checked_mul(element_bytes).and_then(|bytes| u64::try_from(bytes).ok());
        let bytes = bytes.ok_or(BufferError::TooLong { len, element_bytes })?;
        let allocation = self.heap().allocate(bytes, ALIGNMENT)?;
        let memory = Arc::new(BufferMemory::new(allocation, bytes));
        self.buffers().add(&memory);
        Ok(Buffer { memory, offset: 0, len, element: PhantomData })
    }

    fn put_all<T: Element>(&self, buffer: &Buffer<T>, elements: &[T]) {
        self.put(buffer.address(), bytemuck::cast_slice(elements));
        buffer.is_written();
    }

    fn put_repeated<T: Element>(&self, buffer: &Buffer<T>, value: T) {
        const BYTES: usize = 4096;
        let part = vec![value; buffer.len.min(BYTES / size_of::<T>())];
        let part: &[u8] = bytemuck::cast_slice(&part);
        let bytes = buffer.len * size_of::<T>();
        for start in (0..bytes).step_by(BYTES) {
            self.put(buffer.address() + start as u64, &part[..part.len().min(bytes - start)]);
        }
        buffer.is_written();
    }

    pub(crate) fn check_own<T: Element>(&self, buffer: &Buffer<T>) -> Result<(), BufferError> {
        if buffer.memory.heap().is(self.heap()) {
            return Ok(());
        }
        Err(BufferError::ForeignBuffer { buffer: buffer.name() })
    }

    pub(crate) fn check_length<T: Element>(
        &self,
        buffer: &Buffer<T>,
        given: usize,
    ) -> Result<(), BufferError> {
        self.check_own(buffer)?;
        if given != buffer.len {
            let (buffer, expected) = (buffer.name(), buffer.len);
            return Err(BufferError::Length { buffer, given, expected });
        }
        Ok(())
    }
}

/// The host reads or writes a buffer, which no command of a queue must use differently meanwhile.
fn check_unused<T: Element>(buffer: &Buffer<T>, writes: bool) -> Result<(), BufferError> {
    match buffer.memory.uses().conflict(&buffer.byte_range(), writes) {
        None => Ok(()),
        Some(command) => Err(BufferError::InUse { buffer: buffer.name(), command }),
    }
}
