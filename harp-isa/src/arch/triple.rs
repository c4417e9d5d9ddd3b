//! Architecture ids as target triples.
//!
//! The crate target-lexicon does not know HARP, and with another architecture's name a code generator for
//! *that* architecture would accept the triple. So the architecture stays `unknown` and the
//! vendor field carries the id, with the characters that a triple cannot hold replaced:
//! `8w32/32/16/16+x` is `unknown-harp_8w32_32_16_16_x-none-unknown`. Options start with a letter, counts do not.

use target_lexicon::{
    Architecture, BinaryFormat, CustomVendor, Environment, OperatingSystem, Triple, Vendor,
};
use thiserror::Error;

use super::{ArchId, ArchIdError};

const PREFIX: &str = "harp_";

/// Why a target triple does not name a HARP machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TripleError {
    /// The vendor field holds no architecture id.
    #[error("`{triple}` is not a HARP target: its vendor does not start with `{PREFIX}`")]
    NotHarp {
        /// The triple.
        triple: String,
    },
    /// The vendor field holds a bad architecture id.
    #[error("`{triple}`: {source}")]
    ArchId {
        /// The triple.
        triple: String,
        /// What is wrong with the id.
        source: ArchIdError,
    },
}

impl From<ArchId> for Triple {
    fn from(arch: ArchId) -> Triple {
        let id = arch.to_string().replace(['/', '+'], "_");
        Triple {
            architecture: Architecture::Unknown,
            vendor: Vendor::Custom(CustomVendor::Owned(format!("{PREFIX}{id}").into())),
            operating_system: OperatingSystem::None_,
            environment: Environment::Unknown,
            binary_format: BinaryFormat::Unknown,
        }
    }
}

impl TryFrom<&Triple> for ArchId {
    type Error = TripleError;

    fn try_from(triple: &Triple) -> Result<ArchId, TripleError> {
        let vendor = triple.vendor.as_str();
        let id = match vendor.strip_prefix(PREFIX) {
            Some(id) if triple.architecture == Architecture::Unknown => id,
            _ => return Err(TripleError::NotHarp { triple: triple.to_string() }),
        };
        let mut parts = id.split('_');
        let mut id = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            id.push(if part.starts_with(['x', 's']) { '+' } else { '/' });
            id.push_str(part);
        }
        id.parse().map_err(|source| TripleError::ArchId { triple: triple.to_string(), source })
    }
}
