//! The calling convention and the memory layout that compiled kernels and the runtime library share.
//!
//! * The stack grows down; `%ra` is the last general register, `%sp` the one before, `%fp` the one
//!   before that. The lower half of the registers is caller-saved, the upper half callee-saved, and
//!   so is `%ra` (Gupta 2016, table 1). All predicates are caller-saved. Of registers that lanes
//!   share, the upper half belongs to the kernel ([`SharedRoles`]).
//! * Arguments come in `%r0`, `%r1`, ... of the lower half. A kernel takes two: the address of its
//!   [argument block](ArgumentBlock), and the work-item's position in the grid in the first
//!   dimension ([`KernelEntry`]).
//! * Each lane's stack is a power of two in size and aligned to it. The [`LaneField`]s lie at its
//!   base, so they can be found from any address within the stack by a shift right and a shift left. For
//!   that, `%sp` never points past the end of the stack: it starts one word below. In launches of kernels, the
//!   stacks of a warp are aligned, too, see [`warp_alignment`].

use crate::arch::{ArchId, WordSize};
use crate::reg::{Gpr, Pred};

/// Declares words of memory that lie one behind the other, in this order.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $word:ident,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $word,)*
        }

        impl $name {
            /// All of them, in the order of their addresses.
            pub const ALL: [$name; [$($name::$word),*].len()] = [$($name::$word),*];

            /// The distance of the word from the first, in bytes.
            pub const fn offset(self, word: WordSize) -> u32 {
                self as u32 * word.bytes() as u32
            }
        }
    };
}

/// The roles of the general registers on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRoles {
    gprs: u8,
}

impl RegisterRoles {
    /// The roles on `arch`.
    pub const fn new(arch: ArchId) -> RegisterRoles {
        RegisterRoles { gprs: arch.gprs() }
    }

    /// `%ra`, the return address. Never allocated: code emission uses it as scratch.
    pub const fn return_address(self) -> Gpr {
        Gpr::new(self.gprs - 1)
    }

    /// `%sp`, the stack pointer.
    pub const fn stack_pointer(self) -> Gpr {
        Gpr::new(self.gprs - 2)
    }

    /// `%fp`, an ordinary callee-saved register in functions without a frame pointer.
    pub const fn frame_pointer(self) -> Gpr {
        Gpr::new(self.gprs - 3)
    }

    /// The registers that a call may change and that carry arguments.
    pub fn caller_saved(self) -> impl Iterator<Item = Gpr> {
        (0..self.gprs / 2).map(Gpr::new)
    }

    /// The registers that a call preserves and that code may use freely once it has saved them:
    /// the upper half without `%sp` and `%ra`.
    pub fn callee_saved(self) -> impl Iterator<Item = Gpr> {
        (self.gprs / 2..self.gprs - 2).map(Gpr::new)
    }
}

/// The roles of the registers that the lanes of a warp share on one machine, where it has any: a function may change the lower half,
/// the larger one, and the upper half is the kernel's, which finds there after a call what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRoles {
    arch: ArchId,
}

impl SharedRoles {
    /// The roles on `arch`.
    pub const fn new(arch: ArchId) -> SharedRoles {
        SharedRoles { arch }
    }

    /// Whether this is a shared register that only kernels change.
    pub const fn is_of_kernel(self, reg: Gpr) -> bool {
        self.arch.is_shared_gpr(reg)
            && reg.index() >= self.arch.gprs() + self.arch.shared_gprs().div_ceil(2)
    }

    /// Whether this is a shared predicate that only kernels change.
    pub const fn is_pred_of_kernel(self, reg: Pred) -> bool {
        self.arch.is_shared_pred(reg)
            && reg.index() >= self.arch.preds() + self.arch.shared_preds().div_ceil(2)
    }
}

words! {
    /// A word of the lane control block at the base of a lane's stack.
    pub enum LaneField {
        /// The lane's number in its warp.
        Lane,
        /// The warp's number in its core.
        Warp,
        /// The core's number.
        Core,
        /// The work-item's position in the grid, second dimension.
        GlobalIdY,
        /// Third dimension.
        GlobalIdZ,
        /// The lowest address that the lane's stack pointer may have in a function that checks this limit. The
        /// [reserve](stack_reserve_bytes) lies below.
        StackLimit,
        /// The address of the warp's [scratch word](LaneField::ScratchWord), the same in all its lanes.
        ScratchAddress,
        /// A word through which the lanes of a warp communicate, within a few instructions. The one in lane 0's
        /// block is used.
        ScratchWord,
        /// How many lanes a warp has.
        Lanes,
        /// The address of the warp's [group control block](GroupField), in launches with work-groups.
        Group,
        /// The work-item's number in its work-group, counted along the first dimension first.
        LocalIndex,
        /// The work-item's position in its work-group, first dimension; negative while a lane has no work-item.
        LocalIdX,
        /// Second dimension.
        LocalIdY,
        /// Third dimension.
        LocalIdZ,
        /// Whether the lane takes part in an exchange of values between lanes, on machines without
        /// instructions for that.
        Present,
        /// The value that it offers to the other lanes in the exchange.
        Offered,
    }
}

