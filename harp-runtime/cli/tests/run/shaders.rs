//! Shaders in WGSL, GLSL and SPIR-V: what is said of them, their constants and numbers.

use std::fs;

use tempfile::TempDir;

use super::{MACHINE, fails, module, succeeds};

#[test]
#[cfg(feature = "naga")]
fn shaders_are_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let shader = "#version 450
        layout(local_size_x = 4) in;
        layout(set = 0, binding = 0) buffer Data { float numbers[]; } data;
        void main() { data.numbers[gl_GlobalInvocationID.x] *= 2.0; }";
    fs::write(path.join("double.comp"), shader).unwrap();
    let listed = succeeds(path, &format!("run double.comp -a {MACHINE} --list"));
    assert!(listed.starts_with("main, in groups of 4 x 1 x 1\n  "), "{listed}");
    assert!(listed.ends_with(": a buffer of f32, set 0, binding 0\n"), "{listed}");
    let line = format!("run double.comp -a {MACHINE} --grid 3 --arg f32:1,2,3,4 --print 0");
    assert!(succeeds(path, &line).ends_with(": 2 4 6 8\n"));
    let (code, _, message) = fails(path, &format!("{line} --group 8"));
    assert_eq!(code, 1);
    assert!(
        message.contains("work-groups of 8 x 1 x 1 work-items, but `main` is for 4 x 1 x 1"),
        "{message}"
    );

    // Blocks may have a name and variables none.
    let shader = "#version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) uniform Sizes { int n; };
        layout(set = 0, binding = 1) buffer Numbers { int numbers[]; };
        void main() { numbers[gl_GlobalInvocationID.x] += n; }";
    fs::write(path.join("blocks.comp"), shader).unwrap();
    let line = format!("run blocks.comp -a {MACHINE} --grid 3");
    let given = "--arg Numbers=i32:1,2,3 --arg Sizes=i32:10,0 --print Numbers";
    assert_eq!(succeeds(path, &format!("{line} {given}")), "Numbers: 11 12 13\n");

    // Versions before 4.40 and those of OpenGL ES.
    for version in ["430", "310 es"] {
        let shader = shader.replace("450", version);
        fs::write(path.join("blocks.comp"), shader).unwrap();
        assert_eq!(succeeds(path, &format!("{line} {given}")), "Numbers: 11 12 13\n");
    }

    fs::write(path.join("wrong.wgsl"), "fn f() -> u32 { return 1.5; }").unwrap();
    let (code, _, message) = fails(path, "run wrong.wgsl -a harp32 --list");
    assert_eq!(code, 1);
    assert!(message.starts_with("error: `wrong.wgsl`: `naga` refused it\n"), "{message}");
    fs::write(path.join("wrong.glsl"), "void main() { x = 1; }").unwrap();
    let (code, _, message) = fails(path, "run wrong.glsl -a harp32 --list");
    assert_eq!(code, 1);
    assert!(message.contains("`naga` refused it"), "{message}");
    assert!(
        message
            .ends_with("`glslc -fshader-stage=compute FILE -o FILE.spv` makes a module to run\n"),
        "{message}"
    );
}

