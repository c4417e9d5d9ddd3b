//! Kernels that go wrong: the error names what, where in the machine and where in the source.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_emu::TrapKind;
use harp_isa::ArchId;
use harp_jit::prelude::*;
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError, LaunchTrap, TrapSite};
use harp_tests::functions::checked;

const ARCHS: &[&str] = &["harp32", "harp64", "4w32/16/32/16+x", "8b16/16/4/2+x"];
/// Small: what a kernel reads beyond it must trap.
const MEMORY: u64 = 16 << 20;
/// Instructions after which a kernel that should end soon never will.
const FUEL: u64 = 100_000;

/// Builds a kernel with `body`, which gives the line of the call that is to blame, and launches it
/// over `items`; it must trap there.
fn trap_of(
    arch: ArchId,
    items: usize,
    args: &[Arg],
    body: impl FnOnce(&mut KernelBuilder<'_>) -> u32,
) -> LaunchTrap {
    let mut source = KernelSource::new("faulty", arch);
    let mut b = KernelBuilder::new(&mut source);
    let line = body(&mut b);
    b.finalize().unwrap();
    let options = checked();
    let kernel = source.compile(&options).unwrap();
    let mut config = DeviceConfig::new(arch);
    config.memory_bytes = MEMORY;
    let device = Device::new(config).unwrap();
    let launch = LaunchConfig::grid_1d(items).with_fuel(FUEL);
    let error = device.launch(&kernel, launch, args).unwrap_err();
    let text = error.to_string();
    let LaunchError::Trap(trap) = error else { panic!("{error}") };
    let place = trap.place.clone().unwrap_or_else(|| panic!("no place: {text}"));
    assert!(place.file.ends_with("traps.rs"), "{place}");
    assert_eq!(place.line, line, "{text}");
    assert!(text.contains(&format!("{place}")) && text.contains("faulty"), "{text}");
    let TrapSite::Kernel { offset } = trap.site else { panic!("{text}") };
    assert_eq!(kernel.place_at(offset), Some(&place));
    *trap
}

fn each_arch(check: impl Fn(ArchId)) {
    for arch in ARCHS {
        check(arch.parse().unwrap());
    }
}

#[test]
fn a_read_outside_of_memory() {
    each_arch(|arch| {
        let mut line = 0;
        let trap = trap_of(arch, 3, &[Arg::address(MEMORY - 8)], |b| {
            let data = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let index = b.ins().imul_imm_s(i, 4);
            line = line!() + 1;
            let value = b.load_elem(b.word_int(), data, index);
            b.store_elem(value, data, index);
            b.return_();
            line
        });
        let address = MEMORY - 8 + 4 * u64::from(arch.word().bytes());
        assert_eq!(trap.trap.kind, TrapKind::BadAddress { address, store: false });
        // Work-item 0 reads within memory, 1 and 2 do not.
        let expected = if arch.lanes() >= 3 { 0b110 } else { 0b10 };
        assert_eq!((trap.trap.warp, trap.trap.lanes), (0, expected));
    });
}

#[test]
fn a_write_outside_of_memory() {
    each_arch(|arch| {
        let trap = trap_of(arch, 1, &[Arg::address(MEMORY)], |b| {
            let data = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let line = line!() + 1;
            b.store_elem(i, data, i);
            b.return_();
            line
        });
        assert_eq!(trap.trap.kind, TrapKind::BadAddress { address: MEMORY, store: true });
        assert_eq!((trap.trap.core, trap.trap.warp, trap.trap.lanes), (0, 0, 1));
    });
}

#[test]
fn a_write_through_a_null_pointer() {
    each_arch(|arch| {
        let trap = trap_of(arch, 1, &[Arg::address(0)], |b| {
            let data = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let line = line!() + 1;
            b.store_elem(i, data, i);
            b.return_();
            line
        });
        let TrapKind::ReadOnly { address, limit } = trap.trap.kind else { panic!("{trap}") };
        assert!(address == 0 && limit > trap.trap.pc, "{trap}");
        assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 1));
    });
}

#[test]
fn a_division_by_zero() {
    each_arch(|arch| {
        for signed in [false, true] {
            let trap = trap_of(arch, 4, &[Arg::address(1 << 20)], |b| {
                let data = b.param(ParamType::Pointer);
                let i = b.global_id(0);
                let divisor = b.ins().iadd_imm_s(i, -2);
                let (line, quotient) = if signed {
                    (line!(), b.ins().sdiv(i, divisor))
                } else {
                    (line!(), b.ins().udiv(i, divisor))
                };
                b.store_elem(quotient, data, i);
                b.return_();
                line
            });
            assert_eq!(trap.trap.kind, TrapKind::DivideByZero);
            assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0b100));
        }
    });
}

#[test]
fn a_signed_division_that_overflows() {
    each_arch(|arch| {
        let trap = trap_of(arch, 2, &[Arg::address(1 << 20)], |b| {
            let data = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let word = b.word_int();
            let least = b.ins().iconst(word, 1);
            let least = b.ins().ishl_imm_u(least, i64::from(word.bits()) - 1);
            let divisor = b.ins().ineg(i);
            let divisor = b.ins().bor_imm_u(divisor, 1);
            let line = line!() + 1;
            let quotient = b.ins().sdiv(least, divisor);
            b.store_elem(quotient, data, i);
            b.return_();
            line
        });
        // Work-item 0 divides by 1, work-item 1 by -1.
        assert_eq!(trap.trap.kind, TrapKind::GuestTrap);
        assert_eq!(trap.trap_code.as_deref(), Some("int_ovf"));
        assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0b10));
    });
}

#[test]
fn a_kernel_that_never_ends() {
    each_arch(|arch| {
        let trap = trap_of(arch, 1, &[], |b| {
            let forever = b.create_block();
            let line = line!() + 1;
            b.ins().jump(forever, &[]);
            b.switch_to_block(forever);
            b.ins().jump(forever, &[]);
            // The loop is the second jump; both places are the kernel's.
            line + 2
        });
        assert_eq!(trap.trap.kind, TrapKind::OutOfFuel { limit: FUEL });
        assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 1));
    });
}

#[test]
fn a_divergent_branch_without_split() {
    each_arch(|arch| {
        let trap = trap_of(arch, 4, &[Arg::address(1 << 20)], |b| {
            let data = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let first = b.ins().icmp_imm_s(IntCC::UnsignedLessThan, i, 2);
            // Wrong: the lanes of a warp differ.
            let first = b.assume_uniform(first);
            let line = line!() + 1;
            b.if_then(first, |b| b.store_elem(i, data, i));
            b.return_();
            line
        });
        let TrapKind::DivergentBranch { opcode } = trap.trap.kind else { panic!("{trap}") };
        assert_eq!(opcode.mnemonic(), "jmpi");
        // Those that would jump: which side that is the code generator chooses.
        assert_eq!(trap.trap.warp, 0);
        assert!(matches!(trap.trap.lanes, 0b0011 | 0b1100), "{trap}");
    });
}

#[test]
fn an_explicit_trap_in_some_lanes() {
    each_arch(|arch| {
        let trap = trap_of(arch, 4, &[], |b| {
            let i = b.global_id(0);
            let last = b.ins().icmp_imm_s(IntCC::Equal, i, 3);
            let line = line!() + 1;
            b.ins().trapnz(last, TrapCode::unwrap_user(7));
            b.return_();
            line
        });
        assert_eq!(trap.trap.kind, TrapKind::GuestTrap);
        assert_eq!(trap.trap_code.as_deref(), Some("user7"));
        assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0b1000));
    });
}