impl LaneField {
    /// The size of the lane control block in bytes.
    pub const fn block_bytes(word: WordSize) -> u32 {
        Self::ALL.len() as u32 * word.bytes() as u32
    }
}

words! {
    /// A word of the group control block, which holds what the lanes of a warp need to know about their
    /// work-group. Each warp has a block of its own, which is not written while a kernel runs.
    pub enum GroupField {
        /// The group's position among the groups of the grid, first dimension.
        IdX,
        /// Second dimension.
        IdY,
        /// Third dimension.
        IdZ,
        /// The group's extent in the first dimension. Groups at the grid's end can be smaller than others.
        SizeX,
        /// Second dimension.
        SizeY,
        /// Third dimension.
        SizeZ,
        /// The number of the group's barrier.
        Barrier,
        /// How many warps must reach the barrier.
        BarrierWarps,
        /// The address of the group's memory.
        Memory,
    }
}

impl GroupField {
    /// The size of the block in bytes.
    pub const fn block_bytes(word: WordSize) -> u32 {
        Self::ALL.len() as u32 * word.bytes() as u32
    }
}

/// Bytes below the [limit](LaneField::StackLimit) of a stack, reserved for functions that do not check the
/// limit: those that, together with all functions that they call, need no more.
pub const fn stack_reserve_bytes(word: WordSize) -> u32 {
    64 * word.bytes() as u32
}

/// How the stacks of a warp, which lie one behind the other, are aligned in launches of kernels: if their number is a
/// power of two, to all of them together. So lane 0's control block is found like a lane's own, and what is the same in all
/// lanes, such as the [group](LaneField::Group), is loaded from one address.
pub const fn warp_alignment(arch: ArchId, stack_bytes: u64) -> u64 {
    let lanes = arch.lanes() as u64;
    if lanes.is_power_of_two() { stack_bytes.saturating_mul(lanes) } else { stack_bytes }
}

/// By how many bytes less than the size of a stack the first stack pointers of a warp's lanes are apart. Lanes mostly access
/// the same slots of their stacks at a time. Apart by a power of two of some size, these would compete for the same sets of
/// the host's caches.
pub const fn stack_skew_bytes(stack_bytes: u64) -> u64 {
    match stack_bytes / 128 {
        skew @ 8..32 => skew,
        32.. => 32,
        _ => 0,
    }
}

/// The registers that hold a kernel's parameters when it is called.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry;

impl KernelEntry {
    /// The address of the [argument block](ArgumentBlock), the same in all lanes.
    pub const ARGUMENTS: Gpr = Gpr::new(0);

    /// The work-item's position in the grid in the first dimension. The other positions are in the lane
    /// control block, because most grids have one dimension.
    ///
    /// On machines with [shared registers](ArchId::with_shared), a kernel that does not use work-groups is entered with
    /// positions that follow each other from lane to lane, and with the same positions in the other dimensions.
    pub const GLOBAL_ID_X: Gpr = Gpr::new(1);

    /// The shared register that holds [`ARGUMENTS`](Self::ARGUMENTS), too, if the machine has one.
    pub const fn shared_arguments(arch: ArchId) -> Option<Gpr> {
        arch.shared_gpr(0)
    }

    /// The shared register that holds the [position](Self::GLOBAL_ID_X) of lane 0, too, if the machine has two of them and the
    /// kernel does not use work-groups.
    pub const fn shared_position(arch: ArchId) -> Option<Gpr> {
        arch.shared_gpr(1)
    }
}

/// The words at the address that a kernel gets in `%r0`: in three dimensions the extent of the grid, that of
/// a work-group and the number of work-groups; then the arguments, one word each, two if one is wider.
/// They are not written during a launch. Without work-groups the words about them are 0.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentBlock;

impl ArgumentBlock {
    /// Words before the first argument.
    pub const HEADER_WORDS: u32 = 9;

    /// The byte offset of the grid's extent in dimension `dim`, 0 to 2.
    pub const fn grid_extent(dim: u8, word: WordSize) -> u32 {
        dim as u32 * word.bytes() as u32
    }

