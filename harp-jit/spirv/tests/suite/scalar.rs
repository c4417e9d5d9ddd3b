//! The programs on which sharing is measured do the same with shared registers, and need less.

use harp_bench::scalar::{Measured, programs};
use harp_spirv::SpirvModule;

#[test]
fn programs_do_the_same_with_shared_registers() {
    let all = programs();
    assert!(all.len() >= 24, "{}", all.len());
    for (number, program) in all.iter().enumerate() {
        // Each at one width; the widths take turns.
        let lanes = [4, 8, 16, 32][number % 4];
        let compared = compare(program, lanes);
        let [before, after] =
            [&compared.base, &compared.shared].map(|cost| cost.activity.operations);
        assert!(after < before, "{} at {lanes} lanes: {after} of {before}", program.name);
    }
}

fn compare(program: &Measured, lanes: u8) -> harp_bench::scalar::Compared {
    let compared = program.compare(lanes, &|module, kernel, arch, options| {
        Ok(SpirvModule::parse(module)?.kernel(kernel, arch)?.compile(options)?)
    });
    compared.unwrap_or_else(|error| panic!("{error}"))
}
