//! Many launches of all kinds from several host threads: results stay right, and memory stays where it is.
//!
//! `HARP_SOAK=100000` makes as many launches, 10,000 at least; `HARP_DEVICES=10000` as many devices with host code.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, thread};

use harp_runtime::prelude::*;
use harp_runtime::{Checks, Queue, QueueError, TrapKind};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ARCH: &str = "4w32/16/8/8+x";
const THREADS: u64 = 4;
/// Launches after which memory grows no more.
const WARM: u64 = 10_000;
/// Looks at what is allocated at the end.
const LOOKS: u64 = 10;
/// Tests run one after the other: the process has one size.
static ALONE: Mutex<()> = Mutex::new(());

/// `data[i] = (data[i] + i) / divisor`
fn kernel(report_accesses: bool) -> Arc<Kernel> {
    let mut source = KernelSource::new("soak", ARCH.parse().unwrap());
    let mut b = KernelBuilder::new(&mut source);
    let (data, divisor, i) = (b.buffer::<u32>("data"), b.scalar::<u32>("divisor"), b.global_id(0));
    let value = b.load(data, i);
    let value = b.ins().iadd(value, i);
    let value = b.ins().udiv(value, divisor);
    b.store(data, i, value);
    b.return_();
    b.finalize().unwrap();
    let options = CompileOptions { report_accesses, ..CompileOptions::default() };
    Arc::new(source.compile(&options).unwrap())
}

/// Random numbers: a linear congruence, the upper bits of which are good enough here.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What is allocated and not freed. Of several threads, it says something while nothing runs only.
#[derive(Debug)]
struct Living {
    blocks: usize,
    bytes: usize,
}

impl Living {
    fn now() -> Living {
        let stats = ALLOCATOR.stats();
        Living {
            blocks: stats.allocations - stats.deallocations,
            bytes: stats.bytes_allocated - stats.bytes_deallocated,
        }
    }

    /// As much is allocated now, but for what tables and thread-local caches grow by: far less than a block for each
    /// launch. A recording or a translation that goes on just now is no leak: more launches are made until it has ended.
    fn assert_is_all(&self, when: &str, mut make_more: impl FnMut()) {
        for _ in 0..LOOKS {
            let now = Living::now();
            if now.blocks <= self.blocks + 500 && now.bytes <= self.bytes + (64 << 10) {
                return;
            }
            make_more();
        }
        panic!("{self:?} after some {when}, {:?} at the end", Living::now());
    }
}

/// Pages of memory that the process has, those of host code among them; none where the host does not say.
#[cfg(feature = "native")]
fn resident_pages() -> Option<u64> {
    std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()
}

/// One launch: direct, in a queue whose events are or are not waited for, checked, or with a trap.
fn launch(device: &Device, queue: &Queue, kernels: &[Arc<Kernel>; 2], numbers: &mut Numbers) {
    let len = 1 + numbers.below(300) as usize;
    let divisor = 1 + numbers.below(9) as u32;
    let start: Vec<u32> = (0..len).map(|_| numbers.below(1 << 20) as u32).collect();
    let expected = |(i, &value): (usize, &u32)| (value + i as u32) / divisor;
    let expected: Vec<u32> = start.iter().enumerate().map(expected).collect();
    let all = device.buffer_zeroed::<u32>(len + 7).unwrap().named("part");
    let data = all.view(3..len + 3).unwrap();
    device.write(&data, &start).unwrap();
    let (grid, args) = (LaunchConfig::grid_1d(len), [Arg::from(&data), divisor.into()]);
    match numbers.below(6) {
        0 => {
            let event = queue.launch(&kernels[0], grid, &args);
            let result = queue.read(&data);
            drop((event, all, args));
            assert_eq!(result.wait().unwrap(), expected);
            return;
        }
        1 => {
            drop(queue.launch(&kernels[0], grid, &args));
            drop((all, data));
            return;
        }
        2 => {
            let error = device.launch(&kernels[0], grid, &[args[0].clone(), 0_u32.into()]);
            let Err(LaunchError::Trap(trap)) = error else { panic!("a division by zero") };
            assert_eq!(trap.trap.kind, TrapKind::DivideByZero);
            return;
        }
        3 => {
            let config = grid.with_checks(Checks::all());
            device.launch(&kernels[1], config, &args).unwrap();
        }
        4 => {
            device.launch(&kernels[1], grid.with_groups_1d(1 + len / 8), &args).unwrap();
        }
        _ => {
            device.launch(&kernels[0], grid, &args).unwrap();
        }
    }
    assert_eq!(device.read(&data).unwrap(), expected);
}

