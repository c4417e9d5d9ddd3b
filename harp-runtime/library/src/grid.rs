//! Boot code and grid walker.

use harp_isa::abi::{ArgumentBlock, GroupField, KernelEntry, LaneField, RegisterRoles};
use harp_isa::{ArchId, Gpr, Object};

use crate::lane::{lane_definitions, with_lane};
use crate::lock::{LOCK, lock_definitions};
use crate::words::words;

const BOOT: &str = include_str!("asm/boot.s");
const CLONE: &str = include_str!("asm/clone.s");
const FIND: &str = include_str!("asm/find.s");
const LINE: &str = include_str!("asm/line.s");
const LINE_WIDE: &str = include_str!("asm/line_wide.s");
const RUNS: &str = include_str!("asm/runs.s");
const CHUNKS: &str = include_str!("asm/chunks.s");
const VOLUME: &str = include_str!("asm/volume.s");
const ROWS: &str = include_str!("asm/rows.s");
const GROUPS: &str = include_str!("asm/groups.s");
const GROUP: &str = include_str!("asm/group.s");
const LOCAL: &str = include_str!("asm/local.s");
const POSITION: &str = include_str!("asm/position.s");
const END: &str = include_str!("asm/end.s");
const DESCRIPTOR_TEXT: &str = include_str!("asm/descriptor.s");

/// The chunk that the host fills in.
pub const DESCRIPTOR: &str = "descriptor";
/// The name under which the library calls the kernel.
pub const KERNEL: &str = "runtime.kernel";
/// The name under which the library passes the argument block.
pub const ARGUMENTS: &str = "runtime.arguments";
/// The label of the split that holds surplus lanes back from the kernel.
pub const OUTER_SPLIT: &str = "hold_back";
/// The label behind it, where those lanes go on.
pub const HELD_BACK: &str = "held_back";

/// The labels behind calls of the kernel, of which each form of the library has some.
pub const RETURNS: [&str; 5] =
    ["line_returned", "volume_returned", "remainder_end", "row_end", "group_end"];

/// How work-items are distributed to warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// In chunks of a warp's lanes.
    Chunks,
    /// The same, but all lanes of a chunk are in one row of the grid. On machines with shared registers kernels that do not
    /// know of groups rely on it.
    Rows,
    /// In work-groups.
    Groups,
}

words! {
    /// The words of the launch descriptor. All are small enough that differences between them and
    /// work-item numbers have a sign.
    pub enum Descriptor {
        /// Warps to start on each core.
        Warps = "D_WARPS",
        /// Work-items of the grid, or its work-groups.
        Items = "D_ITEMS",
        /// Work-items in all chunks without surplus lanes.
        Full = "D_FULL",
        /// Work-items plus the surplus lanes of the last chunk; with work-groups, lanes that have work.
        Rounded = "D_ROUNDED",
        /// The distance in work-items from a warp's chunk to its next on machines with few registers, or in work-groups from a place's group to
        /// its next.
        Stride = "D_STRIDE",
        /// The base-2 logarithm of the size of a lane's stack.
        StackShift = "D_STACK_SHIFT",
        /// The address of the first lane's stack.
        Stacks = "D_STACKS",
        /// The offset from the base of a warp's first lane's stack to its first stack pointer.
        StackTop = "D_STACK_TOP",
        /// By how many bytes that offset is smaller for each lane of a warp than for the one before.
        StackSkew = "D_STACK_SKEW",
        /// Whether the grid has more than one dimension.
        Spatial = "D_SPATIAL",
        /// The offset from the base of a lane's stack to the stack's limit.
        StackLimit = "D_STACK_LIMIT",
        /// The address of the kernel.
        Kernel = "D_KERNEL",
        /// Warps of a work-group.
        GroupWarps = "D_GROUP_WARPS",
        /// Work-groups that a core runs at a time.
        CoreGroups = "D_CORE_GROUPS",
        /// Bytes from the memory of a work-group to that of the next.
        GroupBytes = "D_GROUP_BYTES",
        /// The address of the memory of the first work-group.
        GroupSpace = "D_GROUP_SPACE",
    }
    // Walks without groups use their words otherwise.
    also {
        /// The word with the length of a row with its surplus lanes, in a walk by rows.
        ROW = GroupWarps = "D_ROW",
        /// The word with the work-items of each warp's run, or those but a chunk.
        RUN = CoreGroups = "D_RUN",
        /// The word with the number of lanes, in all warps, that have a chunk more.
        LONGER = GroupBytes = "D_LONGER",
    }
}

