//! The format of a file with a kernel:
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | `HARPcode` |
//! | 4 | the version of the format, little-endian |
//! | 32 | the key |
//! | 32 | SHA-256 of the rest |
//! | rest | the kernel in postcard's format |

use harp_jit::{Kernel, KernelSource};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::key::Key;

const MAGIC: &[u8; 8] = b"HARPcode";

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// The most bytes of a file.
pub(super) const MAX_BYTES: u64 = 1 << 28;

/// Why a file is not used.
#[derive(Debug, Error)]
pub(super) enum Rejection {
    /// It is a folder, or something else that has no contents.
    #[error("it is no file")]
    Kind,
    #[error("it has {given} bytes, the limit is {MAX_BYTES}")]
    Size { given: u64 },
    #[error("it ends after {given} bytes")]
    Truncated { given: usize },
    #[error("it does not start with `HARPcode`")]
    Magic,
    #[error("it has version {given} of the format, expected {VERSION}")]
    Version { given: u32 },
    #[error("it is of another kernel, or for other options or another compiler")]
    Key,
    #[error("it is damaged")]
    Hash,
    #[error("it holds no kernel: {0}")]
    Contents(postcard::Error),
    #[error("its kernel is another one: it has another {0}")]
    Other(&'static str),
}

/// A file's contents.
///
/// # Errors
///
/// If the kernel cannot be saved.
pub(super) fn write(key: &Key, kernel: &Kernel) -> Result<Vec<u8>, postcard::Error> {
    let contents = postcard::to_stdvec(kernel)?;
    let hash = Sha256::digest(&contents);
    let parts: [&[u8]; 5] = [MAGIC, &VERSION.to_le_bytes(), &key.0, &hash, &contents];
    Ok(parts.concat())
}

/// The kernel in a file, which is `source` compiled.
///
/// # Errors
///
/// If the contents are not those of such a file.
pub(super) fn read(bytes: &[u8], key: &Key, source: &KernelSource) -> Result<Kernel, Rejection> {
    let mut rest = bytes;
    let mut take =
        |count| rest.split_off(..count).ok_or(Rejection::Truncated { given: bytes.len() });
    if take(MAGIC.len())? != MAGIC {
        return Err(Rejection::Magic);
    }
    let version = take(size_of_val(&VERSION))?;
    let given = version.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
    if given != VERSION {
        return Err(Rejection::Version { given });
    }
    if take(Key::BYTES)? != key.0 {
        return Err(Rejection::Key);
    }
    let hash = take(Sha256::output_size())?;
    if hash != &Sha256::digest(rest)[..] {
        return Err(Rejection::Hash);
    }
    let (kernel, behind) =
        postcard::take_from_bytes::<Kernel>(rest).map_err(Rejection::Contents)?;
    // The hash is right, so what follows is no accident.
    let differs = [
        ("length", !behind.is_empty()),
        ("name", kernel.name() != source.name()),
        ("machine", kernel.arch() != source.arch()),
        ("list of parameters", kernel.params() != source.params()),
        ("size of a group's memory", kernel.group_bytes() != source.group_bytes()),
    ];
    match differs.into_iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(Rejection::Other(what)),
        None => Ok(kernel),
    }
}
