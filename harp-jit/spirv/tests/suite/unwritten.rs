//! Variables that are read before they are written, and their names.

use harp_runtime::{Arg, Checks, FindingKind, LaunchConfig, Target};

use crate::support::{Level, everywhere};

#[test]
fn what_is_read_before_it_is_written_is_found() {
    let (len, count) = (10, 7);
    let line = LaunchConfig::grid_1d(len).with_checks(Checks::all());
    everywhere("unwritten", |case| {
        let (wide, pairs) = (case.zeros::<f32>(4 * len), case.zeros::<i32>(3 * len));
        case.launch("clean", LaunchConfig::grid_1d(len), &[Arg::from(&wide), Arg::from(&pairs)]);
        // Optimized code has no such variables.
        if case.level == Level::Optimized {
            return;
        }
        let numbers = || Arg::from(&pairs);
        for (name, variable, out) in [
            ("number", "x", numbers()),
            ("component", "v", Arg::from(&wide)),
            ("element", "places", numbers()),
            ("condition", "is_odd", numbers()),
        ] {
            let Some(found) = case.found(name, line, &[out, Arg::from(count)]) else { return };
            let [one] = &found.list[..] else { panic!("{name} on {case}: {found}") };
            let wanted = (&FindingKind::Uninitialized, len as u64 - count as u64);
            assert_eq!((&one.kind, one.count), wanted, "{name} on {case}: {found}");
            let Some(Target::Stack { name: Some(of), .. }) = &one.target else { panic!("{found}") };
            assert_eq!(of, variable, "{name} on {case}");
        }
    });
}
