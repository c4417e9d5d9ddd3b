//! Runs that are stopped from outside.

use std::thread;
use std::time::Duration;

use harp_emu::{CancelToken, Machine, MachineConfig, Memory, Schedule, TrapKind, WarpStatus};
use harp_isa::{ArchId, Op};

use crate::common::*;

/// A machine's memory with a program that never ends.
fn endless(arch: ArchId) -> Memory {
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &[Op::Jmpi { rel: -4 }.into()])).unwrap();
    memory
}

fn configs() -> Vec<MachineConfig> {
    let arch = "4w16/8/4/4".parse().unwrap();
    let quanta = [Schedule::Step, Schedule::default(), Schedule::Seeded(7)];
    // Many cores are kept differently from few.
    let both = |schedule| {
        [1, 100].map(|cores| MachineConfig { schedule, cores, ..MachineConfig::new(arch) })
    };
    quanta.into_iter().flat_map(both).collect()
}

#[test]
fn a_token_that_was_cancelled_before_stops_the_run_where_it_begins() {
    for config in configs() {
        let memory = endless(config.arch);
        let mut machine = Machine::new(config.clone(), &memory).unwrap();
        let token = CancelToken::new();
        token.cancel();
        machine.set_cancel_token(token.clone());
        let trap = machine.run().unwrap_err();
        assert_eq!((&trap.kind, trap.core, trap.warp), (&TrapKind::Cancelled, 0, 0), "{config:?}");
        assert_eq!((trap.pc, trap.lanes), (0, 1));
        // Then it may run again, with another program.
        memory.write(0, &assemble(config.arch, &[halt()])).unwrap();
        machine.reset();
        token.reset();
        assert!(!token.is_cancelled());
        machine.run().unwrap();
        assert_eq!(machine.warp(0, 0).unwrap().status(), WarpStatus::Stopped);
    }
}

#[test]
fn another_thread_cancels() {
    for config in configs() {
        let memory = endless(config.arch);
        let mut machine = Machine::new(config, &memory).unwrap();
        let token = CancelToken::new();
        machine.set_cancel_token(token.clone());
        let trap = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(3));
                token.cancel();
            });
            machine.run().unwrap_err()
        });
        assert_eq!(trap.kind, TrapKind::Cancelled);
        assert!(machine.stats().issued() > 0);
    }
}

#[test]
fn time_is_limited() {
    for config in configs() {
        let limit = Duration::from_millis(2);
        let memory = endless(config.arch);
        let config = MachineConfig { time_limit: Some(limit), ..config };
        let mut machine = Machine::new(config, &memory).unwrap();
        assert_eq!(machine.run().unwrap_err().kind, TrapKind::TimeLimit { limit });
        // What ends in time is not stopped.
        memory.write(0, &assemble(machine.config().arch, &[halt()])).unwrap();
        machine.reset();
        machine.run().unwrap();
    }
}
