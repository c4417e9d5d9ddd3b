//! Buffers over the public interface.

use harp_runtime::{Buffer, BufferError, Device, DeviceConfig, DeviceError, Element, OutOfMemory};

fn device(arch: &str, memory_bytes: u64) -> Device {
    let arch = arch.parse().expect("an architecture id");
    Device::new(DeviceConfig { memory_bytes, ..DeviceConfig::new(arch) }).expect("a device")
}

fn round_trip<T: Element + PartialEq + std::fmt::Debug>(device: &Device, data: &[T]) {
    let buffer = device.buffer_from_slice(data).expect("room for the buffer");
    assert_eq!((buffer.len(), buffer.address() % 64), (data.len(), 0));
    assert_eq!(device.read(&buffer).as_deref(), Ok(data));
    let reversed: Vec<T> = data.iter().rev().copied().collect();
    assert_eq!(device.write(&buffer, &reversed), Ok(()));
    assert_eq!(device.read(&buffer), Ok(reversed));
}

#[test]
fn every_element_type_survives_the_round_trip() {
    for arch in ["4w8/8/16/16", "8b32/32/8/8"] {
        let device = device(arch, 1 << 20);
        round_trip(&device, &[1_u8, 2, 255]);
        round_trip(&device, &[-1_i8, 0, 127, 5, 6]);
        round_trip(&device, &[1_u16, 0xffff, 3]);
        round_trip(&device, &[i16::MIN, 3, 4]);
        round_trip(&device, &[u32::MAX, 7]);
        round_trip(&device, &[i32::MIN, -7, 0]);
        round_trip(&device, &[u64::MAX, 1 << 33]);
        round_trip(&device, &[i64::MIN, -1]);
        round_trip(&device, &[0.1_f32, -0.0, f32::INFINITY]);
        round_trip(&device, &[0.1_f64, f64::MIN_POSITIVE]);
        round_trip::<u32>(&device, &[]);
    }
}

#[test]
fn neighbours_do_not_touch_and_memory_is_zeroed_again() {
    let device = device("4w8/8/16/16", 1 << 20);
    let left = device.buffer_from_slice(&[0xaa_u8; 61]).unwrap();
    let middle = device.buffer_from_slice(&[0xbb_u8; 10_001]).unwrap();
    let right = device.buffer_from_slice(&[0xcc_u8; 3]).unwrap();
    let address = middle.address();
    drop(middle);
    let middle: Buffer<u8> = device.buffer_zeroed(10_001).unwrap();
    assert_eq!(middle.address(), address, "freed memory is used again");
    assert_eq!(device.read(&middle).unwrap(), [0; 10_001]);
    assert_eq!(device.read(&left).unwrap(), [0xaa; 61]);
    assert_eq!(device.read(&right).unwrap(), [0xcc; 3]);
}

#[test]
fn exhaustion_names_what_was_asked_for_and_the_limit() {
    let device = device("4w8/8/16/16", 1 << 20);
    let heap = (1 << 20) - (1 << 18);
    let _half: Buffer<u8> = device.buffer_zeroed(heap / 2).unwrap();
    let error = device.buffer_zeroed::<u32>(heap / 4).unwrap_err();
    let (given, limit) = (heap as u64, heap as u64);
    assert_eq!(error, BufferError::OutOfMemory(OutOfMemory { given, free: limit / 2, limit }));
    let error = device.buffer_zeroed::<u64>(usize::MAX / 4).unwrap_err();
    assert!(matches!(error, BufferError::TooLong { element_bytes: 8, .. }), "{error:?}");
    let error = device.buffer_zeroed::<u8>(usize::MAX).unwrap_err();
    assert!(matches!(error, BufferError::OutOfMemory(_)), "{error:?}");
}

#[test]
fn buffers_of_other_devices_and_other_lengths_are_refused() {
    let (ours, theirs) = (device("4w8/8/16/16", 1 << 20), device("4w8/8/16/16", 1 << 20));
    let foreign = theirs.buffer_from_slice(&[1_u32, 2]).unwrap().named("theirs");
    let own = ours.buffer_zeroed::<u32>(2).unwrap();
    let refused = Err(BufferError::ForeignBuffer { buffer: foreign.name() });
    assert_eq!(ours.read(&foreign).map(|_| ()), refused);
    assert_eq!(ours.read_into(&foreign, &mut [0; 2]), refused);
    assert_eq!(ours.write(&foreign, &[1, 2]), refused);
    assert_eq!(ours.fill(&foreign, 0), refused);
    assert_eq!(ours.map(&foreign, |_| ()), refused);
    assert_eq!(ours.copy(&foreign, &own), refused);
    assert_eq!(ours.copy(&own, &foreign), refused);
    let text = ours.read(&foreign).unwrap_err().to_string();
    assert_eq!(text, "buffer `theirs` belongs to another device");
    let (buffer, given, expected) = (foreign.name(), 3, 2);
    let length = Err(BufferError::Length { buffer, given, expected });
    assert_eq!(theirs.write(&foreign, &[1, 2, 3]), length);
    assert_eq!(theirs.read_into(&foreign, &mut [0; 3]), length);
    let longer = theirs.buffer_zeroed::<u32>(3).unwrap();
    assert_eq!(theirs.copy(&longer, &foreign), length);
    assert_eq!(theirs.read(&foreign).unwrap(), [1, 2]);
}

