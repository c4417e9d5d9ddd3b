//! The runtime library: boot code and grid walker, assembled for one machine.
//!
//! The text lies in `asm/` and uses base instructions only. It assumes that it is linked first, at
//! address 0, followed by a chunk `runtime.arguments` and one `runtime.kernel`; that the host fills
//! in the [descriptor](Descriptor) before the run; and that the kernel keeps the calling
//! convention of [`harp_isa::abi`]. It guarantees that each work-item of the grid runs the kernel
//! once, with its position where [`harp_isa::abi`] has it, and that surplus lanes of the last chunk do
//! not run it.
//!
//! Work-items are dealt out in chunks of as many as a warp has lanes: of `w` warps in all cores,
//! warp `i` takes chunks `i`, `i + w`, `i + 2w` and so on.

use harp_isa::abi::{ArgumentBlock, LaneField};
use harp_isa::{ArchId, Object};

const BOOT: &str = include_str!("asm/boot.s");
const LINE: &str = include_str!("asm/line.s");
const LINE_WIDE: &str = include_str!("asm/line_wide.s");
const FINISH: &str = include_str!("asm/finish.s");

/// The chunk that the host fills in.
pub(crate) const DESCRIPTOR: &str = "descriptor";
/// The name under which the library calls the kernel.
pub(crate) const KERNEL: &str = "runtime.kernel";
/// The name under which the library passes the argument block.
pub(crate) const ARGUMENTS: &str = "runtime.arguments";

/// The words of the launch descriptor. All are small enough that differences between them and
/// work-item numbers have a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// Warps to start on each core.
    Warps,
    /// Work-items of the grid.
    Items,
    /// Work-items up to the last chunk without surplus lanes.
    Full,
    /// Work-items with the surplus lanes of the last chunk.
    Rounded,
    /// Work-items from a warp's chunk to its next.
    Stride,
    /// The base-2 logarithm of the size of a lane's stack.
    StackShift,
    /// The address of the first lane's stack.
    Stacks,
    /// The offset from the base of a lane's stack to its first stack pointer.
    StackTop,
    /// Whether the grid has more than one dimension.
    Spatial,
    /// The offset from the base of a lane's stack to the stack's limit.
    StackLimit,
    /// The address of the kernel.
    Kernel,
}

impl Descriptor {
    /// Every word in order, with its name in the assembly text.
    const ALL: [(Descriptor, &'static str); 11] = [
        (Descriptor::Warps, "D_WARPS"),
        (Descriptor::Items, "D_ITEMS"),
        (Descriptor::Full, "D_FULL"),
        (Descriptor::Rounded, "D_ROUNDED"),
        (Descriptor::Stride, "D_STRIDE"),
        (Descriptor::StackShift, "D_STACK_SHIFT"),
        (Descriptor::Stacks, "D_STACKS"),
        (Descriptor::StackTop, "D_STACK_TOP"),
        (Descriptor::Spatial, "D_SPATIAL"),
        (Descriptor::StackLimit, "D_STACK_LIMIT"),
        (Descriptor::Kernel, "D_KERNEL"),
    ];

    /// How many words there are.
    pub(crate) const COUNT: usize = Self::ALL.len();
}

/// How far away the kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A call's immediate holds the distance.
    Near,
    /// The descriptor has the address.
    Far,
}

/// The call of the kernel as it stands in the text.
const CALL: &str = "        jali %ra, runtime.kernel\n";
/// The same over any distance. Where it stands %r3 is free.
const FAR_CALL: &str =
    "        ldi %r3, descriptor\n        ld %r3, %r3, D_KERNEL\n        jalr %ra, %r3\n";

/// Assembles the runtime library for `arch`, to be followed by a kernel at such a distance.
pub(crate) fn assemble(arch: ArchId, reach: Reach) -> Object {
    let registers = Registers::choose(arch);
    let line = if registers.wide { LINE_WIDE } else { LINE };
    let mut source = registers.name_in(&[BOOT, line, FINISH].concat());
    if reach == Reach::Far {
        source = source.replace(CALL, FAR_CALL);
    }
    harp_isa::assemble(&source, arch, &definitions(arch))
        .expect("the library's text is right for every machine")
}

