//! Queues, and devices that host threads share, over the public interface.

use std::sync::Arc;
use std::thread;

use harp_runtime::prelude::*;
use harp_runtime::{BufferError, Checks, Event, Queue, QueueError, TrapKind};

const MACHINES: [&str; 4] = ["harp32", "8b32/32/8/8+x", "4w32/16/32/16+x", "4b16/16/8/4"];

fn device(arch: &str) -> Device {
    Device::new(DeviceConfig::new(arch.parse().unwrap())).unwrap()
}

/// `data[i] = data[i] * factor + i` in 32 bits.
fn step(arch: ArchId) -> Arc<Kernel> {
    let mut source = KernelSource::new("step", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, factor) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
    let i = b.global_id(0);
    let value = b.load_elem(types::I32, data, i);
    let product = b.ins().imul(value, factor);
    let short = if b.word_int() == types::I32 { i } else { b.ins().ireduce(types::I32, i) };
    let sum = b.ins().iadd(product, short);
    b.store_elem(sum, data, i);
    b.return_();
    b.finalize().unwrap();
    Arc::new(source.compile(&CompileOptions::default()).unwrap())
}

fn stepped(values: &[u32], factors: &[u32]) -> Vec<u32> {
    let step = |value: u32, (i, factor): (u32, u32)| value.wrapping_mul(factor).wrapping_add(i);
    let all = |(i, &value): (usize, &u32)| {
        factors.iter().fold(value, |value, &factor| step(value, (i as u32, factor)))
    };
    values.iter().enumerate().map(all).collect()
}

#[test]
fn commands_run_in_order() {
    for arch in MACHINES {
        let device = device(arch);
        let kernel = step(device.arch());
        let queue = Queue::new(&device).unwrap();
        let (a, b) = (device.buffer_zeroed(100).unwrap(), device.buffer_zeroed(100).unwrap());
        queue.write(&a, vec![5_u32; 100]);
        for factor in [3_u32, 4, 5] {
            queue.launch(&kernel, LaunchConfig::grid_1d(100), &[Arg::from(&a), factor.into()]);
        }
        queue.copy(&a, &b);
        queue.fill(&a, 8);
        let (a, b) = (queue.read(&a), queue.read(&b));
        // The handles of the buffers are gone; the commands hold theirs.
        assert_eq!(a.wait().unwrap(), [8; 100], "{arch}");
        assert_eq!(b.wait().unwrap(), stepped(&[5; 100], &[3, 4, 5]), "{arch}");
        queue.finish().unwrap();
    }
}

#[test]
fn a_failure_is_told_by_its_event_and_once_by_finish() {
    let device = device("harp32");
    let kernel = step(device.arch());
    let queue = Queue::new(&device).unwrap();
    let data = device.buffer_zeroed::<u32>(4).unwrap().named("data");
    let grid = LaunchConfig::grid_1d(4);
    let launch = queue.launch(&kernel, grid, &[Arg::from(&data)]);
    let write = queue.write(&data, [1, 2]);
    let trap = queue.launch(&kernel, grid, &[Arg::address(1 << 31), 1_u32.into()]);
    let read = queue.read(&data);
    let name = "step".to_owned();
    let count = LaunchError::ArgumentCount { kernel: name, expected: 2, given: 1 };
    assert_eq!(queue.finish(), Err(QueueError::Launch(count.clone())));
    assert_eq!(queue.finish(), Ok(()));
    assert_eq!(launch.wait().unwrap_err(), QueueError::Launch(count));
    let length = BufferError::Length { buffer: data.name(), given: 2, expected: 4 };
    assert_eq!(write.wait(), Err(QueueError::Buffer(length)));
    let Err(QueueError::Launch(LaunchError::Trap(trap))) = trap.wait() else { panic!("no trap") };
    assert!(matches!(trap.trap.kind, TrapKind::BadAddress { .. }), "{trap}");
    assert_eq!(read.wait().unwrap(), [0; 4]);
}

#[test]
fn events_order_the_commands_of_two_queues() {
    let device = device("4w32/16/32/16+x");
    let kernel = step(device.arch());
    let [first, second] = [(); 2].map(|()| Queue::new(&device).unwrap());
    let data = device.buffer_zeroed::<u32>(5000).unwrap();
    let config = LaunchConfig::grid_1d(5000);
    let launch = |queue: &Queue, factor: u32| {
        queue.launch(&kernel, config, &[Arg::from(&data), factor.into()])
    };
    let mut factors = Vec::new();
    for round in 0..20 {
        second.wait_for(&launch(&first, round));
        first.wait_for(&launch(&second, round + 3));
        factors.extend([round, round + 3]);
    }
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(device.read(&data).unwrap(), stepped(&[0; 5000], &factors));
}

#[test]
fn host_threads_share_a_device() {
    let device = device("4w32/16/8/4");
    let kernel = step(device.arch());
    thread::scope(|scope| {
        for number in 0..4_u32 {
            let (device, kernel) = (device.clone(), Arc::clone(&kernel));
            scope.spawn(move || {
                for round in 0..50 {
                    let start = vec![number; 30];
                    let data = device.buffer_from_slice(&start).unwrap();
                    let args = [Arg::from(&data), round.into()];
                    device.launch(&kernel, LaunchConfig::grid_1d(30), &args).unwrap();
                    assert_eq!(device.read(&data).unwrap(), stepped(&start, &[round]));
                }
            });
        }
    });
}

