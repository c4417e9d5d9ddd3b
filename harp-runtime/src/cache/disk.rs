//! The folder of a cache.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use harp_jit::{Kernel, KernelSource};
use tempfile::NamedTempFile;
use thiserror::Error;

use super::file::{self, MAX_BYTES, Rejection};
use super::key::Key;

/// A folder with a file for each kernel.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
}

/// Why there is no kernel on disk.
#[derive(Debug, Error)]
pub(super) enum DiskError {
    #[error("not used: {0}")]
    Rejected(#[from] Rejection),
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("the kernel cannot be saved: {0}")]
    NotSaved(#[from] postcard::Error),
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
    ) -> Result<Option<Kernel>, DiskError> {
        let path = self.path(key);
        // What is no file may have no end, or no beginning.
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if !found.is_file() {
            return Err(Rejection::Kind.into());
        }
        if found.len() > MAX_BYTES {
            return Err(Rejection::Size { given: found.len() }.into());
        }
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        Ok(Some(file::read(&bytes, key, source)?))
    }

    /// Writes a kernel. Other processes see the whole file or none.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn store(&self, key: &Key, kernel: &Kernel) -> Result<(), DiskError> {
        let bytes = file::write(key, kernel)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::from(ErrorKind::FileTooLarge).into());
        }
        fs::create_dir_all(&self.folder)?;
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(&bytes)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        Ok(())
    }
}