/// What a kernel takes of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How its work-items are distributed.
    pub walk: Walk,
    /// Whether its code takes the [lock](harp_isa::abi::Lock).
    pub locks: bool,
}

/// How far away the kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A call's immediate holds the distance.
    Near,
    /// The descriptor has the address.
    Far,
}

/// The call of the kernel, as written in the text.
const CALL: &str = "        jali %ra, runtime.kernel\n";
/// The same call over any distance. `%r3` is free at this point.
const FAR_CALL: &str =
    "        ldi %r3, descriptor\n        ld %r3, %r3, D_KERNEL\n        jalr %ra, %r3\n";

/// What kernels get in shared registers beside the lanes' own, on machines that have so many.
const SHARED_ARGUMENTS: &str = "        ori %s0, %r0, #0\n";
const SHARED_POSITION: &str = "        ori %s1, %r1, #0\n";

/// `%item` := the next work-item of a lane, `%r2` := its distance from the end.
const NEXT: &str = "\
        ldi %r3, descriptor
        ld %r2, %r3, D_STRIDE
        add %item, %item, %r2
        ld %r2, %r3, D_ROUNDED
        sub %r2, %item, %r2
";
/// The same in a run.
const NEXT_WIDE: &str = "        add %item, %item, %stride\n        sub %r2, %item, %end\n";

/// Assembles a form of the runtime library for `arch`, for a kernel at a distance of `reach`.
pub fn assemble(arch: ArchId, form: Form, reach: Reach) -> Object {
    let registers = Registers::choose(arch);
    let lanes = if arch.has_extension() { FIND } else { CLONE };
    let boot = with_lane(BOOT, "%fp").replace("\nLANES\n", &format!("\n{lanes}"));
    let walk = match form.walk {
        Walk::Chunks => chunks(registers.wide, VOLUME),
        Walk::Rows => chunks(registers.wide, ROWS),
        Walk::Groups => [&groups(registers.wide), END].concat(),
    };
    let mut text = [&boot, &walk, DESCRIPTOR_TEXT].concat();
    if form.locks {
        text.push_str(LOCK);
    }
    let mut source = registers.name_in(&text).replace(CALL, &call(arch, form.walk));
    if reach == Reach::Far {
        source = source.replace(CALL, FAR_CALL);
    }
    harp_isa::assemble(&source, arch, &definitions(arch))
        .expect("the library's text is right for every machine")
}

/// The call of the kernel, with what it gets in shared registers.
fn call(arch: ArchId, walk: Walk) -> String {
    let mut text = String::new();
    if KernelEntry::shared_arguments(arch).is_some() {
        text += SHARED_ARGUMENTS;
    }
    if walk != Walk::Groups && KernelEntry::shared_position(arch).is_some() {
        text += SHARED_POSITION;
    }
    text + CALL
}

/// What walks over several dimensions do with `%r2`, a work-item's number divided by the extent of the first one: they store
/// its positions in the others. `%r0` is the argument block.
const OUTER: &str = "\
        ld %r0, %r0, A_EXTENT_Y
        mod %r3, %r2, %r0
        st %r3, %fp, L_Y
        div %r2, %r2, %r0
        st %r2, %fp, L_Z
        ldi %r0, runtime.arguments
";

/// A walk in chunks, with this walk over grids of several dimensions.
fn chunks(wide: bool, volume: &str) -> String {
    let (lines, next) = match wide {
        true => ([RUNS, LINE_WIDE], NEXT_WIDE),
        false => (["", LINE], NEXT),
    };
    let volume = volume.replace("OUTER\n", OUTER).replace("NEXT\n", next);
    [&lines.concat(), CHUNKS, END, &volume].concat()
}

/// The walk over work-groups, with texts instantiated for each dimension. Where there are registers, what it needs of the
/// warp's group and of each lane stays in them: in a lane's memory each word has a cache line of the host for itself.
fn groups(wide: bool) -> String {
    let [group, local] = [["%group", "L_GROUP"], ["%local", "L_LOCAL_X"]]
        .map(|[to, from]| format!("        ld {to}, %fp, {from}\n"));
    let kept = [("KEEP_LOCAL\n", &*local), ("FIND_LOCAL\n", ""), ("FIND_GROUP\n", "")];
    let found = [("KEEP_LOCAL\n", ""), ("FIND_LOCAL\n", &*local), ("FIND_GROUP\n", &*group)];
    let mut text = GROUPS.to_owned();
    for (name, line) in if wide { kept } else { found } {
        text = text.replace(name, line);
    }
    for dimension in ["X", "Y", "Z"] {
        for (name, part) in [("GROUP", GROUP), ("LOCAL", LOCAL), ("POSITION", POSITION)] {
            let part = part.replace("_DIM", &format!("_{dimension}"));
            text = text.replace(&format!("\n{name}_{dimension}\n"), &format!("\n{part}"));
        }
    }
    text
}

