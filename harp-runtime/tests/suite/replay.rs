//! Replays: launches that failed, run again from files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harp_runtime::prelude::*;
use harp_runtime::{
    Checks, Issue, LaunchObserver, LaunchTrap, Replay, ReplayError, SavedReplay, TrapKind,
};
use tempfile::TempDir;

fn arch() -> ArchId {
    "4w32/16/8/4+x".parse().unwrap()
}

/// `sums[i] = data[i] + data[i + 1]`, and a trap where that is 100.
fn sums(options: &CompileOptions) -> Kernel {
    let mut source = KernelSource::new("sums / of pairs", arch());
    let mut b = KernelBuilder::new(&mut source);
    let (data, sums, i) = (b.buffer::<i32>("data"), b.buffer::<i32>("sums"), b.global_id(0));
    let next = b.ins().iadd_imm_s(i, 1);
    let (x, y) = (b.load(data, i), b.load(data, next));
    let sum = b.ins().iadd(x, y);
    b.store(sums, i, sum);
    let rest = b.ins().iadd_imm_s(sum, -100);
    b.assert(rest, "no pair is 100");
    b.return_();
    b.finalize().unwrap();
    source.compile(options).unwrap()
}

fn checked() -> CompileOptions {
    CompileOptions { report_accesses: true, ..CompileOptions::default() }
}

/// The first line: the last says where the replay is.
fn first_line(error: &LaunchError) -> String {
    error.to_string().lines().next().unwrap().to_owned()
}

fn path_of(error: &LaunchError) -> PathBuf {
    match error.replay() {
        Some(SavedReplay::File(path)) => path.clone(),
        other => panic!("{other:?}"),
    }
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

struct Counted(u64);

impl LaunchObserver for Counted {
    fn issue(&mut self, _: Option<u64>, _: &Issue<'_>) {
        self.0 += 1;
    }
}

#[test]
fn a_trap_is_kept_and_run_again() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("replays");
    let config = DeviceConfig { replays: Some(kept.clone()), ..DeviceConfig::new(arch()) };
    let device = Device::new(config).unwrap();
    let kernel = sums(&CompileOptions::default());
    let grid = LaunchConfig::grid_1d(40).with_fuel(10_000);
    let data = device.buffer_from_slice(&[7; 41]).unwrap();
    // What is free between buffers changes where stacks are.
    let gap = device.buffer_zeroed::<u8>(5000).unwrap();
    let sums = device.buffer_uninitialized::<i32>(40).unwrap();
    drop(gap);
    let args = [Arg::from(&data), Arg::from(&sums)];
    device.launch(&kernel, grid, &args).unwrap();
    assert_eq!(files(&kept), 0);

    let mut bad = [3; 41];
    bad[29] = 97;
    device.write(&data, &bad).unwrap();
    let error = device.launch(&kernel, grid, &args).unwrap_err();
    let path = path_of(&error);
    assert!(
        error.to_string().ends_with(&format!("\nreplay it with: harp replay {}", path.display()))
    );
    // What came later is not in it.
    device.fill(&data, 0).unwrap();

    let replay = Replay::read(&path).unwrap();
    assert_eq!(replay.launch_config(), grid);
    assert_eq!(replay.kernel().disassembly(), kernel.disassembly());
    let again = replay.launch().unwrap().unwrap_err();
    let (LaunchError::Trap(first), LaunchError::Trap(second)) = (&error, &again) else { panic!() };
    assert_eq!((&first.trap, &first.stats), (&second.trap, &second.stats));
    assert_eq!(again.to_string(), first_line(&error));
    let mut counted = Counted(0);
    replay.launch_observed(&mut counted).unwrap().unwrap_err();
    assert_eq!(counted.0, first.stats.issued());

    // Each failure has a file of its own; errors before a kernel runs have none.
    device.write(&data, &bad).unwrap();
    assert_ne!(path_of(&device.launch(&kernel, grid, &args).unwrap_err()), path);
    assert!(device.launch(&kernel, grid, &args[..1]).unwrap_err().replay().is_none());
    assert_eq!(files(&kept), 2);
}

#[test]
fn findings_are_kept_and_found_again() {
    let folder = TempDir::new().unwrap();
    let config = DeviceConfig { replays: Some(folder.path().into()), ..DeviceConfig::new(arch()) };
    let device = Device::new(config).unwrap();
    let data = device.buffer_from_slice(&[1; 50]).unwrap().named("pairs");
    let half = data.view(0..40).unwrap();
    let sums_of = device.buffer_uninitialized::<i32>(60).unwrap().named("sums");
    let (first, second) = (sums_of.view(0..40).unwrap(), sums_of.view(20..60).unwrap());
    let kernel = sums(&checked());
    let grid = LaunchConfig::grid_1d(40).with_checks(Checks::all());
    // It reads one too far, in a view of the buffer.
    let error = device.launch(&kernel, grid, &[Arg::from(&half), Arg::from(&first)]).unwrap_err();
    let replay = Replay::read(path_of(&error)).unwrap();
    let again = replay.launch().unwrap().unwrap_err();
    let (LaunchError::Findings(found), LaunchError::Findings(again)) = (&error, &again) else {
        panic!()
    };
    assert_eq!((found.list.len(), &found.list), (1, &again.list));
    assert!(error.to_string().contains("buffer `pairs`"), "{error}");

    // Of `sums` 20 elements were not written yet.
    let error = device.launch(&kernel, grid, &[Arg::from(&second), Arg::from(&half)]).unwrap_err();
    let LaunchError::Findings(found) = &error else { panic!("{error}") };
    assert!(found.list.len() > 1, "{error}");
    let again = Replay::read(path_of(&error)).unwrap().launch().unwrap().unwrap_err();
    let LaunchError::Findings(again) = again else { panic!("{again}") };
    assert_eq!(found.list, again.list);
}