/// Launches from several threads, until there were `launches`; what they started has ended then.
fn launch_from_threads(device: &Device, kernels: &[Arc<Kernel>; 2], launches: u64) {
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (device, kernels, done) = (device.clone(), &kernels, &done);
            scope.spawn(move || {
                let mut numbers = Numbers(seed);
                let mut queue = Queue::new(&device).unwrap();
                while done.fetch_add(1, Ordering::Relaxed) < launches {
                    launch(&device, &queue, kernels, &mut numbers);
                    if numbers.below(100) == 0 {
                        // A failure that nobody waits for is told here.
                        queue.launch(&kernels[0], LaunchConfig::grid_1d(1), &[]);
                        assert!(matches!(queue.finish(), Err(QueueError::Launch(_))));
                        queue = Queue::new(&device).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn memory_stays_flat_and_results_right() {
    let _alone = ALONE.lock();
    let launches = env::var("HARP_SOAK").map_or(30_000_u64, |text| text.parse().unwrap());
    let device = Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(ARCH.parse().unwrap()) });
    let device = device.unwrap();
    let kernels = [kernel(false), kernel(true)];
    launch_from_threads(&device, &kernels, WARM);
    let living = Living::now();
    launch_from_threads(&device, &kernels, launches.saturating_sub(WARM));
    living.assert_is_all("launches", || launch_from_threads(&device, &kernels, WARM / LOOKS));
    // All of the device's memory is free again, but what is kept for kernels.
    let all = (256 << 20) - (16 << 20);
    assert!(device.buffer_uninitialized::<u8>(all).is_ok());
}

/// Pages by which the allocator may do otherwise from one moment to the next, in a process of a few thousand.
#[cfg(feature = "native")]
const SLACK: u64 = 400;

/// A launch in host code, on a device of its own.
#[cfg(feature = "native")]
fn launch_on_new_device(kernel: &Kernel, number: u32) {
    let config =
        DeviceConfig { tier: harp_runtime::Tier::Native, ..DeviceConfig::new(kernel.arch()) };
    let device = Device::new(config).unwrap();
    let data = device.buffer_from_slice(&[number; 100]).unwrap();
    let args = [Arg::from(&data), 3_u32.into()];
    device.launch(kernel, LaunchConfig::grid_1d(100), &args).unwrap();
    let expected: Vec<u32> = (0..100).map(|i| (number + i) / 3).collect();
    assert_eq!(device.read(&data).unwrap(), expected);
    let regions = device.tier_stats().map(|stats| stats.regions);
    assert!(regions.is_none_or(|regions| regions > 0), "nothing was translated");
}

/// Host code goes with its device.
#[test]
#[cfg(feature = "native")]
fn devices_with_host_code_leave_nothing_behind() {
    let _alone = ALONE.lock();
    let devices = env::var("HARP_DEVICES").map_or(200, |text| text.parse().unwrap());
    let kernel = kernel(false);
    (0..devices / 3).for_each(|number| launch_on_new_device(&kernel, number));
    let (living, early) = (Living::now(), resident_pages().unwrap_or(0));
    (devices / 3..devices).for_each(|number| launch_on_new_device(&kernel, number));
    living.assert_is_all("devices", || launch_on_new_device(&kernel, 0));
    let late = resident_pages().unwrap_or(0);
    assert!(late <= early + SLACK, "{early} pages after some devices, {late} at the end");
}
