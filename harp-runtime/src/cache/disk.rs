//! The folder of a cache.

use std::io::ErrorKind;
use std::path::PathBuf;

use harp_jit::{Kernel, KernelSource};

use super::key::Key;
use crate::sealed::{FileError, Format, Rejection};

/// Files with a kernel.
const FORMAT: Format = Format { magic: "HARPcode", version: 4, max_bytes: 1 << 28 };

/// A folder with a file for each kernel.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
}

impl Disk {
    pub(super) fn new(folder: PathBuf) -> Disk {
        Disk { folder }
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}.harpcode"))
    }

    /// The kernel with this key, which is `source` compiled; `None` if it was never stored.
    ///
    /// # Errors
    ///
    /// If there is something else, or it cannot be read.
    pub(super) fn load(
        &self,
        key: &Key,
        source: &KernelSource,
    ) -> Result<Option<Kernel>, FileError> {
        let kernel: Kernel = match FORMAT.read(&self.path(key), &key.0, "kernel") {
            Err(FileError::Failed(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read?,
        };
        let differs = [
            ("name", kernel.name() != source.name()),
            ("machine", kernel.arch() != source.arch()),
            ("list of parameters", kernel.params() != source.params()),
            ("size of a group's memory", kernel.group_bytes() != source.group_bytes()),
        ];
        match differs.into_iter().find(|(_, differs)| *differs) {
            Some((what, _)) => {
                Err(Rejection::Other(format!("a kernel with another {what}")).into())
            }
            None => Ok(Some(kernel)),
        }
    }

    /// Writes a kernel.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn store(&self, key: &Key, kernel: &Kernel) -> Result<(), FileError> {
        FORMAT.write(&self.path(key), &key.0, kernel)
    }
}
