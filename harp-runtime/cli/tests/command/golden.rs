//! What the original toolchain gave for the same programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use super::*;

/// The recorded files with an extension, as paths and their architecture ids.
fn recorded(extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap()) {
        let arch = folder.file_name().into_string().unwrap().replace('_', "/");
        for file in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|ext| ext == extension) {
                found.push((file, arch.clone()));
            }
        }
    }
    found.sort();
    found
}

/// Assembles a recorded source into `folder`; the object file.
fn assembled(source: &str, arch: &str, folder: &Path) -> PathBuf {
    let object = folder.join(source).with_extension("hof");
    let source = golden("src").join(source).with_extension("s");
    assert_eq!(succeeds(&["asm", "-a", arch, "-o", text(&object), text(&source)]), b"");
    object
}

/// Assembles and links what a recorded image consists of; the image.
fn linked(program: &str, arch: &str, folder: &Path) -> PathBuf {
    let parts = match program {
        "link" => ["link_a", "lib", "link_b"],
        program => ["boot", "lib", program],
    };
    let objects = parts.map(|part| assembled(part, arch, folder));
    let image = folder.join(program).with_extension("bin");
    let mut args = vec!["ld", "-o", text(&image)];
    args.extend(objects.iter().map(|object| text(object)));
    assert_eq!(succeeds(&args), b"");
    image
}

#[test]
fn assembling_gives_the_originals_object_files() {
    let folder = TempDir::new().unwrap();
    let objects = recorded("hof");
    assert_eq!(objects.len(), 49);
    for (recording, arch) in objects {
        let ours = assembled(stem(&recording), &arch, folder.path());
        assert!(read(&ours) == read(&recording), "{}", recording.display());
    }
}

/// Not all sources have a recorded object.
#[test]
fn every_source_assembles_for_every_machine() {
    let folder = TempDir::new().unwrap();
    let arches: BTreeSet<String> = recorded("hof").into_iter().map(|(_, arch)| arch).collect();
    assert_eq!(arches.len(), 7);
    let sources: Vec<PathBuf> =
        fs::read_dir(golden("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sources.len(), 13);
    for arch in arches {
        for source in &sources {
            assembled(stem(source), &arch, folder.path());
        }
    }
}

#[test]
fn linking_gives_the_originals_images() {
    let folder = TempDir::new().unwrap();
    let images = recorded("bin");
    assert_eq!(images.len(), 52);
    for (recording, arch) in images {
        let ours = linked(stem(&recording), &arch, folder.path());
        assert!(read(&ours) == read(&recording), "{}", recording.display());
    }
}

#[test]
fn disassembling_gives_the_originals_text() {
    let texts = recorded("dis");
    assert_eq!(texts.len(), 49);
    for (recording, _) in texts {
        let ours = succeeds(&["disasm", text(&recording.with_extension("hof"))]);
        assert!(ours == read(&recording), "{}", recording.display());
    }
}

#[test]
fn exact_text_assembles_to_the_same_object_file() {
    for (recording, arch) in recorded("hof") {
        let exact = succeeds(&["disasm", "--exact", text(&recording)]);
        let args = ["asm", "-a", &arch, "-"];
        let again = output_of(harp_with(&args, &exact), &args);
        assert!(again == read(&recording), "{}", recording.display());
    }
}

/// Options of the original for a recorded run.
fn options(program: &str) -> &'static [&'static str] {
    match program {
        "faults" => &["-i", "-s"],
        "float" => &["-i", "-s", "-b", "--reference-floats"],
        _ => &["-i", "-s", "-b"],
    }
}

fn emulated(image: &Path, arch: &str) -> Output {
    let mut args = vec!["emu", "-a", arch];
    args.extend(options(stem(image)));
    args.extend(["-c", text(image)]);
    harp(&args)
}

#[test]
fn runs_print_what_the_original_printed() {
    let runs = recorded("out");
    assert_eq!(runs.len(), 52);
    let mut deadlocks = 0;
    for (recording, arch) in runs {
        let output = emulated(&recording.with_extension("bin"), &arch);
        let ours = String::from_utf8(output.stdout.clone()).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let original = String::from_utf8(read(&recording)).unwrap();
        assert_eq!(ours, original, "{}: {errors}", recording.display());
        // The worker warps of one run do not exist; the original ends there without a word.
        if (stem(&recording), arch.as_str()) == ("warps", "4b16/16/2/1") {
            let (code, errors) = fails(&output);
            assert_eq!(code, EXIT_DEADLOCK);
            assert!(errors.contains("deadlock: warp 0 at barrier"), "{errors}");
            deadlocks += 1;
        } else {
            assert!(output.status.success(), "{}: {errors}", recording.display());
            assert_eq!(errors, "");
        }
    }
    assert_eq!(deadlocks, 1);
}

/// What the original cannot link runs like the same program in the other encoding: it has the same
/// instructions.
#[test]
fn byte_encoded_programs_of_eight_byte_words_run() {
    let folder = TempDir::new().unwrap();
    let peers: Vec<PathBuf> = recorded("out")
        .into_iter()
        .filter(|(_, arch)| arch == "8w32/32/8/8")
        .map(|(recording, _)| recording)
        .collect();
    assert_eq!(peers.len(), 9);
    for recording in peers {
        let image = linked(stem(&recording), "8b32/32/8/8", folder.path());
        let ours = output_of(emulated(&image, "8b32/32/8/8"), &[stem(&recording)]);
        let expected = String::from_utf8(read(&recording)).unwrap();
        assert_eq!(String::from_utf8(ours).unwrap(), expected, "{}", recording.display());
    }
}

/// The original crashes.
#[test]
fn a_program_for_more_lanes_than_there_are_traps() {
    let folder = TempDir::new().unwrap();
    for (arch, lanes) in [("4b16/16/2/1", 2), ("4w32/32/4/4", 4)] {
        let image = linked("lanes8", arch, folder.path());
        let (code, errors) = fails(&emulated(&image, arch));
        assert_eq!(code, EXIT_TRAP);
        // The first of the lanes that there are not.
        let expected = format!("`clone` to lane {lanes}, a warp has {lanes} lanes");
        assert!(errors.contains(&expected), "{errors}");
    }
}
