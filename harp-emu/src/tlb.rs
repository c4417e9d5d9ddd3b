//! Address translation: a core's table of pages.

use std::collections::BTreeMap;
use std::fmt;

use crate::trap::TrapKind;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The most mappings that a core holds at a time.
const MAX_MAPPINGS: usize = 1 << 16;

/// All permissions, of user and supervisor.
const ALL: u8 = 0b11_1111;

/// Why memory is accessed through the translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageAccess {
    /// An instruction is fetched.
    Fetch,
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic operation, which needs the permissions of a load and of a store.
    Atomic,
}

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
}

impl fmt::Display for PageAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageAccess::Fetch => "fetched from",
            PageAccess::Load => "loaded from",
            PageAccess::Store => "stored to",
            PageAccess::Atomic => "operated on atomically",
        })
    }
}

/// A page's place and what it permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageMapping {
    /// The page's first virtual address.
    pub virt: u64,
    /// Its first physical address.
    pub phys: u64,
    /// Permissions: execute 32, write 16, read 8 in supervisor mode, 4, 2 and 1 in user mode.
    pub flags: u8,
}

/// The mappings of a core, by the number of the virtual page.
pub(crate) struct Tlb(BTreeMap<u64, PageMapping>);

impl Tlb {
    /// Page 0 is where it is and permits everything.
    pub(crate) fn at_reset() -> Tlb {
        Tlb(BTreeMap::from([(0, PageMapping { virt: 0, phys: 0, flags: ALL })]))
    }

    /// Maps the page of the address `virt` to that of `phys`, in place of what was there.
    pub(crate) fn add(&mut self, virt: u64, phys: u64, flags: u64) -> Result<(), TrapKind> {
        let page = virt / PAGE;
        if self.0.len() == MAX_MAPPINGS && !self.0.contains_key(&page) {
            return Err(TrapKind::TlbFull { limit: MAX_MAPPINGS });
        }
        let flags = flags as u8 & ALL;
        let mapping = PageMapping { virt: page * PAGE, phys: phys / PAGE * PAGE, flags };
        self.0.insert(page, mapping);
        Ok(())
    }

    /// Forgets the page of the address `virt`.
    pub(crate) fn remove(&mut self, virt: u64) {
        self.0.remove(&(virt / PAGE));
    }

    pub(crate) fn flush(&mut self) {
        self.0.clear();
    }

    /// The physical address.
    pub(crate) fn translate(
        &self,
        address: u64,
        access: PageAccess,
        supervisor: bool,
    ) -> Result<u64, TrapKind> {
        let mapping =
            self.0.get(&(address / PAGE)).ok_or(TrapKind::PageMiss { address, access })?;
        let needs = if supervisor { access.needs() << 3 } else { access.needs() };
        if mapping.flags & needs != needs {
            return Err(TrapKind::PagePermission { address, access, supervisor });
        }
        Ok(mapping.phys + address % PAGE)
    }

    /// All mappings, by virtual address.
    pub(crate) fn mappings(&self) -> impl Iterator<Item = PageMapping> + '_ {
        self.0.values().copied()
    }
}
