//! Typed arrays in guest memory.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;
use harp_jit::ElementType;
use thiserror::Error;

use crate::device::Device;
use crate::heap::{ALIGNMENT, Allocation, Heap, OutOfMemory};

// Guest memory is little-endian, and elements are copied in the host's byte order.
#[cfg(target_endian = "big")]
compile_error!("harp-runtime needs a little-endian host");

/// What a [`Buffer`] holds: the integers of 1, 2, 4 and 8 bytes and the two float formats.
pub trait Element: Pod + ElementType {}

impl<T: Pod + ElementType> Element for T {}

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
    #[error("the buffer belongs to another device")]
    ForeignBuffer,
    /// The host's slice and the buffer differ in length.
    #[error("{given} elements given for a buffer of {expected}")]
    Length {
        /// Elements of the slice.
        given: usize,
        /// Elements of the buffer.
        expected: usize,
    },
}

/// An array of `T` in the memory of one [`Device`]. Dropping it frees the memory.
///
/// Its address is a multiple of 64. Kernels see it as a pointer to its first element.
pub struct Buffer<T> {
    allocation: Allocation,
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
        self.allocation.address()
    }

    /// The heap that its memory was allocated from.
    pub(crate) fn heap(&self) -> &Heap {
        self.allocation.heap()
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("element", &std::any::type_name::<T>())
            .field("address", &self.allocation.address())
            .field("len", &self.len)
            .finish()
    }
}

impl Device {
    /// A buffer with a copy of `data`.
    ///
    /// # Errors
    ///
    /// If the guest's memory is exhausted.
    pub fn buffer_from_slice<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, BufferError> {
        let buffer = self.allocate(data.len())?;
        self.put(buffer.address(), bytemuck::cast_slice(data));
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    ///
    /// If the guest's memory is exhausted.
    pub fn buffer_zeroed<T: Element>(&self, len: usize) -> Result<Buffer<T>, BufferError> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let buffer = self.allocate::<T>(len)?;
        let bytes = len * size_of::<T>();
        for start in (0..bytes).step_by(ZEROS.len()) {
            let part = &ZEROS[..ZEROS.len().min(bytes - start)];
            self.put(buffer.address() + start as u64, part);
        }
        Ok(buffer)
    }

    /// A copy of the buffer's elements.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device.
    pub fn read<T: Element>(&self, buffer: &Buffer<T>) -> Result<Vec<T>, BufferError> {
        let mut elements = vec![T::zeroed(); buffer.len];
        self.read_into(buffer, &mut elements)?;
        Ok(elements)
    }

    /// Copies the buffer's elements to `out`.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device, or `out` has another length.
    pub fn read_into<T: Element>(
        &self,
        buffer: &Buffer<T>,
        out: &mut [T],
    ) -> Result<(), BufferError> {
        self.check(buffer, out.len())?;
        self.get(buffer.address(), bytemuck::cast_slice_mut(out));
        Ok(())
    }

    /// Copies `data` to the buffer.
    ///
    /// # Errors
    ///
    /// If the buffer belongs to another device, or `data` has another length.
    pub fn write<T: Element>(&self, buffer: &Buffer<T>, data: &[T]) -> Result<(), BufferError> {
        self.check(buffer, data.len())?;
        self.put(buffer.address(), bytemuck::cast_slice(data));
        Ok(())
    }

    fn allocate<T: Element>(&self, len: usize) -> Result<Buffer<T>, BufferError> {
        let element_bytes = size_of::<T>();
        let bytes = len.checked_mul(element_bytes).and_then(|bytes| u64::try_from(bytes).ok());
        let bytes = bytes.ok_or(BufferError::TooLong { len, element_bytes })?;
        let allocation = self.heap().allocate(bytes, ALIGNMENT)?;
        Ok(Buffer { allocation, len, element: PhantomData })
    }

    fn check<T: Element>(&self, buffer: &Buffer<T>, given: usize) -> Result<(), BufferError> {
        if !buffer.heap().is(self.heap()) {
            return Err(BufferError::ForeignBuffer);
        }
        if given != buffer.len {
            return Err(BufferError::Length { given, expected: buffer.len });
        }
        Ok(())
    }
}
