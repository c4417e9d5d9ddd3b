//! `harp replay`: a launch that fails is kept in a file.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A launch that fails is kept in a file, which the command runs, explains and traces.
#[test]
fn replays_run_again() {
    use harp_runtime::prelude::*;
    use harp_runtime::{Checks, Replay, SavedReplay};

    let folder = TempDir::new().unwrap();
    let arch: ArchId = "4w16/8/4/2+x".parse().unwrap();
    let replays = Some(folder.path().to_owned());
    let device = Device::new(DeviceConfig { replays, ..DeviceConfig::new(arch) }).unwrap();
    let kernel = |options: &CompileOptions| {
        let mut source = KernelSource::new("halves", arch);
        let mut b = KernelBuilder::new(&mut source);
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let x = b.load(data, i);
        b.print("{}", &[x]);
        let rest = b.ins().band_imm_u(x, 1);
        let is_even = b.ins().bxor_imm_u(rest, 1);
        b.assert(is_even, "it is even");
        let half = b.ins().ushr_imm_u(x, 1);
        b.store(data, i, half);
        b.return_();
        b.finalize().unwrap();
        source.compile(options).unwrap()
    };
    let data = device.buffer_from_slice(&[2, 4, 6, 7, 8]).unwrap();
    let grid = LaunchConfig::grid_1d(5);
    let plain = kernel(&CompileOptions::default());
    let error = device.launch(&plain, grid, &[Arg::from(&data)]).unwrap_err();
    let Some(SavedReplay::File(file)) = error.replay() else { panic!("{error}") };
    let file = file.to_str().unwrap();

    let output = harp(&["replay", file]);
    let (code, message) = fails(&output);
    assert_eq!(code, EXIT_TRAP);
    let first = error.to_string();
    assert!(message.contains(first.lines().next().unwrap()), "{message}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("[0] 2\n[1] 4\n[2] 6\n[3] 7\n"));

    let explained = harp(&["replay", "--explain", file]);
    let text = String::from_utf8(explained.stdout).unwrap();
    let stopped: Vec<&str> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert!(matches!(stopped[..], [line] if line.contains("trap")), "{text}");
    assert!(text.contains("halves:") && text.contains("replays.rs:"), "{text}");

    let steps = folder.path().join("steps.txt");
    let steps = steps.to_str().unwrap();
    let traced = harp(&["replay", "--trace", "instructions", "--trace-file", steps, file]);
    assert_eq!(traced.status.code(), Some(EXIT_TRAP));
    assert!(fs::read_to_string(steps).unwrap().lines().last().unwrap().contains("trap"));

    // What was not checked can be checked now, if the kernel reports what it does.
    assert_eq!(fails(&harp(&["replay", "--checks", file])).0, EXIT_INPUT);
    let reporting = kernel(&CompileOptions { report_accesses: true, ..CompileOptions::default() });
    device.write(&data, &[2; 5]).unwrap();
    let right = folder.path().join("right.harpreplay");
    let replay = Replay::new(&device, &reporting, grid, &[Arg::from(&data)]).unwrap();
    replay.write(&right).unwrap();
    let right = right.to_str().unwrap();
    for options in [&["replay", right][..], &["replay", "--checks", right]] {
        let report = String::from_utf8(succeeds(options)).unwrap();
        assert!(report.contains("kernel `halves`, grid 5 x 1 x 1"), "{report}");
    }
    let far = LaunchConfig::grid_1d(6).with_checks(Checks::all());
    let wrong = folder.path().join("wrong.harpreplay");
    replay.with_launch_config(far).write(&wrong).unwrap();
    let (code, message) = fails(&harp(&["replay", wrong.to_str().unwrap()]));
    assert_eq!(code, EXIT_INPUT);
    assert!(message.contains("out of bounds: load of i32 by work-item (5, 0, 0)"), "{message}");

    let (code, message) = fails(&harp(&["replay", steps]));
    assert_eq!(code, EXIT_INPUT);
    assert!(message.contains("it does not start with `HARPplay`"), "{message}");
}