/// The constants of the assembly text: all offsets in bytes.
fn definitions(arch: ArchId) -> Vec<(&'static str, i64)> {
    let word = arch.word();
    let lane = |field: LaneField| i64::from(field.offset(word));
    let group = |field: GroupField| i64::from(field.offset(word));
    let mut definitions = lane_definitions(word).to_vec();
    definitions.extend([
        ("HALF_WORD", i64::from(word.bits() / 2)),
        ("L_GROUP", lane(LaneField::Group)),
        ("L_LOCAL_INDEX", lane(LaneField::LocalIndex)),
        ("L_LOCAL_X", lane(LaneField::LocalIdX)),
        ("L_LOCAL_Y", lane(LaneField::LocalIdY)),
        ("L_LOCAL_Z", lane(LaneField::LocalIdZ)),
        ("G_ID_X", group(GroupField::IdX)),
        ("G_ID_Y", group(GroupField::IdY)),
        ("G_ID_Z", group(GroupField::IdZ)),
        ("G_SIZE_X", group(GroupField::SizeX)),
        ("G_SIZE_Y", group(GroupField::SizeY)),
        ("G_SIZE_Z", group(GroupField::SizeZ)),
        ("G_BARRIER", group(GroupField::Barrier)),
        ("G_BARRIER_WARPS", group(GroupField::BarrierWarps)),
        ("G_MEMORY", group(GroupField::Memory)),
        ("G_BYTES", GroupField::block_bytes(word).into()),
        ("D_COUNT", Descriptor::COUNT as i64),
    ]);
    let dimensions = [
        ["A_EXTENT_X", "A_GROUP_X", "A_COUNT_X"],
        ["A_EXTENT_Y", "A_GROUP_Y", "A_COUNT_Y"],
        ["A_EXTENT_Z", "A_GROUP_Z", "A_COUNT_Z"],
    ];
    for (dim, [extent, group, count]) in (0..).zip(dimensions) {
        definitions.extend([
            (extent, i64::from(ArgumentBlock::grid_extent(dim, word))),
            (group, i64::from(ArgumentBlock::group_extent(dim, word))),
            (count, i64::from(ArgumentBlock::group_count(dim, word))),
        ]);
    }
    definitions.extend(lock_definitions(word));
    definitions.extend(Descriptor::definitions(word));
    definitions
}

/// The registers beyond `%r0` to `%r3`, `%fp`, `%sp` and `%ra` that the text names.
struct Registers {
    /// The callee-saved register below `%fp`; the next two below it are `%stride` and `%end`, or `%group` and `%local` in
    /// walks over work-groups.
    item: u8,
    /// Whether these two are callee-saved as well.
    wide: bool,
}

impl Registers {
    fn choose(arch: ArchId) -> Registers {
        let item = arch.gprs() - 4;
        Registers { item, wide: item - 2 >= arch.gprs() / 2 }
    }

    fn name_in(&self, text: &str) -> String {
        let text = text.replace("%item", &format!("%r{}", self.item));
        if !self.wide {
            return text.replace("%group", "%ra").replace("%local", "%r1");
        }
        let [first, second] = [1, 2].map(|below| format!("%r{}", self.item - below));
        let text = text.replace("%stride", &first).replace("%group", &first);
        text.replace("%end", &second).replace("%local", &second)
    }
}

/// The registers that lanes may read behind [`HELD_BACK`], or where the kernel has returned, before they write them: what a
/// walk over the grid keeps in callee-saved ones, and all that lanes share.
pub fn kept_registers(arch: ArchId) -> Vec<Gpr> {
    let Registers { item, wide } = Registers::choose(arch);
    let first = if wide { item - 2 } else { item };
    let roles = RegisterRoles::new(arch);
    let shared = arch.gprs()..arch.all_gprs();
    let own = (first..=item).chain(shared).map(Gpr::new);
    own.chain([roles.frame_pointer(), roles.stack_pointer()]).collect()
}

#[cfg(test)]
mod tests {
    use harp_isa::{Instruction, Op, Opcode, OpcodeFlags, Operand, Permissions, disassemble, link};

    use super::*;

