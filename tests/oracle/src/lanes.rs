//! Which lane takes a work-item.

use harp_isa::ArchId;
use harp_jit::Kernel;

/// How the lanes of warps take work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Lanes of a warp.
    pub count: u8,
    /// Whether each row of a grid with several dimensions begins at a warp's first lane; otherwise each warp takes the
    /// work-items that follow those of the one before.
    pub by_rows: bool,
}

/// Not by rows: so are all kernels that ask for the numbers of lanes.
impl From<u8> for Lanes {
    fn from(count: u8) -> Lanes {
        Lanes { count, by_rows: false }
    }
}

/// Not by rows.
impl From<ArchId> for Lanes {
    fn from(arch: ArchId) -> Lanes {
        arch.lanes().into()
    }
}

/// As a launch of the kernel on one core does, in groups along rows if it needs any.
impl From<&Kernel> for Lanes {
    fn from(kernel: &Kernel) -> Lanes {
        Lanes { count: kernel.arch().lanes(), by_rows: kernel.is_by_rows() || kernel.uses_groups() }
    }
}

impl Lanes {
    /// The lane that takes a work-item of a grid.
    pub(crate) fn of_item(self, item: u64, [width, height, depth]: [u64; 3]) -> u64 {
        let is_line = (height, depth) == (1, 1);
        let number = if self.by_rows && !is_line { item % width } else { item };
        number % u64::from(self.count)
    }
}