#[test]
#[cfg(feature = "naga")]
fn constants_of_shaders_are_given_by_number_and_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let wgsl = "
        override size: u32 = 4;
        override factor: f32;
        @id(7) override adds: bool = false;
        @group(0) @binding(0) var<storage, read_write> numbers: array<f32>;
        @compute @workgroup_size(size)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            numbers[id.x] = select(numbers[id.x] * factor, numbers[id.x] + factor, adds);
        }";
    fs::write(path.join("scale.wgsl"), wgsl).unwrap();
    let line = format!("run scale.wgsl -a {MACHINE} --grid 1 --arg f32:1,2,3,4 --print 0");
    let of = |given: &str| succeeds(path, &format!("{line} {given}"));
    assert_eq!(of("--spec factor=0.5"), "numbers: 0.5 1 1.5 2\n");
    assert_eq!(of("--spec factor=2 --spec size=2"), "numbers: 2 4 3 4\n");
    assert_eq!(of("--spec factor=10 --spec 7=true --spec size=3"), "numbers: 11 12 13 4\n");
    let message = |given: &str| fails(path, &format!("{line} {given}")).2;
    let missing = message("--spec size=1");
    assert!(missing.contains("Missing value"), "{missing}");
    let unknown = message("--spec factor=1 --spec other=2");
    assert!(unknown.contains("'other' not found in the shader"), "{unknown}");

    let glsl = "#version 450
        layout(local_size_x = 1) in;
        layout(constant_id = 3) const int n = 5;
        layout(set = 0, binding = 0) buffer Numbers { int numbers[]; };
        void main() { numbers[gl_GlobalInvocationID.x] += n; }";
    fs::write(path.join("add.comp"), glsl).unwrap();
    let line = format!("run add.comp -a {MACHINE} --grid 2 --arg i32:1,2 --print 0");
    assert_eq!(succeeds(path, &line), "Numbers: 6 7\n");
    assert_eq!(succeeds(path, &format!("{line} --spec 3=-1")), "Numbers: 0 1\n");
}

#[test]
#[cfg(feature = "naga")]
fn indices_of_wgsl_stay_in_their_arrays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let wgsl = "
        struct Tail { first: u32, rest: array<vec4<u32>> }
        @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
        @group(0) @binding(1) var<storage, read_write> tail: Tail;
        var<workgroup> together: array<u32, 4>;
        @compute @workgroup_size(8)
        fn main(@builtin(local_invocation_index) id: u32) {
            var own = array<u32, 3>(10, 20, 30);
            own[id] += 1;
            if id == 3 { together[id + 100] = 7; }
            workgroupBarrier();
            if id < 5 { numbers[id] = own[id] + together[id]; }
            if id == 5 { tail.rest[id][id] = own[i32(id) - 6]; }
        }";
    fs::write(path.join("far.wgsl"), wgsl).unwrap();
    let line = format!("run far.wgsl -a {MACHINE} --grid 8 --arg u32x4 --arg u32x12:1");
    assert_eq!(
        succeeds(path, &format!("{line} --print numbers --print tail")),
        "numbers: 11 21 31 38\ntail: 1 1 1 1 1 1 1 1 1 1 1 31\n"
    );
    // Checks find what the program itself does.
    let (_, _, message) = fails(path, &format!("{line} --check"));
    assert!(message.contains("out of bounds: store of i32"), "{message}");
    assert!(message.contains("of array `together` of its work-group"), "{message}");
}

#[test]
fn halves_are_numbers() {
    let folder = TempDir::new().unwrap();
    let line = format!("run {} -a {MACHINE}", module("halves.spv").display());
    let listed = succeeds(folder.path(), &format!("{line} --list"));
    assert!(listed.contains("\n  in: a buffer of f16, set 0, binding 0, constant\n"), "{listed}");
    let four = ["1,0,0,1,1,0"; 4].join(",");
    let line = format!("{line} --grid 4 --arg {four} --arg f16x48 --print out:6");
    let printed = succeeds(folder.path(), &line);
    assert_eq!(printed, "out: -1 -0 1 0 0.5 -0.86621094 ... (48 elements)\n");

    let line = format!(
        "run {} --kernel half_arguments -a {MACHINE}",
        module("floats.32.O2.spv").display()
    );
    let listed = succeeds(folder.path(), &format!("{line} --list"));
    assert!(listed.contains("\n  factor: one f16\n"), "{listed}");
    let line = format!("{line} --grid 3 --arg f16:1.5,-3,1000 --arg 2 --arg -2,100 --print x");
    assert_eq!(succeeds(folder.path(), &line), "x: 3 -2 100\n");
}
