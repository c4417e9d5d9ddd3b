//! Makes cores of the types that machines need.

use std::any::Any;

use harp_isa::WordSize;

use super::still::{Lazy, Shared};
use super::{Core, Lanes, Left, Spare, Whole};
use crate::config::MachineConfig;
use crate::memory::Memory;
use crate::warp::{GROUP, Warp};
use crate::word::Word;

/// The most cores that are kept whole, whether they run or not. Making a core and reducing it to its remains
/// costs a few microseconds, which would slow down launches on few cores.
const KEPT_WHOLE: u16 = 64;

/// All cores at reset, made of what cores of another machine have left, if anything. The memory has words of the
/// machine's size. `None` if the host has no memory left.
pub(crate) fn all_at_reset<'m>(
    config: &MachineConfig,
    memory: &'m Memory,
    spare: Vec<Box<dyn Spare>>,
) -> Option<Vec<Box<dyn Core + 'm>>> {
    if config.cores <= KEPT_WHOLE {
        let mut spare = spare.into_iter();
        let mut core = |id| Some(at_reset(config, memory, id, spare.next())? as _);
        return (0..config.cores).map(&mut core).collect();
    }
    let shared = Shared::new(config.clone(), memory);
    let lazy = |id| Some(Box::new(Lazy::new(shared.clone(), id)?) as _);
    (0..config.cores).map(lazy).collect()
}

/// Core number `core` at reset. The memory has words of the machine's size. `None` if the host has no
/// memory left.
pub(super) fn at_reset<'m>(
    config: &MachineConfig,
    memory: &'m Memory,
    core: u16,
    spare: Option<Box<dyn Spare>>,
) -> Option<Box<dyn Whole + 'm>> {
    match memory.cells::<u32>() {
        Some(cells) => with_word::<u32>(config, cells, core, spare),
        None => {
            let cells = memory.cells::<u64>().expect("words have 4 bytes or 8");
            with_word::<u64>(config, cells, core, spare)
        }
    }
}

/// Picks the number of groups that holds the machine's lanes. One is not among them: machines of up to 8 lanes are
/// hardly slower with two, and everything would be compiled once more.
fn with_word<'m, W: Word>(
    config: &MachineConfig,
    cells: &'m [W::Cell],
    core: u16,
    spare: Option<Box<dyn Spare>>,
) -> Option<Box<dyn Whole + 'm>> {
    fn made<'m, W: Word, const C: usize>(
        config: &MachineConfig,
        cells: &'m [W::Cell],
        core: u16,
        spare: Option<Box<dyn Spare>>,
    ) -> Option<Box<dyn Whole + 'm>> {
        let left = spare.and_then(|spare| (spare as Box<dyn Any>).downcast::<Left<W, C>>().ok());
        Some(Box::new(Lanes::<W, C>::new(config, cells, core, left.map(|left| *left))?))
    }
    match usize::from(config.arch.lanes()).div_ceil(GROUP) {
        0..=2 => made::<W, 2>(config, cells, core, spare),
        3 | 4 => made::<W, 4>(config, cells, core, spare),
        _ => made::<W, 8>(config, cells, core, spare),
    }
}

/// Host memory that the first warp of a core takes.
pub(crate) fn least_state(config: &MachineConfig) -> u64 {
    fn of<W: Word>(lanes: u8) -> u64 {
        match usize::from(lanes).div_ceil(GROUP) {
            0..=2 => Warp::<W, 2>::STATE_BYTES,
            3 | 4 => Warp::<W, 4>::STATE_BYTES,
            _ => Warp::<W, 8>::STATE_BYTES,
        }
    }
    let lanes = config.arch.lanes();
    match config.arch.word() {
        WordSize::Four => of::<u32>(lanes),
        WordSize::Eight => of::<u64>(lanes),
    }
}
