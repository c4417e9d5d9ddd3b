//! Address translation with a core's page table.
//!
//! Most pages are mapped to themselves: they are *in place*. Their permissions are kept a second time, in an
//! array for the fast path (see [`InPlace`]). The precise path looks up all other pages.

use std::collections::BTreeMap;
use std::mem;

use crate::trap::{PageAccess, TrapKind};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The most mappings that a core holds at a time.
const MAX_MAPPINGS: usize = 1 << 16;

/// All permissions, of user and supervisor.
const ALL: u8 = 0b11_1111;

/// The permissions to fetch, of user and supervisor.
const FETCH: u8 = 0b10_0100;

impl PageAccess {
    /// The permissions that it needs in user mode; those of supervisor mode lie three bits higher.
    fn needs(self) -> u8 {
        match self {
            PageAccess::Fetch => 4,
            PageAccess::Load => 1,
            PageAccess::Store => 2,
            PageAccess::Atomic => 3,
        }
    }

    /// The permissions that it needs in supervisor or user mode.
    #[inline(always)]
    fn needs_in(self, supervisor: bool) -> u8 {
        if supervisor { self.needs() << 3 } else { self.needs() }
    }
}

/// The mapping of a page and its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageMapping {
    /// The page's first virtual address.
    pub virt: u64,
    /// Its first physical address.
    pub phys: u64,
    /// Permissions: execute 32, write 16, read 8 in supervisor mode, 4, 2 and 1 in user mode.
    pub flags: u8,
}

/// The mappings of a core.
pub(crate) struct Tlb {
    /// The mappings by the number of the virtual page.
    mappings: BTreeMap<u64, PageMapping>,
    /// The permissions of each page, from page 0 on, if it is in place, otherwise 0. Pages beyond the end
    /// count as not in place.
    in_place: Vec<u8>,
    /// The number of the first page that always counts as not in place.
    in_place_below: u64,
}

impl Tlb {
    /// A table in which page 0 is in place and permits everything. Unless it `translates`, nothing reads which
    /// pages are in place.
    pub(crate) fn at_reset(translates: bool) -> Tlb {
        let page = PageMapping { virt: 0, phys: 0, flags: ALL };
        Tlb {
            mappings: BTreeMap::from([(0, page)]),
            in_place: vec![ALL],
            in_place_below: if translates { MAX_MAPPINGS as u64 } else { 0 },
        }
    }

    /// Maps the page of the address `virt` to that of `phys`, replacing its old mapping. Returns whether some
    /// warp can no longer fetch from the page in place.
    #[inline]
    pub(crate) fn add(&mut self, virt: u64, phys: u64, flags: u64) -> Result<bool, TrapKind> {
        let page = virt / PAGE;
        if self.mappings.len() == MAX_MAPPINGS && !self.mappings.contains_key(&page) {
            return Err(TrapKind::TlbFull { limit: MAX_MAPPINGS });
        }
        let flags = flags as u8 & ALL;
        let mapping = PageMapping { virt: page * PAGE, phys: phys / PAGE * PAGE, flags };
        self.mappings.insert(page, mapping);
        let permitted = if mapping.phys == mapping.virt { flags } else { 0 };
        Ok(self.permit_in_place(page, permitted))
    }

    /// Removes the mapping of the page of `virt`. Returns whether some warp can no longer fetch from it in place.
    #[inline]
    pub(crate) fn remove(&mut self, virt: u64) -> bool {
        let page = virt / PAGE;
        self.mappings.remove(&page);
        self.permit_in_place(page, 0)
    }

    /// Removes all mappings.
    pub(crate) fn flush(&mut self) {
        self.mappings.clear();
        self.in_place.clear();
    }

    /// Sets what a page in place permits. Returns whether some warp can no longer fetch from it.
    fn permit_in_place(&mut self, page: u64, flags: u8) -> bool {
        page < self.in_place_below && self.set_in_place(page as usize, flags)
    }

    #[inline(never)]
    fn set_in_place(&mut self, page: usize, flags: u8) -> bool {
        if flags != 0 && page >= self.in_place.len() {
            self.in_place.resize(page + 1, 0);
        }
        match self.in_place.get_mut(page) {
            None => false,
            Some(permitted) => mem::replace(permitted, flags) & !flags & FETCH != 0,
        }
    }

    /// The pages in place, for warps in supervisor or user mode.
    #[inline(always)]
    pub(crate) fn in_place(&self, supervisor: bool) -> InPlace<'_> {
        InPlace { permitted: &self.in_place, supervisor }
    }

    /// The physical address of a virtual one.
    pub(crate) fn translate(
        &self,
        address: u64,
        access: PageAccess,
        supervisor: bool,
    ) -> Result<u64, TrapKind> {
        let mapping =
            self.mappings.get(&(address / PAGE)).ok_or(TrapKind::PageMiss { address, access })?;
        let needs = access.needs_in(supervisor);
        if mapping.flags & needs != needs {
            return Err(TrapKind::PagePermission { address, access, supervisor });
        }
        Ok(mapping.phys + address % PAGE)
    }

    /// All mappings, by virtual address.
    pub(crate) fn mappings(&self) -> impl Iterator<Item = PageMapping> + '_ {
        self.mappings.values().copied()
    }
}

/// The pages that are mapped to themselves, with the permissions of one mode. It need not know all such pages.
#[derive(Clone, Copy)]
pub(crate) struct InPlace<'a> {
    permitted: &'a [u8],
    supervisor: bool,
}

impl InPlace<'_> {
    /// The permissions of the page of `address` if it is in place, otherwise 0.
    #[inline(always)]
    fn permitted(self, address: u64) -> u8 {
        let page = usize::try_from(address / PAGE).unwrap_or(usize::MAX);
        self.permitted.get(page).copied().unwrap_or(0)
    }

    /// Whether the page of `address` is in place and permits the access.
    #[inline(always)]
    pub(crate) fn permit(self, address: u64, access: PageAccess) -> bool {
        let needs = access.needs_in(self.supervisor);
        self.permitted(address) & needs == needs
    }

    /// Whether the pages of all addresses are in place and permit the access.
    #[inline(always)]
    pub(crate) fn permit_all(
        self,
        addresses: impl Iterator<Item = u64>,
        access: PageAccess,
    ) -> bool {
        let needs = access.needs_in(self.supervisor);
        addresses.fold(needs, |permitted, address| permitted & self.permitted(address)) == needs
    }

    /// How many of the `bytes` bytes from `pc` on, at most a page, may be fetched in place.
    pub(crate) fn fetchable(self, pc: u64, bytes: usize) -> usize {
        let in_page = (PAGE - pc % PAGE) as usize;
        let permit = |address| self.permit(address, PageAccess::Fetch);
        match permit(pc) {
            false => 0,
            true if in_page >= bytes || permit(pc + in_page as u64) => bytes,
            true => in_page,
        }
    }
}