#[test]
fn times_follow_each_other() {
    let device = device("harp32");
    let kernel = step(device.arch());
    let queue = Queue::new(&device).unwrap();
    let data = device.buffer_zeroed::<u32>(1000).unwrap();
    let args = [Arg::from(&data), 1_u32.into()];
    let launch = || queue.launch(&kernel, LaunchConfig::grid_1d(1000), &args);
    let events: [Event<Report>; 2] = [launch(), launch()];
    queue.finish().unwrap();
    let times = events.each_ref().map(|event| event.times().unwrap());
    for time in times {
        assert!(time.queued <= time.started && time.started <= time.ended);
        assert!(time.took() > std::time::Duration::ZERO);
    }
    assert!(times[0].ended <= times[1].started);
    assert!(events.iter().all(Event::is_done));
}

#[test]
fn anything_may_be_dropped_at_any_time() {
    let device = device("harp32");
    let kernel = step(device.arch());
    let whole = device.buffer_uninitialized::<u8>(200 << 20);
    drop(whole.unwrap());
    for order in 0..6 {
        let queue = Queue::new(&device).unwrap();
        let data = device.buffer_zeroed::<u32>(1000).unwrap();
        let args = [Arg::from(&data), 3_u32.into()];
        let launch = queue.launch(&kernel, LaunchConfig::grid_1d(1000), &args);
        let read = queue.read(&data);
        match order {
            0 => drop((args, data, queue, launch, read)),
            1 => drop((queue, read, launch, data, args)),
            2 => drop((read, launch, queue, args, data)),
            3 => {
                drop((queue, data, args));
                assert_eq!(read.wait().unwrap(), stepped(&[0; 1000], &[3]));
                drop(launch);
            }
            4 => {
                drop(data);
                assert_eq!(launch.wait().unwrap().work_items(), 1000);
                drop((read, queue, args));
            }
            _ => {
                device.cancel_token().cancel();
                drop(queue);
                device.cancel_token().reset();
                drop((launch, read, data, args));
            }
        }
    }
    // No memory is lost.
    device.buffer_uninitialized::<u8>(200 << 20).unwrap();
}

/// `to[i] = from[i] + 1`, which reports its accesses.
fn reporting_increment(arch: ArchId) -> Arc<Kernel> {
    let mut source = KernelSource::new("increment", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (from, to, i) = (b.buffer::<i32>("from"), b.buffer::<i32>("to"), b.global_id(0));
    let value = b.load(from, i);
    let value = b.ins().iadd_imm_s(value, 1);
    b.store(to, i, value);
    b.return_();
    b.finalize().unwrap();
    let options = CompileOptions { report_accesses: true, ..CompileOptions::default() };
    Arc::new(source.compile(&options).unwrap())
}

#[test]
fn the_host_must_wait_for_commands_before_it_uses_their_buffers() {
    let arch = "4w32/16/32/16+x".parse().unwrap();
    let checks = Some(Checks::all());
    let device = Device::new(DeviceConfig { checks, ..DeviceConfig::new(arch) }).unwrap();
    let kernel = reporting_increment(arch);
    let grid = LaunchConfig::grid_1d(64);
    let from = device.buffer_from_slice(&[1; 64]).unwrap().named("from");
    let to = device.buffer_zeroed::<i32>(64).unwrap().named("to");
    let queue = Queue::new(&device).unwrap();
    let in_use = |result: Result<(), BufferError>| match result {
        Err(error @ BufferError::InUse { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };

    let launch = queue.launch(&kernel, grid, &[Arg::from(&from), Arg::from(&to)]);
    let message = in_use(device.write(&from, &[2; 64]));
    assert!(message.starts_with("buffer `from` is in use: a launch of kernel `increment`"));
    in_use(device.read(&to).map(drop));
    in_use(device.read_into(&to, &mut [0; 64]));
    in_use(device.fill(&to.view(10..11).unwrap(), 2));
    in_use(device.map(&from, |_| ()));
    // The launch only reads it.
    assert_eq!(device.read(&from).unwrap(), [1; 64]);
    launch.wait().unwrap();
    assert_eq!(device.read(&to).unwrap(), [2; 64]);
    device.write(&from, &[2; 64]).unwrap();

    // Copies, in parts; and what is known through another queue, or through an event that has ended.
    let low = from.view(..32).unwrap();
    let fill = queue.fill(&low, 5);
    in_use(device.copy(&from, &to));
    device.fill(&from.view(32..).unwrap(), 7).unwrap();
    let other = Queue::new(&device).unwrap();
    other.wait_for(&fill);
    other.read(&low).wait().unwrap();
    assert_eq!(device.read(&low).unwrap(), [5; 32]);
    let copy = queue.copy(&low, &to.view(..32).unwrap());
    in_use(device.fill(&low, 1));
    while !copy.is_done() {
        thread::yield_now();
    }
    device.fill(&low, 1).unwrap();
    queue.write(&to, [9; 64]);
    in_use(device.read(&to).map(drop));
    queue.finish().unwrap();
    assert_eq!(device.read(&to).unwrap(), [9; 64]);
    queue.read(&to);
    in_use(device.fill(&to, 1));
    drop(queue);
    device.fill(&to, 1).unwrap();
}