#[test]
fn a_launch_can_be_kept_before_it_is_done() {
    let device = Device::new(DeviceConfig::new(arch())).unwrap();
    let (data, out) =
        (device.buffer_from_slice(&[1; 9]).unwrap(), device.buffer_zeroed::<i32>(8).unwrap());
    let (kernel, grid) = (sums(&checked()), LaunchConfig::grid_1d(8));
    let args = [Arg::from(&data), Arg::from(&out)];
    let replay = Replay::new(&device, &kernel, grid, &args).unwrap();
    let report = device.launch(&kernel, grid, &args).unwrap();
    assert_eq!(replay.launch().unwrap().unwrap().stats, report.stats);
    let too_far = LaunchConfig::grid_1d(9).with_checks(Checks::all());
    assert!(replay.with_launch_config(too_far).launch().unwrap().is_err());

    let other = Device::new(DeviceConfig::new(arch())).unwrap();
    let error = Replay::new(&other, &kernel, grid, &args).unwrap_err();
    assert!(matches!(error, LaunchError::ForeignBuffer { .. }), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let config = DeviceConfig { replays: Some(file.join("inside")), ..DeviceConfig::new(arch()) };
    let device = Device::new(config).unwrap();
    let data = device.buffer_from_slice(&[50; 9]).unwrap();
    let args = [Arg::from(&data), Arg::from(&data)];
    let error = device.launch(&sums(&CompileOptions::default()), LaunchConfig::grid_1d(8), &args);
    let error = error.unwrap_err();
    assert!(matches!(&error, LaunchError::Trap(trap) if trap.trap.kind == TrapKind::GuestTrap));
    assert!(
        matches!(error.replay(), Some(SavedReplay::Failed(reason)) if reason.contains("inside"))
    );
}

/// The test runs itself in another process, whose files may not be larger than some kilobyte.
#[cfg(unix)]
#[test]
fn a_full_disk_is_said() {
    const FOLDER: &str = "HARP_TEST_FULL_REPLAYS";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let config =
            DeviceConfig { replays: Some(folder.clone().into()), ..DeviceConfig::new(arch()) };
        let device = Device::new(config).unwrap();
        let kernel = sums(&CompileOptions::default());
        for _ in 0..2 {
            let data = device.buffer_from_slice(&[50; 1000]).unwrap();
            let args = [Arg::from(&data), Arg::from(&data)];
            let error = device.launch(&kernel, LaunchConfig::grid_1d(8), &args).unwrap_err();
            let trap = |trap: &LaunchTrap| trap.trap.kind == TrapKind::GuestTrap;
            assert!(matches!(&error, LaunchError::Trap(t) if trap(t)), "{error}");
            let Some(SavedReplay::Failed(reason)) = error.replay() else { panic!("{error}") };
            assert!(reason.contains("sums") && error.to_string().ends_with(reason), "{error}");
            assert_eq!(files(Path::new(&folder)), 0);
            device.write(&data, &[3; 1000]).unwrap();
            device.launch(&kernel, LaunchConfig::grid_1d(1), &args).unwrap();
            assert_eq!(device.read(&data).unwrap()[..2], [6, 3]);
        }
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut other = Command::new("sh");
    other.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
    other.arg(std::env::current_exe().unwrap()).args(["--exact", "replay::a_full_disk_is_said"]);
    let output = other.env(FOLDER, folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Whatever is in a file, reading and running it ends.
#[test]
fn files_that_are_none_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.harpreplay");
    let reason = |path: &Path| match Replay::read(path) {
        Err(ReplayError::Read { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(&path).contains("No such file"), "{}", reason(&path));
    assert!(reason(folder.path()).contains("it is no file"));

    let device = Device::new(DeviceConfig::new(arch())).unwrap();
    let data = device.buffer_from_slice(&[1; 9]).unwrap();
    let args = [Arg::from(&data), Arg::from(&data)];
    let replay = Replay::new(&device, &sums(&checked()), LaunchConfig::grid_1d(8), &args).unwrap();
    replay.write(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in [0, 5, 10, 20, 50, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(!reason(&path).is_empty());
    }
    for at in (0..whole.len()).step_by(whole.len() / 50) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(!reason(&path).is_empty());
    }
}
