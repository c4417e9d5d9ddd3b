//! Byte-for-byte comparison with the files that the original toolchain made of `golden/src`.
//!
//! Folders are named after architecture ids, `/` written `_`. `*.hof` is a source assembled, `*.bin`
//! the image of the boot code, the library and a program, `*.dis` the disassembly of an object.
//! The original could not link for 8-byte words in the byte encoding, so that folder has no images.

use std::fs;
use std::path::{Path, PathBuf};

use harp_isa::object::hof;
use harp_isa::{
    ArchId, Instruction, Object, Op, Permissions, assemble, disassemble, link, listing,
};

const ARCHES: [&str; 7] = [
    "4b16_16_2_1",
    "4w16_16_8_8",
    "4w32_32_4_4",
    "4w8_8_16_16",
    "8b32_32_8_8",
    "8w16_16_8_8",
    "8w32_32_8_8",
];
const OBJECTS: [&str; 7] = ["alu", "boot", "encode", "lib", "link_a", "link_b", "preds"];
const PROGRAMS: [&str; 7] = ["alu", "faults", "float", "lanes", "mem", "preds", "warps"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

fn file(folder: &str, name: &str) -> Vec<u8> {
    let path = golden().join(folder).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn arch(folder: &str) -> ArchId {
    folder.replace('_', "/").parse().unwrap()
}

fn assembled(source: &str, folder: &str) -> Object {
    let text = String::from_utf8(file("src", &format!("{source}.s"))).unwrap();
    assemble(&text, arch(folder), &[]).unwrap_or_else(|error| panic!("{folder} {source}.s:{error}"))
}

fn linked(sources: &[&str], folder: &str) -> Vec<u8> {
    let objects: Vec<Object> = sources.iter().map(|source| assembled(source, folder)).collect();
    let objects: Vec<&Object> = objects.iter().collect();
    link(&objects, 0).unwrap_or_else(|error| panic!("{folder} {sources:?}: {error}")).bytes
}

/// The first difference, so that a failure does not print whole files.
fn assert_same(ours: &[u8], golden: &[u8], what: &str) {
    if ours == golden {
        return;
    }
    let at =
        ours.iter().zip(golden).position(|(a, b)| a != b).unwrap_or(ours.len().min(golden.len()));
    let window =
        |bytes: &[u8]| format!("{:02x?}", &bytes[at.min(bytes.len())..(at + 16).min(bytes.len())]);
    panic!(
        "{what}: {} bytes, golden {}; from {at:#x} {} instead of {}",
        ours.len(),
        golden.len(),
        window(ours),
        window(golden),
    );
}

#[test]
fn object_files_match() {
    for folder in ARCHES {
        for name in OBJECTS {
            let what = format!("{folder}/{name}.hof");
            let golden = file(folder, &format!("{name}.hof"));
            let object = assembled(name, folder);
            assert_same(&hof::write(&object).unwrap(), &golden, &what);
            assert_eq!(hof::read(&golden).as_ref(), Ok(&object), "{what}");
        }
    }
}

#[test]
fn images_match() {
    let mut compared = 0;
    for folder in ARCHES.into_iter().filter(|folder| !folder.starts_with("8b")) {
        for program in PROGRAMS {
            let image = linked(&["boot", "lib", program], folder);
            assert_same(
                &image,
                &file(folder, &format!("{program}.bin")),
                &format!("{folder}/{program}.bin"),
            );
            compared += 1;
        }
        let image = linked(&["link_a", "lib", "link_b"], folder);
        assert_same(&image, &file(folder, "link.bin"), &format!("{folder}/link.bin"));
        compared += 1;
        // A program for eight lanes: the smaller machines have no image of it.
        if arch(folder).lanes() >= 8 {
            let image = linked(&["boot", "lib", "lanes8"], folder);
            assert_same(&image, &file(folder, "lanes8.bin"), &format!("{folder}/lanes8.bin"));
            compared += 1;
        }
    }
    let images = ARCHES.iter().flat_map(|folder| fs::read_dir(golden().join(folder)).unwrap());
    let images =
        images.filter(|entry| entry.as_ref().unwrap().path().extension() == Some("bin".as_ref()));
    assert_eq!(compared, images.count(), "images of the original that nothing was compared with");
}

#[test]
fn disassembly_matches() {
    for folder in ARCHES {
        for name in OBJECTS {
            let what = format!("{folder}/{name}.dis");
            let golden = String::from_utf8(file(folder, &format!("{name}.dis"))).unwrap();
            let ours = assembled(name, folder).display().to_string();
            for (line, (ours, golden)) in ours.lines().zip(golden.lines()).enumerate() {
                assert_eq!(ours, golden, "{what}, line {}", line + 1);
            }
            assert_eq!(ours.len(), golden.len(), "{what}");
        }
    }
}

/// What the original could not do. `boot` ends with a jump over the library to `main`.
#[test]
fn links_byte_encoded_programs_of_eight_byte_words() {
    let folder = "8b32_32_8_8";
    for program in PROGRAMS.into_iter().chain(["lanes8"]) {
        let objects = ["boot", "lib", program].map(|source| assembled(source, folder));
        let image = link(&objects.each_ref(), 0).unwrap();
        let jump = disassemble(&image.bytes, 0, arch(folder)).nth(2).unwrap();
        let next = objects[0].chunks[0].data.len() as i64;
        let rel = image.symbol("main").unwrap() as i64 - next;
        assert_eq!(jump.1, Ok(Instruction::new(Op::Jmpi { rel })), "{program}");
    }
}

/// The listings lack the global marks of data, which the linker needs across objects, the tail of
/// data that is no whole word, and the unit of data that has no alignment.
fn reassembled(name: &str, folder: &str) -> Object {
    let text = String::from_utf8(file(folder, &format!("{name}.dis"))).unwrap();
    assemble(&text, arch(folder), &[])
        .unwrap_or_else(|errors| panic!("{folder} {name}.dis: {errors}"))
}

#[test]
fn disassembly_means_the_same_program() {
    let mut exact = 0;
    for folder in ARCHES {
        for name in OBJECTS {
            let what = format!("{folder}/{name}.dis");
            let original = hof::read(&file(folder, &format!("{name}.hof"))).unwrap();
            let mut again = reassembled(name, folder);
            assert_eq!(original.chunks.len(), again.chunks.len(), "{what}");
            for (ours, golden) in again.chunks.iter_mut().zip(&original.chunks) {
                if !golden.permissions.contains(Permissions::EXECUTE) {
                    let (size, rest) = (golden.data.len(), arch(folder).word().bytes());
                    assert_eq!(ours.data.len(), size.next_multiple_of(rest.into()), "{what}");
                    assert!(ours.data[size..].iter().all(|&byte| byte == 0), "{what}");
                    ours.data.truncate(size);
                    ours.global = golden.global;
                }
                assert_eq!(ours, golden, "{what}");
            }
            assert_eq!(original.entry, again.entry, "{what}");
            exact += usize::from(again == original && hof::write(&again) == hof::write(&original));
        }
    }
    assert_eq!(exact, ARCHES.len() * OBJECTS.len());
}

/// With nothing done to them, where no other object needs the marks of data.
#[test]
fn disassembly_links_to_the_same_image() {
    for folder in ARCHES.into_iter().filter(|folder| !folder.starts_with("8b")) {
        for program in ["alu", "preds"] {
            let objects = ["boot", "lib", program].map(|name| reassembled(name, folder));
            let image = link(&objects.each_ref(), 0).unwrap();
            let what = format!("{folder}/{program}.bin");
            assert_same(&image.bytes, &file(folder, &format!("{program}.bin")), &what);
        }
    }
}

#[test]
fn exact_text_gives_the_golden_files_again() {
    let mut compared = 0;
    for folder in ARCHES {
        for name in OBJECTS {
            let what = format!("{folder}/{name}.hof");
            let golden = file(folder, &format!("{name}.hof"));
            let text = hof::read(&golden).unwrap().display_exact().to_string();
            let again = assemble(&text, arch(folder), &[]).unwrap();
            assert_same(&hof::write(&again).unwrap(), &golden, &what);
            compared += 1;
        }
    }
    assert_eq!(compared, 49);
}

/// Every byte of an image is in its listing, and every address.
#[test]
fn listings_show_all_of_an_image() {
    for folder in ARCHES {
        let Ok(image) = fs::read(golden().join(folder).join("mem.bin")) else { continue };
        let text = listing(&image, 0x1_0000, arch(folder)).to_string();
        let mut bytes = Vec::new();
        for line in text.lines() {
            let (address, rest) = line.split_once("  ").unwrap();
            let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
            assert_eq!(address, 0x1_0000 + bytes.len() as u64, "{folder}: {line}");
            let (hex, text) = rest.split_once("  ").unwrap();
            let hex = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
            bytes.extend(hex);
            assert!(!text.trim().is_empty(), "{folder}: {line}");
        }
        assert_same(&bytes, &image, folder);
    }
}
