//! Warps that run ahead of others in loops, and must not have, when something happens: all that there is to see is
//! what one round after the other gives.

use std::fmt::Write;

use harp_emu::{MachineConfig, Spare};
use harp_isa::ArchId;
use proptest::prelude::*;

use crate::common::rounds::*;
use crate::common::{MEMORY, assemble_text};

/// Each warp works for a while and then does something, several times.
#[derive(Clone, Debug)]
struct Part {
    work: Work,
    rounds: u32,
    event: Event,
}

/// The body of a loop.
#[derive(Clone, Copy, Debug)]
enum Work {
    Short,
    /// Divides by a register, which may trap.
    Division,
    /// Calls and returns.
    Call,
    /// Lanes come and go.
    Lanes,
    /// Loads now and then what others store.
    Sharing,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    Store,
    Load,
    Print,
    Barrier,
    Spawn,
    Trap,
    DivisionByZero,
    /// Lanes disagree on the loop's branch.
    Disagreement,
    /// Replaces an instruction in the loop of another warp.
    ChangesCode(u8),
    Split,
    Halt,
}

fn works() -> impl Strategy<Value = Work> {
    use Work::{Call, Division, Lanes, Sharing, Short};
    prop::sample::select(vec![Short, Short, Division, Call, Lanes, Sharing])
}