#[test]
fn views_are_parts_of_their_buffer() {
    for arch in ["4w8/8/16/16", "8b32/32/8/8"] {
        let device = device(arch, 1 << 20);
        let all = device.buffer_from_slice(&[0_u16, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let odd = all.view(3..8).unwrap();
        assert_eq!((odd.len(), odd.address()), (5, all.address() + 6));
        assert_eq!(device.read(&odd).unwrap(), [3, 4, 5, 6, 7]);
        let inner = odd.view(..=1).unwrap();
        device.write(&inner, &[33, 44]).unwrap();
        device.fill(&all.view(8..).unwrap(), 7).unwrap();
        assert_eq!(device.read(&all).unwrap(), [0, 1, 2, 33, 44, 5, 6, 7, 7, 7]);
        // A copy between overlapping parts.
        device.copy(&all.view(0..5).unwrap(), &all.view(1..6).unwrap()).unwrap();
        assert_eq!(device.read(&all).unwrap(), [0, 0, 1, 2, 33, 44, 6, 7, 7, 7]);
        let empty = all.view(10..).unwrap();
        assert!(empty.is_empty() && device.read(&empty).unwrap().is_empty());
        #[expect(clippy::reversed_empty_ranges, reason = "users make such ranges")]
        for range in [5..4, 0..11, 11..11, usize::MAX..usize::MAX] {
            let (buffer, len) = (all.name(), 10);
            let (start, end) = (range.start, range.end);
            let expected = BufferError::Range { buffer, start, end, len };
            assert_eq!(all.view(range).map(|_| ()), Err(expected));
        }
        assert!(all.view(..=usize::MAX).is_err());
    }
}

#[test]
fn memory_is_freed_with_its_last_handle() {
    let device = device("4w8/8/16/16", 1 << 20);
    let heap = (1 << 20) - (1 << 18);
    let all = device.buffer_uninitialized::<u8>(heap).unwrap();
    let (view, clone) = (all.view(5..7).unwrap(), all.clone());
    drop(all);
    assert!(device.buffer_zeroed::<u8>(1).is_err());
    drop(clone);
    assert!(device.buffer_zeroed::<u8>(1).is_err());
    drop(view);
    assert!(device.buffer_zeroed::<u8>(heap).is_ok());
}

#[test]
fn a_map_that_panics_changes_nothing() {
    let device = device("4w8/8/16/16", 1 << 20);
    let buffer = device.buffer_from_slice(&[1_u32, 2]).unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        device.map(&buffer, |elements| {
            elements[0] = 9;
            panic!("the user's own");
        })
    }));
    assert!(result.is_err());
    assert_eq!(device.read(&buffer).unwrap(), [1, 2]);
}

#[test]
fn buffers_may_outlive_their_device() {
    let device = device("4w8/8/16/16", 1 << 20);
    let buffer = device.buffer_from_slice(&[1_u32]).unwrap();
    drop(device);
    assert_eq!(buffer.len(), 1);
}

#[test]
fn impossible_devices_are_refused() {
    let config = DeviceConfig::new("4w8/8/16/16".parse().unwrap());
    let new = |config| Device::new(config).map(|_| ());
    let error = new(DeviceConfig { cores: 0, ..config.clone() }).unwrap_err();
    assert!(matches!(error, DeviceError::Machine(_)), "{error:?}");
    let error = new(DeviceConfig { memory_bytes: 1 << 32, ..config.clone() }).unwrap_err();
    assert!(matches!(error, DeviceError::Memory(_)), "{error:?}");
    let error = new(DeviceConfig { memory_bytes: 4098, ..config.clone() }).unwrap_err();
    assert!(matches!(error, DeviceError::Memory(_)), "{error:?}");
    // No memory at all is no machine to complain about, but has no room for anything.
    let device = Device::new(DeviceConfig { memory_bytes: 0, ..config }).unwrap();
    assert!(device.buffer_zeroed::<u8>(1).is_err());
}