    /// The byte offset of the extent of a work-group in dimension `dim`, 0 to 2.
    pub const fn group_extent(dim: u8, word: WordSize) -> u32 {
        (3 + dim as u32) * word.bytes() as u32
    }

    /// The byte offset of the number of work-groups in dimension `dim`, 0 to 2.
    pub const fn group_count(dim: u8, word: WordSize) -> u32 {
        (6 + dim as u32) * word.bytes() as u32
    }

    /// The byte offset of word `index` of the arguments.
    pub const fn argument(index: u32, word: WordSize) -> u32 {
        (Self::HEADER_WORDS + index) * word.bytes() as u32
    }
}

words! {
    /// A word about the memory that a launch gave its lanes and work-groups, for code that asks where an address points to.
    /// Images of kernels that refer to [`SYMBOL`](Self::SYMBOL) have these words there. They are not written during a launch.
    pub enum LaunchMemory {
        /// The address of the lanes' stacks.
        Stacks,
        /// Where these end.
        StacksEnd,
        /// The address of what work-groups have: their memory, and their control blocks. Without work-groups it is empty.
        Groups,
        /// Where that ends.
        GroupsEnd,
    }
}

impl LaunchMemory {
    /// The linker's name of the first word.
    pub const SYMBOL: &str = "runtime.launch_memory";
}

words! {
    /// A word of what is added to the positions of a launch's work-items in the grid, for code that asks for it. Images of
    /// kernels that refer to [`SYMBOL`](Self::SYMBOL) have these words there. They are not written during a launch.
    pub enum LaunchOffset {
        /// In the first dimension.
        X,
        /// In the second.
        Y,
        /// In the third.
        Z,
    }
}

impl LaunchOffset {
    /// The linker's name of the first word.
    pub const SYMBOL: &str = "runtime.launch_offset";
}

words! {
    /// A word about the grid of a launch that its extents do not tell, for code that asks for it. Images of kernels that refer to
    /// [`SYMBOL`](Self::SYMBOL) have these words there. They are not written during a launch.
    pub enum LaunchGrid {
        /// The number of dimensions that the host gave the grid.
        Dimensions,
    }
}

impl LaunchGrid {
    /// The linker's name of the first word.
    pub const SYMBOL: &str = "runtime.launch_grid";
}

words! {
    /// A word by which code that was compiled to report its accesses to memory tells a device what it does: it stores to
    /// the word's address, which is above the memory.
    pub enum MonitorWord {
        /// A kernel begins; the stored word is the work-item's position in the grid in the first dimension. The others are
        /// in the lane control block.
        Begin,
        /// The end of its stack frame.
        Stack,
        /// The value that the next access stores, or a word that differs where such values differ.
        Value,
        /// The address of the stack slot that the next access is to.
        Slot,
    }
}

impl MonitorWord {
    /// The address of the first of these words, behind the page with the console.
    pub const fn first_address(word: WordSize) -> u64 {
        (1 << (word.bits() - 1)) + 4096
    }

    /// The distance from the first address to the word that stands for the `index`th access to memory in the code of
    /// its function. The stored word is the address; of what orders accesses, bits of [`Order`].
    pub const fn access_offset(index: u32, word: WordSize) -> u64 {
        (Self::ALL.len() as u64 + index as u64) * word.bytes() as u64
    }
}

/// What is stored in place of an address to report that accesses to memory are ordered.
#[derive(Clone, Copy, Debug)]
pub struct Order;

impl Order {
    /// Accesses to the memory of the work-group are ordered.
    pub const GROUP: u64 = 1;
    /// Accesses to all other memory are.
    pub const OTHER: u64 = 2;
    /// The work-item has passed a barrier.
    pub const BARRIER: u64 = 4;
}

/// The lock of the runtime library. Code holds it during accesses that take several instructions and must not meet others:
/// atomic ones to more than a word, and without extension X all atomic ones and stores to parts of words.
///
/// A warp takes it with all lanes that execute the access, and a warp that has it must release it before it takes it
/// again. Both functions take the number of the core in the first register and that of the warp in the second, use no
/// stack, and change what any function may. The lock orders the warps of all cores, provided that memory is sequentially
/// consistent: so the cores must run on one host thread.
#[derive(Clone, Copy, Debug)]
pub struct Lock;

impl Lock {
    /// The linker's name of the function that takes it.
    pub const TAKE: &str = "runtime.lock";
    /// The linker's name of the function that releases it.
    pub const RELEASE: &str = "runtime.unlock";
}
