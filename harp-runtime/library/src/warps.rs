//! Functions with which a program starts warps and lanes of its own, or takes the lock: `spawn_warp`, `call_par`, `lane_or`
//! and those of [`Lock`]. They are linked with programs that refer to them, and the host gives them their stacks.

use harp_isa::abi::{LaneField, Lock, stack_reserve_bytes};
use harp_isa::{ArchId, Image, Object};

use crate::lane::{lane_definitions, with_lane};
use crate::lock::{LOCK, LOCK_PLACE, LockPlace, lock_definitions};
use crate::words::words;

const WARPS: &str = include_str!("asm/warps.s");

const SPAWN_WARP: &str = "spawn_warp";
/// The functions that it can call.
const NAMES: [&str; 5] = [SPAWN_WARP, "call_par", "lane_or", Lock::TAKE, Lock::RELEASE];

/// The chunk of the words that say which warps and stacks there are.
const PLACE: &str = "runtime.warps_place";

words! {
    /// The words of [`PLACE`].
    enum Word {
        /// The number of the warp that is started next.
        Next = "W_NEXT",
        /// Warps of the core.
        Warps = "W_WARPS",
        /// Lanes of a warp.
        Lanes = "W_LANES",
        /// The address of the first stack.
        Stacks = "W_STACKS",
    }
}

/// How many warps of its core a module may start, the first included, if it refers to any of the functions without
/// defining it; none if it needs no functions of these.
pub fn limit(module: &Object) -> Option<u8> {
    let is_defined = |name: &str| module.chunks.iter().any(|chunk| chunk.name == name);
    let references = module.chunks.iter().flat_map(|chunk| &chunk.references);
    let names = references.map(|reference| reference.name.as_str());
    let of_library = names.filter(|name| NAMES.contains(name) && !is_defined(name));
    let warps = of_library.map(|name| if name == SPAWN_WARP { module.arch.warps() } else { 1 });
    warps.max()
}

/// The functions, for stacks of `stack_bytes`, a power of two.
pub fn functions(arch: ArchId, stack_bytes: u32) -> Object {
    let word = arch.word();
    let limit = LaneField::block_bytes(word) + stack_reserve_bytes(word);
    let mut definitions = lane_definitions(word).to_vec();
    definitions.extend(lock_definitions(word));
    definitions.extend([
        ("HALF_WORD", i64::from(word.bits() / 2)),
        ("STACK_SHIFT", stack_bytes.ilog2().into()),
        ("STACK_LIMIT", limit.into()),
        ("W_SIZE", Word::COUNT as i64),
    ]);
    definitions.extend(Word::definitions(word));
    let text = [&with_lane(WARPS, "%r3"), LOCK].concat();
    harp_isa::assemble(&text, arch, &definitions).expect("the text is right for every machine")
}

/// Gives each of `warps` warps stacks from the address `stacks` on, the first of which is that of the lane that boots, and the
/// lock its words above them. Returns the end of the memory in use. All of it is zero when the program begins.
///
/// # Panics
///
/// If the image has no [functions] of this kind.
pub fn give_stacks(image: &mut Image, warps: u8, stacks: u64, stack_bytes: u64) -> u64 {
    let arch = image.arch;
    let [warps, lanes, bytes] = [warps, arch.lanes(), arch.word().bytes()].map(u64::from);
    let address = |name| image.symbol(name).expect("the object has it");
    let (place, lock_place) = (address(PLACE), address(LOCK_PLACE));
    for (word, value) in
        [(Word::Next, 1), (Word::Warps, warps), (Word::Lanes, lanes), (Word::Stacks, stacks)]
    {
        image.put_word(place + word.offset(arch.word()), value);
    }
    let lock = stacks + warps * (lanes + 1) * stack_bytes;
    for (index, value) in (0..).zip(LockPlace::words(lock, warps, 1)) {
        image.put_word(lock_place + index * bytes, value);
    }
    lock + LockPlace::lock_words(warps, 1) * bytes
}