/// The constants of the assembly text: all offsets in bytes.
fn definitions(arch: ArchId) -> Vec<(&'static str, i64)> {
    let word = arch.word();
    let field = |field: LaneField| i64::from(field.offset(word));
    let mut definitions = vec![
        ("HALF_WORD", i64::from(word.bits() / 2)),
        ("L_LANE", field(LaneField::Lane)),
        ("L_WARP", field(LaneField::Warp)),
        ("L_CORE", field(LaneField::Core)),
        ("L_Y", field(LaneField::GlobalIdY)),
        ("L_Z", field(LaneField::GlobalIdZ)),
        ("L_STACK_LIMIT", field(LaneField::StackLimit)),
        ("L_SCRATCH_ADDRESS", field(LaneField::ScratchAddress)),
        ("L_SCRATCH", field(LaneField::ScratchWord)),
        ("A_EXTENT_X", i64::from(ArgumentBlock::grid_extent(0, word))),
        ("A_EXTENT_Y", i64::from(ArgumentBlock::grid_extent(1, word))),
        ("D_COUNT", Descriptor::COUNT as i64),
    ];
    definitions.extend(
        Descriptor::ALL
            .iter()
            .map(|&(descriptor, name)| (name, descriptor as i64 * i64::from(word.bytes()))),
    );
    definitions
}

/// The registers beyond `%r0` to `%r3`, `%fp`, `%sp` and `%ra` that the text names.
struct Registers {
    /// The callee-saved register below `%fp`; the next two below it are `%stride` and `%full`.
    item: u8,
    /// Whether the two are callee-saved as well.
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
            return text;
        }
        text.replace("%stride", &format!("%r{}", self.item - 1))
            .replace("%full", &format!("%r{}", self.item - 2))
    }
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
    fn code(arch: ArchId, reach: Reach) -> Vec<(u64, Instruction)> {
        let rest = ".perm r\n.global\nruntime.arguments: .space 3\n\
                    .perm x\n.global\nruntime.kernel: jmpr %ra\n";
        let rest = harp_isa::assemble(rest, arch, &[]).unwrap();
        let image = link(&[&assemble(arch, reach), &rest], 0).unwrap();
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

    /// The code of both forms of the library.
    fn both(arch: ArchId) -> Vec<(u64, Instruction)> {
        let mut all = code(arch, Reach::Near);
        all.extend(code(arch, Reach::Far));
        all
    }

    #[test]
    fn descriptor_words_stand_in_their_order() {
        for (index, (descriptor, _)) in Descriptor::ALL.iter().enumerate() {
            assert_eq!(*descriptor as usize, index);
        }
    }

    #[test]
    fn only_base_instructions_are_used() {
        let mut seen = 0;
        for arch in machines() {
            for (address, instruction) in both(arch) {
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
            for (address, Instruction { op, .. }) in both(arch) {
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

    /// One split in the library, and it comes after the lanes have been activated.
    #[test]
    fn the_only_split_is_reached_with_all_lanes() {
        let machines = machines().flat_map(|arch| [Reach::Near, Reach::Far].map(|r| (arch, r)));
        for (arch, reach) in machines {
            let code = code(arch, reach);
            let places = |wanted: Opcode| {
                let found = code.iter().filter(move |(_, i)| i.op.opcode() == wanted);
                found.map(|(address, _)| *address).collect::<Vec<_>>()
            };
            let (splits, joins) = (places(Opcode::Split), places(Opcode::Join));
            let activation = places(Opcode::Jalis);
            assert_eq!((splits.len(), joins.len(), activation.len()), (1, 1, 1), "{arch}");
            assert!(activation[0] < splits[0]);
            let leaves_early = |op: &Op| matches!(op, Op::Jmpi { rel } if *rel > (splits[0] - activation[0]).cast_signed());
            let before = code.iter().filter(|(address, _)| *address < activation[0]);
            assert!(!before.into_iter().any(|(_, i)| leaves_early(&i.op)), "{arch}");
        }
    }
}
