//! The state that a launch depends on, as it is saved.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harp_jit::{Kernel, ParamType, SOURCES_HASH, Scalar};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::args::Arg;
use crate::config::{DeviceConfig, LaunchConfig};
use crate::device::{Device, DeviceError};
use crate::heap::Allocation;
use crate::kept::SavedReplay;
use crate::memory::BufferMemory;
use crate::sealed::{FileError, Format};

/// Bytes that are saved together, unless all are zero.
const PAGE: u64 = 4096;

/// Files with a launch.
const FORMAT: Format = Format { magic: "HARPplay", version: 5, max_bytes: 1 << 32 };

/// Why a replay is not read, written or run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read, or it is no replay that this version of the library has written.
    #[error("cannot read the replay `{}`: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write the replay `{}`: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The device cannot be made on this host.
    #[error("the replay's device cannot be made")]
    Device(#[from] DeviceError),
    /// The file is not what this library writes, although its hash is right.
    #[error("the replay contradicts itself: {0}")]
    Contradiction(&'static str),
}

/// A launch that is about to be done, with everything that it depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) kernel: Kernel,
    pub(crate) device: DeviceConfig,
    pub(crate) launch: LaunchConfig,
    args: Vec<SavedArg>,
    buffers: Vec<SavedBuffer>,
    /// What is taken of the heap, by address.
    taken: Vec<Range<u64>>,
    /// The parts of the memory that are not zero.
    pages: Vec<(u64, Vec<u8>)>,
}

/// An [`Arg`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedArg {
    ty: ParamType,
    element: Option<Scalar>,
    bits: u64,
    /// The number of a buffer, and how many of its bytes.
    memory: Option<(usize, u64)>,
}

/// A [`BufferMemory`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedBuffer {
    taken: Range<u64>,
    bytes: u64,
    name: Option<String>,
    /// By distance from the start.
    unwritten: Vec<Range<u64>>,
}

/// A device as it was before a launch, and the arguments.
pub(crate) struct Restored {
    pub(crate) device: Device,
    pub(crate) args: Vec<Arg>,
    /// What was not free then, and is no argument.
    _taken: (Vec<Allocation>, Vec<Arc<BufferMemory>>),
}

fn not_written(path: &Path, error: &FileError) -> ReplayError {
    ReplayError::Write { path: path.to_owned(), reason: error.to_string() }
}

impl Snapshot {
    /// The state of a device now; `None` if an argument is a buffer of another one.
    pub(crate) fn capture(
        device: &Device,
        kernel: &Kernel,
        launch: LaunchConfig,
        args: &[Arg],
    ) -> Option<Snapshot> {
        let live = device.buffers().live();
        let number = |memory: &Arc<BufferMemory>| live.iter().position(|m| Arc::ptr_eq(m, memory));
        Some(Snapshot {
            args: args.iter().map(|arg| SavedArg::new(arg, number)).collect::<Option<_>>()?,
            kernel: kernel.clone(),
            device: DeviceConfig { replays: None, ..device.config().clone() },
            launch,
            buffers: live.iter().map(|memory| SavedBuffer::new(memory)).collect(),
            taken: device.heap().taken(),
            pages: pages(device),
        })
    }

    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Snapshot, ReplayError> {
        FORMAT.read(path, SOURCES_HASH.as_bytes(), "replay").map_err(|error| {
            let (path, reason) = (path.to_owned(), error.to_string());
            ReplayError::Read { path, reason }
        })
    }

    /// Writes a file, whose folder is made if it is not there.
    pub(crate) fn write(&self, path: &Path) -> Result<(), ReplayError> {
        let written = FORMAT.write(path, SOURCES_HASH.as_bytes(), self);
        written.map_err(|error| not_written(path, &error))
    }

    /// Writes it to a file in `folder` that no other has.
    pub(crate) fn keep(&self, folder: &Path) -> SavedReplay {
        let name: String = (self.kernel.name().chars())
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .take(64)
            .collect();
        let paths = (0_u64..).map(|number| folder.join(format!("{name}-{number}.harpreplay")));
        for path in paths.filter(|path| !path.exists()) {
            match FORMAT.write_new(&path, SOURCES_HASH.as_bytes(), self) {
                Ok(()) => return SavedReplay::File(path),
                // Another process has taken the name meanwhile.
                Err(error) if error.is_there() => {}
                Err(error) => return SavedReplay::Failed(not_written(&path, &error).to_string()),
            }
        }
        unreachable!("a folder has fewer files than there are numbers")
    }

