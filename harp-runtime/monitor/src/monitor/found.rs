//! Findings: what is wrong, with which accesses, and how often.

use super::{Found, Monitor, PlaceOf, Reported};
use crate::finding::{Access, Finding, FindingKind};
use crate::races::Stamp;

/// What is wrong with an access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    Bounds,
    Uninitialized,
    Alignment,
    Type,
    Race(Stamp),
    Barrier(Stamp),
    /// With the number of the parameter that promises otherwise.
    Constant(u32),
}

impl Monitor {
    /// What was found. `place_of` says where the code at an address comes from.
    pub fn finish(&mut self, place_of: &PlaceOf<'_>) -> Found {
        let mut list = std::mem::take(&mut self.findings);
        let describe = |access: &mut Access, site: u32| {
            (access.place, access.function) = place_of(self.sites[site as usize].pc);
        };
        for (&(_, site, other), index) in &self.numbers {
            let Some(finding) = index.and_then(|index| list.get_mut(index)) else { continue };
            describe(&mut finding.access, site);
            if let FindingKind::Race { other: access, .. }
            | FindingKind::Barriers { other: access } = &mut finding.kind
            {
                describe(access, other);
            }
        }
        let unwritten = self.tracks_written.then(|| std::mem::take(&mut self.unwritten));
        Found { list, more: self.more, unwritten, races: std::mem::take(&mut self.races) }
    }

    /// Notes a finding about the access of a lane.
    pub(super) fn found(&mut self, wrong: Wrong, at: &Reported<'_>, lane: u8) {
        let number = at.site;
        let (code, other) = match wrong {
            Wrong::Bounds => (0, 0),
            Wrong::Uninitialized => (1, 0),
            Wrong::Type => (2, 0),
            Wrong::Race(other) => (3, other.site()),
            Wrong::Alignment => (4, 0),
            Wrong::Constant(number) => (5, number),
            Wrong::Barrier(other) => (6, other.site()),
        };
        let key = (code, number, other);
        if let Some(&index) = self.numbers.get(&key) {
            match index {
                Some(index) => self.findings[index].count += 1,
                None => self.more += 1,
            }
            return;
        }
        if self.findings.len() >= self.checks.limit {
            self.numbers.insert(key, None);
            self.more += 1;
            return;
        }
        let (own, address) = (at.first + usize::from(lane), at.store.values[usize::from(lane)]);
        let allowed = &self.sites[number as usize].allowed;
        let access = self.described(number, address, self.stamps[own].item);
        let target = self.regions.target(allowed, address, at.group.as_ref(), self.slots[own]);
        let kind = match wrong {
            Wrong::Bounds => FindingKind::OutOfBounds,
            Wrong::Uninitialized => FindingKind::Uninitialized,
            Wrong::Alignment => {
                let alignment = self.sites[number as usize].access.alignment;
                FindingKind::Misaligned { alignment }
            }
            Wrong::Type => {
                let expected = allowed.wrong_type.unwrap_or(access.ty);
                FindingKind::ElementType { expected }
            }
            Wrong::Constant(parameter) => {
                FindingKind::Constant { parameter, buffer: self.regions.name_of(parameter) }
            }
            Wrong::Race(other) => {
                let is_passed =
                    self.numbers_of_items.are_of_one_group(self.stamps[own].item, other.item)
                        && self.stamps[own].barriers != other.barriers;
                let other = self.described(other.site(), address, other.item);
                FindingKind::Race { other, passes_barrier: is_passed }
            }
            Wrong::Barrier(other) => {
                FindingKind::Barriers { other: self.described(other.site(), address, other.item) }
            }
        };
        self.numbers.insert(key, Some(self.findings.len()));
        self.findings.push(Finding { kind, access, target, count: 1 });
    }

    fn described(&self, site: u32, address: u64, item: u32) -> Access {
        let access = &self.sites[site as usize].access;
        let work_item = self.numbers_of_items.position(item);
        Access {
            kind: access.kind,
            ty: access.ty,
            address,
            work_item,
            group: self.numbers_of_items.group_of(work_item),
            place: None,
            function: None,
        }
    }
}
