//! What a kernel prints as it is saved: formats are text again, and parsed when they are loaded.

use harp_isa::ArchId;
use serde::{Deserialize, Serialize};

use super::{PrintSite, PrintSites};
use crate::scalar::Scalar;
use crate::source::SourcePlace;

/// A [`PrintSite`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedPrint {
    format: String,
    types: Vec<Scalar>,
    place: SourcePlace,
}

impl PrintSites {
    pub(crate) fn saved(&self) -> Vec<SavedPrint> {
        let saved = self.sites.iter().map(|PrintSite { format, place }| SavedPrint {
            format: format.text(),
            types: format.types().map(Scalar).collect(),
            place: place.clone(),
        });
        saved.collect()
    }

    /// What a kernel for `arch` prints, if it does.
    ///
    /// # Errors
    ///
    /// What is wrong with a format.
    pub(crate) fn restored(
        arch: ArchId,
        saved: Vec<SavedPrint>,
    ) -> Result<Option<PrintSites>, String> {
        let sites = saved.into_iter().map(|SavedPrint { format, types, place }| {
            let types: Vec<_> = types.into_iter().map(|Scalar(ty)| ty).collect();
            PrintSite::new(&format, &types, place)
        });
        let sites: Vec<PrintSite> = sites.collect::<Result<_, _>>()?;
        Ok((!sites.is_empty()).then(|| PrintSites::new(arch, sites)))
    }
}