fn events() -> impl Strategy<Value = Event> {
    use Event::{
        Barrier, ChangesCode, Disagreement, DivisionByZero, Halt, Load, Nothing, Print, Spawn,
        Split, Store, Trap,
    };
    prop_oneof![
        prop::sample::select(vec![Nothing, Store, Load, Print, Barrier, Spawn, Split, Halt]),
        prop::sample::select(vec![Trap, DivisionByZero, Disagreement]),
        (0..4u8).prop_map(ChangesCode),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (works(), 1..300u32, events()).prop_map(|(work, rounds, event)| Part {
        work,
        rounds,
        event,
    });
    prop::collection::vec(part, 1..4)
}

/// The program in which each warp does its parts.
fn program(warps: &[Vec<Part>], lanes: u8) -> String {
    let mut text =
        String::from(".entry\n.perm x\n.global\nstart:\n  ldi %r4, #0\n  ldi %r3, all\n");
    for number in 1..warps.len() {
        writeln!(text, "  ldi %r5, #{number}\n  wspawn %r4, %r3, %r5").unwrap();
    }
    text.push_str("all:\n");
    for number in 0..warps.len() {
        writeln!(text, "  subi %r5, %r4, #{number}\n  iszero @p1, %r5\n  @p1 ? jmpi warp{number}")
            .unwrap();
    }
    text.push_str("  halt\n");
    for (number, parts) in warps.iter().enumerate() {
        writeln!(text, "warp{number}:\n  ldi %r1, #{lanes}\n  jalis %r2, %r1, lanes{number}")
            .unwrap();
        writeln!(text, "  halt\nlanes{number}:\n  tid %r8").unwrap();
        for (index, part) in parts.iter().enumerate() {
            write_part(&mut text, part, &format!("{number}_{index}"));
        }
        text.push_str("  halt\n");
    }
    text.push_str("other:\n  addi %r7, %r7, #1000\n.perm rw\nshared:\n  .word 0\n");
    text
}

fn write_part(text: &mut String, part: &Part, name: &str) {
    writeln!(text, "  ldi %r6, #{}\nloop{name}:\nplace{name}:", part.rounds).unwrap();
    text.push_str("  addi %r7, %r7, #3\n  xor %r7, %r7, %r6\n");
    match part.work {
        Work::Short => {}
        Work::Division => text.push_str("  div %r9, %r7, %r6\n  mod %r7, %r9, %r6\n"),
        Work::Call => {
            writeln!(text, "  jali %r10, f{name}\n  jmpi g{name}\nf{name}:").unwrap();
            writeln!(text, "  muli %r7, %r7, #5\n  jmpr %r10\ng{name}:").unwrap();
        }
        Work::Lanes => {
            writeln!(text, "  andi %r9, %r6, #1\n  addi %r9, %r9, #1").unwrap();
            writeln!(text, "  jalis %r10, %r9, n{name}\n  jmpi m{name}\nn{name}:").unwrap();
            writeln!(text, "  addi %r7, %r7, #1\n  jmprt %r10\nm{name}:").unwrap();
        }
        Work::Sharing => {
            writeln!(text, "  andi %r9, %r6, #127\n  rtop @p2, %r9").unwrap();
            writeln!(text, "  @p2 ? jmpi s{name}\n  ldi %r9, shared\n  ld %r11, %r9, #0").unwrap();
            writeln!(text, "  add %r7, %r7, %r11\ns{name}:").unwrap();
        }
    }
    writeln!(text, "  subi %r6, %r6, #1\n  rtop @p1, %r6").unwrap();
    if matches!(part.event, Event::Disagreement) {
        // In the last round some lanes would go on.
        writeln!(text, "  or %r9, %r6, %r8\n  rtop @p1, %r9").unwrap();
    }
    writeln!(text, "  @p1 ? jmpi loop{name}").unwrap();
    match part.event {
        Event::Nothing | Event::Disagreement => {}
        Event::Store => text.push_str("  ldi %r9, shared\n  st %r7, %r9, #0\n"),
        Event::Load => text.push_str("  ldi %r9, shared\n  ld %r7, %r9, #0\n"),
        Event::Print => text.push_str("  ldi %r9, #1\n  shli %r9, %r9, #31\n  st %r4, %r9, #0\n"),
        Event::Barrier => text.push_str("  ldi %r9, #1\n  ldi %r11, #2\n  bar %r9, %r11\n"),
        Event::Spawn => text.push_str("  ldi %r9, all\n  wspawn %r4, %r9, %r4\n"),
        Event::Trap => text.push_str("  trap\n"),
        Event::DivisionByZero => text.push_str("  div %r9, %r7, %r6\n"),
        Event::ChangesCode(warp) => {
            writeln!(text, "  ldi %r9, other\n  ld %r11, %r9, #0").unwrap();
            writeln!(text, "  ldi %r9, place{warp}_0\n  st %r11, %r9, #0").unwrap();
        }
        Event::Split => {
            text.push_str("  rtop @p2, %r8\n  @p2 ? split\n  addi %r7, %r7, #9\n  join\n");
        }
        Event::Halt => text.push_str("  halt\n"),
    }
}

/// Compares the program's outcome wherever one of every `every` instructions is the last.
fn compare(arch: &str, warps: &[Vec<Part>], every: usize) -> Outcome {
    let arch: ArchId = arch.parse().unwrap();
    let image = assemble_text(arch, &program(warps, arch.lanes()));
    assert!((image.len() as u64) < MEMORY);
    compare_rounds(&MachineConfig { input: Vec::new(), ..round_config(arch) }, &image, every)
}

#[test]
fn whoever_stops_the_rounds_the_others_are_where_they_should_be() {
    let computes = |rounds| vec![Part { work: Work::Short, rounds, event: Event::Halt }];
    use Event::{ChangesCode, Disagreement, DivisionByZero, Spawn, Trap};
    for event in [Trap, DivisionByZero, Disagreement, ChangesCode(2), Spawn, Event::Barrier] {
        let mut warps = vec![computes(400); 4];
        warps[1] = vec![Part { work: Work::Short, rounds: 250, event }];
        let run = compare("4w16/8/4/4+x", &warps, 997);
        let traps = matches!(event, Trap | DivisionByZero | Disagreement | Event::Barrier);
        assert_eq!(run.trap.is_some(), traps, "{event:?}: {:?}", run.trap.map(|trap| trap.kind));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What a machine leaves behind changes nothing in the next one, whose code may be the same or not.
    #[test]
    fn machines_that_follow_others(
        arch in prop::sample::select(vec!["4w16/8/4/4+x", "8w16/8/16/4+x", "4b16/16/2/4+x"]),
        first in prop::collection::vec(parts(), 4),
        second in prop::collection::vec(parts(), 4),
        read_only in 0..MEMORY,
        // Some of the first machines end before they have started all warps.
        fuel in prop::sample::select(vec![5_u64, 100, 20_000]),
    ) {
        let arch: ArchId = arch.parse().unwrap();
        let images = [first, second].map(|warps| assemble_text(arch, &program(&warps, arch.lanes())));
        let read_only = [0, read_only % images[1].len() as u64, images[1].len() as u64];
        let mut spare: Option<Spare> = None;
        for read_only_below in read_only {
            // Each image's code comes back when its turn does.
            let mut codes = [None, None];
            for number in [0, 1, 0, 1] {
                let image = &images[number];
                let config = MachineConfig {
                    input: Vec::new(),
                    fuel: Some([fuel, 20_000][number]),
                    read_only_below,
                    ..round_config(arch)
                };
                if let Some(code) = codes[number].take() {
                    spare = spare.map(|spare| spare.with_code(code));
                }
                let (expected, _) = run_with(&config, image, None);
                for _ in 0..2 {
                    let (given, left) = run_with(&config, image, spare);
                    prop_assert_eq!(&given, &expected);
                    spare = Some(left);
                }
                codes[number] = spare.as_mut().map(Spare::take_code);
            }
        }
    }

    #[test]
    fn random_work_and_events(
        arch in prop::sample::select(vec!["4w16/8/4/4+x", "8w16/8/16/4+x", "4b16/16/2/4+x"]),
        warps in prop::collection::vec(parts(), 4),
    ) {
        compare(arch, &warps, 1499);
    }
}
