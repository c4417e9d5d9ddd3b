//! The code of a function as it is saved. The record for the checker is not.

use std::num::NonZeroU8;
use std::sync::Arc;

use cranelift_codegen::ir::TrapCode;
use harp_isa::ArchId;
use harp_isa::object::Reference;
use serde::{Deserialize, Serialize};

use super::{FunctionCode, Linked};
use crate::accesses::{MemoryAccess, Root};
use crate::convergence::BlockConvergence;
use crate::groups::Grouping;
use crate::profile::BranchSite;
use crate::source::SourcePlace;

/// A [`FunctionCode`] without its machine, which is that of the kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedFunction {
    name: String,
    linked: Linked,
    bytes: Vec<u8>,
    literals: Vec<u32>,
    references: Vec<Reference>,
    /// The files of places, each once.
    files: Vec<String>,
    /// The offsets at which places begin.
    places: Vec<(u32, Option<SavedPlace>)>,
    traps: Vec<(u32, NonZeroU8)>,
    messages: Vec<(u32, String)>,
    branches: Vec<(u32, BranchSite)>,
    branch_fingerprint: u64,
    convergence: Vec<BlockConvergence>,
    grouping: Grouping,
    accesses: Vec<MemoryAccess>,
}

/// A [`SourcePlace`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SavedPlace {
    /// The number of the file.
    file: u32,
    line: u32,
    column: u32,
}

impl From<FunctionCode> for SavedFunction {
    fn from(code: FunctionCode) -> SavedFunction {
        let mut files: Vec<String> = Vec::new();
        let mut number = |file: &str| {
            let known = files.iter().position(|known| known == file);
            let index = known.unwrap_or_else(|| {
                files.push(file.to_owned());
                files.len() - 1
            });
            u32::try_from(index).expect("there are fewer files than bytes of code")
        };
        let mut place = |place: SourcePlace| {
            let SourcePlace { file, line, column } = place;
            SavedPlace { file: number(&file), line, column }
        };
        let places = code.places.into_iter().map(|(at, from)| (at, from.map(&mut place)));
        SavedFunction {
            places: places.collect(),
            files,
            name: code.name,
            linked: code.linked,
            bytes: code.bytes,
            literals: code.literals,
            references: code.references,
            traps: code.traps.into_iter().map(|(at, trap)| (at, trap.as_raw())).collect(),
            messages: code.messages.iter().map(|(at, text)| (*at, text.to_string())).collect(),
            branches: code.branches,
            branch_fingerprint: code.branch_fingerprint,
            convergence: code.convergence,
            grouping: code.grouping,
            accesses: code.accesses.to_vec(),
        }
    }
}

impl SavedFunction {
    /// The function, for a kernel of `arch` with so many parameters.
    ///
    /// # Errors
    ///
    /// What contradicts the rest.
    pub(crate) fn restored(
        self,
        arch: ArchId,
        params: usize,
    ) -> Result<FunctionCode, &'static str> {
        self.check(arch, params)?;
        let files = self.files;
        let place = |SavedPlace { file, line, column }| {
            let file: &String = files.get(usize::try_from(file).ok()?)?;
            Some(SourcePlace { file: file.clone().into(), line, column })
        };
        let places = self.places.into_iter().map(|(at, from)| match from {
            Some(from) => place(from).map(|place| (at, Some(place))),
            None => Some((at, None)),
        });
        Ok(FunctionCode {
            name: self.name,
            arch,
            linked: self.linked,
            bytes: self.bytes,
            literals: self.literals,
            references: self.references,
            places: places.collect::<Option<_>>().ok_or("a place is in a file without a name")?,
            traps: self.traps.into_iter().map(|(at, raw)| (at, TrapCode::from_raw(raw))).collect(),
            messages: self.messages.into_iter().map(|(at, text)| (at, Arc::from(text))).collect(),
            branches: self.branches,
            branch_fingerprint: self.branch_fingerprint,
            convergence: self.convergence,
            record: None,
            grouping: self.grouping,
            accesses: self.accesses.into(),
        })
    }

    fn check(&self, arch: ArchId, params: usize) -> Result<(), &'static str> {
        let word = u64::from(arch.word().bytes());
        let Some(end) = u32::try_from(self.bytes.len()).ok().filter(|&end| end > 0) else {
            return Err("a function has no code, or too much");
        };
        let inside = |at: u32| at < end;
        let end = u64::from(end);
        let literals: Vec<u64> = self.literals.iter().copied().map(u64::from).collect();
        if !literals.iter().zip(literals.iter().skip(1).chain([&end])).all(|(a, b)| a + word <= *b)
        {
            return Err("literals overlap, or lie outside of the code");
        }
        let fits = |r: &Reference| {
            let field = r.byte_offset.checked_add(word);
            field.is_some_and(|field| field <= end)
                && (r.byte_offset..=end).contains(&r.base_offset)
        };
        if !self.references.is_sorted_by_key(|r| r.byte_offset) || !self.references.iter().all(fits)
        {
            return Err("references are in disorder, or outside of the code");
        }
        let tables_fit = self.places.is_sorted_by_key(|&(at, _)| at)
            && self.traps.is_sorted_by_key(|&(at, _)| at)
            && self.messages.is_sorted_by_key(|&(at, _)| at)
            && self.traps.iter().all(|&(at, _)| inside(at))
            && self.messages.iter().all(|&(at, _)| inside(at))
            && self.branches.iter().all(|&(at, _)| inside(at));
        if !tables_fit {
            return Err("a table of offsets is in disorder, or has some outside of the code");
        }
        let starts = self.convergence.iter().skip(1).map(|block| block.start).chain([end]);
        if !self.convergence.iter().zip(starts).all(|(b, next)| b.start < b.end && b.end <= next) {
            return Err("blocks overlap, or lie outside of the code");
        }
        let known =
            |root: &Root| !matches!(*root, Root::Param(number) if number as usize >= params);
        if !self.accesses.iter().all(|access| access.roots.iter().all(known)) {
            return Err("an access is to what a parameter points to that does not exist");
        }
        Ok(())
    }
}
