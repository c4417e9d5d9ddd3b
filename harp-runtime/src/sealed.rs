//! What the crate's files have in common:
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | what kind of file it is |
//! | 4 | the version of the format, little-endian |
//! | as many as the key has | the key |
//! | 32 | SHA-256 of the rest |
//! | rest | the contents in postcard's format |

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use thiserror::Error;

/// A kind of file.
#[derive(Debug)]
pub(crate) struct Format {
    /// What files begin with: text.
    pub(crate) magic: &'static str,
    /// The version of the format.
    pub(crate) version: u32,
    /// The most bytes of a file.
    pub(crate) max_bytes: u64,
}

/// Why a file is not used.
#[derive(Debug, Error)]
pub(crate) enum Rejection {
    /// It is a folder, or something else that has no contents.
    #[error("it is no file")]
    Kind,
    #[error("it has {given} bytes, the limit is {limit}")]
    Size { given: u64, limit: u64 },
    #[error("it ends after {given} bytes")]
    Truncated { given: usize },
    #[error("it does not start with `{expected}`")]
    Magic { expected: &'static str },
    #[error("it has version {given} of the format, expected {expected}")]
    Version { given: u32, expected: u32 },
    #[error("it is of something else, or was written by another version of the library")]
    Key,
    #[error("it is damaged")]
    Hash,
    #[error("its contents are no {expected}: {source}")]
    Contents { expected: &'static str, source: postcard::Error },
    #[error("it holds something else: {0}")]
    Other(String),
}

/// Why a file is not read or written.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("not used: {0}")]
    Rejected(#[from] Rejection),
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("it cannot be saved: {0}")]
    NotSaved(#[from] postcard::Error),
}

impl FileError {
    /// Whether there is such a file already.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, FileError::Failed(error) if error.kind() == ErrorKind::AlreadyExists)
    }
}

impl Format {
    /// A file with `value`.
    ///
    /// # Errors
    ///
    /// If the value cannot be saved.
    fn seal(&self, key: &[u8], value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
        let contents = postcard::to_stdvec(value)?;
        let hash = Sha256::digest(&contents);
        let version = self.version.to_le_bytes();
        let parts: [&[u8]; 5] = [self.magic.as_bytes(), &version, key, &hash, &contents];
        Ok(parts.concat())
    }

    /// The value in a file. `expected` is what messages call it.
    ///
    /// # Errors
    ///
    /// If it is no such file.
    fn open<T: DeserializeOwned>(
        &self,
        bytes: &[u8],
        key: &[u8],
        expected: &'static str,
    ) -> Result<T, Rejection> {
        let mut rest = bytes;
        let mut take =
            |count| rest.split_off(..count).ok_or(Rejection::Truncated { given: bytes.len() });
        if take(self.magic.len())? != self.magic.as_bytes() {
            return Err(Rejection::Magic { expected: self.magic });
        }
        let version = take(size_of_val(&self.version))?;
        let given = version.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        if given != self.version {
            return Err(Rejection::Version { given, expected: self.version });
        }
        if take(key.len())? != key {
            return Err(Rejection::Key);
        }
        let hash = take(Sha256::output_size())?;
        if hash != &Sha256::digest(rest)[..] {
            return Err(Rejection::Hash);
        }
        let value = postcard::take_from_bytes::<T>(rest);
        let (value, behind) = value.map_err(|source| Rejection::Contents { expected, source })?;
        // The hash is right, so what follows is no accident.
        match behind.is_empty() {
            true => Ok(value),
            false => Err(Rejection::Other(format!("{} bytes too many", behind.len()))),
        }
    }

    /// The value in the file at `path`, with which [`open`](Self::open) has the same words.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no such file.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        path: &Path,
        key: &[u8],
        expected: &'static str,
    ) -> Result<T, FileError> {
        // What is no file may have no end, or no beginning.
        let found = fs::metadata(path)?;
        if !found.is_file() {
            return Err(Rejection::Kind.into());
        }
        let (given, limit) = (found.len(), self.max_bytes);
        if given > limit {
            return Err(Rejection::Size { given, limit }.into());
        }
        Ok(self.open(&fs::read(path)?, key, expected)?)
    }

    /// Writes a file with `value`. Other processes see the whole file or none.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(
        &self,
        path: &Path,
        key: &[u8],
        value: &impl Serialize,
    ) -> Result<(), FileError> {
        let file = self.prepare(path, key, value)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// The same, but if there is such a file it stays.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or is there.
    pub(crate) fn write_new(
        &self,
        path: &Path,
        key: &[u8],
        value: &impl Serialize,
    ) -> Result<(), FileError> {
        let file = self.prepare(path, key, value)?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// A file with all that is to be in the one at `path`, beside that.
    fn prepare(
        &self,
        path: &Path,
        key: &[u8],
        value: &impl Serialize,
    ) -> Result<NamedTempFile, FileError> {
        let bytes = self.seal(key, value)?;
        if bytes.len() as u64 > self.max_bytes {
            return Err(io::Error::from(ErrorKind::FileTooLarge).into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        Ok(file)
    }
}