    /// Machines of every word size, encoding and width of immediates, without the extension.
    fn machines() -> impl Iterator<Item = ArchId> {
        let gprs = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 63, 64];
        let preds = [2, 3, 4, 8, 16, 32, 64];
        ["4w", "8w", "4b", "8b"]
            .into_iter()
            .flat_map(move |kind| gprs.map(|gprs| (kind, gprs)))
            .flat_map(move |(kind, gprs)| preds.map(|preds| format!("{kind}{gprs}/{preds}/4/4")))
            // Some of them have more predicates than the word encoding can name.
            .filter_map(|id| id.parse().ok())
    }

    /// The library's code with two empty neighbours, linked, instruction by instruction.
    fn code(arch: ArchId, form: Form, reach: Reach) -> Vec<(u64, Instruction)> {
        let rest = ".perm r\n.global\nruntime.arguments: .space 9\n\
                    .perm x\n.global\nruntime.kernel: jmpr %ra\n";
        let rest = harp_isa::assemble(rest, arch, &[]).unwrap();
        let image = link(&[&assemble(arch, form, reach), &rest], 0).unwrap();
        let is_code = |permissions: Permissions| permissions.contains(Permissions::EXECUTE);
        let sections = image.sections.iter().filter(|section| is_code(section.permissions));
        sections
            .flat_map(|section| {
                let (start, size) = (section.address as usize, section.size as usize);
                disassemble(&image.bytes[start..start + size], section.address, arch)
            })
            .map(|(address, instruction)| (address, instruction.unwrap()))
            .collect()
    }

    /// All forms of the library.
    fn forms() -> impl Iterator<Item = (Form, Reach)> {
        let walks = [Walk::Chunks, Walk::Rows, Walk::Groups].into_iter();
        let forms = walks.flat_map(|walk| [false, true].map(|locks| Form { walk, locks }));
        forms.flat_map(|form| [Reach::Near, Reach::Far].map(|reach| (form, reach)))
    }

    /// The code of all forms of the library.
    fn all(arch: ArchId) -> Vec<(u64, Instruction)> {
        forms().flat_map(|(form, reach)| code(arch, form, reach)).collect()
    }

    #[test]
    fn only_base_instructions_are_used() {
        let mut seen = 0;
        for arch in machines() {
            for (address, instruction) in all(arch) {
                let opcode = instruction.op.opcode();
                assert!(!opcode.is_extension(), "{arch} {address:#x}: {opcode:?}");
                let privileged = opcode.flags().contains(OpcodeFlags::PRIVILEGED);
                assert!(!privileged, "{arch} {address:#x}: {opcode:?} runs in user mode");
                seen += 1;
            }
        }
        assert!(seen > 10_000);
    }

    /// The forms that the original emulator computes on wider integers than the machine's words.
    #[test]
    fn no_form_is_used_that_machines_disagree_on() {
        for arch in machines() {
            for (address, Instruction { op, .. }) in all(arch) {
                let mut immediate = None;
                op.for_each_operand(|operand| {
                    if let Operand::Imm(value) = operand {
                        immediate = Some(value);
                    }
                });
                let bad = match (op.opcode(), immediate) {
                    (Opcode::Ori | Opcode::Xori | Opcode::Divi | Opcode::Modi, Some(i)) => i < 0,
                    (Opcode::Shli | Opcode::Shri, Some(i)) => {
                        !(0..arch.word().bits().into()).contains(&i)
                    }
                    _ => false,
                };
                assert!(!bad, "{arch} {address:#x}: {op:?}");
            }
        }
    }

    /// One split in the library, by rows one for lines and one for rows; it comes after the lanes have been activated.
    #[test]
    fn splits_are_reached_with_all_lanes() {
        for (arch, (form, reach)) in
            machines().flat_map(|arch| forms().map(move |form| (arch, form)))
        {
            let code = code(arch, form, reach);
            let places = |wanted: Opcode| {
                let found = code.iter().filter(move |(_, i)| i.op.opcode() == wanted);
                found.map(|(address, _)| *address).collect::<Vec<_>>()
            };
            let (splits, joins) = (places(Opcode::Split), places(Opcode::Join));
            let activation = places(Opcode::Jalis);
            let count = if form.walk == Walk::Rows { 2 } else { 1 };
            assert_eq!((splits.len(), joins.len(), activation.len()), (count, count, 1), "{arch}");
            assert!(activation[0] < splits[0]);
            let leaves_early = |op: &Op| matches!(op, Op::Jmpi { rel } if *rel > (splits[0] - activation[0]).cast_signed());
            let before = code.iter().filter(|(address, _)| *address < activation[0]);
            assert!(!before.into_iter().any(|(_, i)| leaves_early(&i.op)), "{arch}");
        }
    }
}