    /// A device with the saved memory.
    ///
    /// # Errors
    ///
    /// If there can be none, or what was saved contradicts itself.
    pub(crate) fn restore(&self) -> Result<Restored, ReplayError> {
        let device = Device::new(self.device.clone())?;
        let memory = device.memory();
        for (address, bytes) in &self.pages {
            let written = memory.write(*address, bytes);
            written.map_err(|_| ReplayError::Contradiction("a page is outside of the memory"))?;
        }
        let (others, buffers) = self.take(&device)?;
        let args = self.args.iter().map(|arg| arg.restored(&buffers)).collect::<Option<_>>();
        let args = args.ok_or(ReplayError::Contradiction("an argument is no buffer"))?;
        Ok(Restored { device, args, _taken: (others, buffers) })
    }

    /// Takes of the heap what was taken.
    fn take(
        &self,
        device: &Device,
    ) -> Result<(Vec<Allocation>, Vec<Arc<BufferMemory>>), ReplayError> {
        let mut all: Vec<_> = self.buffers.iter().map(|buffer| buffer.taken.clone()).collect();
        all.extend(self.taken_by_others());
        all.sort_by_key(|range| range.start);
        let taken = device.heap().take(&all);
        let taken = taken.ok_or(ReplayError::Contradiction("ranges of the heap overlap"))?;
        let (mut others, mut buffers) = (Vec::new(), Vec::new());
        for allocation in taken {
            let range = allocation.range();
            match self.buffers.iter().find(|buffer| buffer.taken == range) {
                Some(saved) => buffers.push(saved.restored(allocation)?),
                None => others.push(allocation),
            }
        }
        buffers.iter().for_each(|memory| device.buffers().add(memory));
        Ok((others, buffers))
    }

    /// What is taken but by buffers, which are in the order of their addresses.
    fn taken_by_others(&self) -> Vec<Range<u64>> {
        let mut others = Vec::new();
        for taken in &self.taken {
            let mut at = taken.start;
            let inside = |buffer: &&SavedBuffer| taken.contains(&buffer.taken.start);
            for buffer in self.buffers.iter().filter(inside) {
                others.push(at..buffer.taken.start);
                at = buffer.taken.end;
            }
            others.push(at..taken.end);
        }
        others.retain(|range| range.start < range.end);
        others
    }
}

impl SavedArg {
    /// `None` if it is a buffer without a number.
    fn new(arg: &Arg, number: impl Fn(&Arc<BufferMemory>) -> Option<usize>) -> Option<SavedArg> {
        let Arg { ty, element, bits, memory } = arg;
        let memory = match memory {
            Some((memory, bytes)) => Some((number(memory)?, *bytes)),
            None => None,
        };
        Some(SavedArg { ty: *ty, element: element.map(Scalar), bits: *bits, memory })
    }

    /// `None` if there is no such buffer.
    fn restored(&self, buffers: &[Arc<BufferMemory>]) -> Option<Arg> {
        let SavedArg { ty, element, bits, memory } = self;
        let memory = match memory {
            Some((number, bytes)) => {
                let memory = buffers.get(*number)?;
                let end = bits.checked_add(*bytes)?;
                let range = memory.range();
                (range.start <= *bits && end <= range.end).then_some(())?;
                Some((Arc::clone(memory), *bytes))
            }
            None => None,
        };
        let element = element.map(|Scalar(element)| element);
        Some(Arg { ty: *ty, element, bits: *bits, memory })
    }
}

impl SavedBuffer {
    fn new(memory: &BufferMemory) -> SavedBuffer {
        let range = memory.range();
        SavedBuffer {
            taken: memory.taken(),
            bytes: range.end - range.start,
            name: memory.name().0,
            unwritten: memory.unwritten().ranges().collect(),
        }
    }

    fn restored(&self, allocation: Allocation) -> Result<Arc<BufferMemory>, ReplayError> {
        let (range, bytes) = (allocation.range(), self.bytes);
        if bytes > range.end - range.start {
            return Err(ReplayError::Contradiction("a buffer is larger than its memory"));
        }
        let memory = BufferMemory::new(allocation, bytes);
        if let Some(name) = &self.name {
            memory.set_name(name.clone());
        }
        for range in &self.unwritten {
            if range.start > range.end || range.end > bytes {
                return Err(ReplayError::Contradiction("a buffer has bytes that it has not"));
            }
            memory.unwritten().forget(range.clone());
        }
        Ok(Arc::new(memory))
    }
}

/// The parts of a device's memory that are not zero, as far as it was ever used.
fn pages(device: &Device) -> Vec<(u64, Vec<u8>)> {
    let top = device.heap().top();
    let mut pages = Vec::new();
    for start in (0..top).step_by(PAGE as usize) {
        let mut page = vec![0; PAGE.min(top - start) as usize];
        device.get(start, &mut page);
        if page.iter().any(|&byte| byte != 0) {
            pages.push((start, page));
        }
    }
    pages
}
