//! Counts of instructions of the benchmark kernels and of small functions, kept in
//! `docs/code-quality.md`. They are no expectation of right code, which other tests judge, but of good
//! code: who makes them smaller or larger shows it. `HARP_BLESS=1` writes the table anew.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]
#![expect(clippy::print_stdout, reason = "who asks for the code with HARP_SHOW gets it")]

use std::fmt::Write as _;
use std::{env, fs};

use harp_isa::ArchId;
use harp_jit::{CompileOptions, Execution, KernelSource, Linkage, Module};
use harp_tests::functions::name;
use harp_tests::harpbench::peers::WORKLOADS;
use harp_tests::quality::{Counts, KINDS};
use harp_tests::saxpy;
use harp_tests::workloads::handwritten;

/// Few and many registers, both words, both encodings, with and without the extension.
const ARCHS: [&str; 6] =
    ["harp32", "4w32/16/32/16+x", "4b16/16/8/4", "harp64", "harp64+x", "8w64/64/8/4"];

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/code-quality.md");
const START: &str = "<!-- counts -->\n";
const END: &str = "<!-- end of counts -->\n";

fn options(execution: Execution) -> CompileOptions {
    CompileOptions { execution, verify: true, ..CompileOptions::default() }
}

fn kernel(source: KernelSource) -> Counts {
    let kernel = source.compile(&options(Execution::Simt)).unwrap();
    if env::var_os("HARP_SHOW").is_some() {
        println!("{} on {}:\n{}", kernel.name(), kernel.arch(), kernel.disassembly());
    }
    Counts::of(kernel.code(), kernel.arch()).unwrap()
}

/// A row for each kernel and for each function, which runs on one lane.
fn rows(arch: ArchId) -> Vec<(String, Counts)> {
    let mut rows = vec![("saxpy".to_owned(), kernel(saxpy::source(arch).unwrap()))];
    for workload in WORKLOADS.into_iter().filter(|workload| workload.name != "saxpy") {
        rows.push((workload.name.to_owned(), kernel((workload.source)(arch).unwrap())));
    }
    for func in handwritten(arch.word()) {
        let mut module = Module::new(arch, options(Execution::SingleLane));
        let id = module.declare_function(&name(&func), Linkage::Export, &func.signature).unwrap();
        module.define_function(id, &func).unwrap();
        let compiled = module.finish().unwrap();
        if env::var_os("HARP_SHOW").is_some() {
            println!("{} on {arch}:\n{}", name(&func), compiled.functions()[0].disassembly());
        }
        let counts = Counts::of(compiled.functions()[0].code(), arch).unwrap();
        rows.push((format!("`{}`", name(&func)), counts));
    }
    rows
}

fn table() -> String {
    let mut table = "| | machine | all |".to_owned();
    KINDS.iter().for_each(|name| write!(table, " {name} |").unwrap());
    table.push_str("\n| --- | --- |");
    (0..=KINDS.len()).for_each(|_| table.push_str(" --: |"));
    table.push('\n');
    let archs = ARCHS.map(|id| (id, rows(id.parse().unwrap())));
    for row in 0..archs[0].1.len() {
        for (id, rows) in &archs {
            let (name, counts) = &rows[row];
            writeln!(table, "| {name} | {id} | {counts} |").unwrap();
        }
    }
    table
}

#[test]
fn the_counts_are_those_of_the_document() {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = text.split_once(START).expect("a mark before the table");
    let (kept, after) = rest.split_once(END).expect("a mark behind the table");
    let now = table();
    if env::var_os("HARP_BLESS").is_some() {
        fs::write(DOCUMENT, format!("{before}{START}{now}{END}{after}")).unwrap();
        return;
    }
    let differ: Vec<_> = kept.lines().zip(now.lines()).filter(|(kept, now)| kept != now).collect();
    assert!(
        differ.is_empty() && kept.lines().count() == now.lines().count(),
        "docs/code-quality.md has other counts; HARP_BLESS=1 writes them anew:\n{differ:#?}"
    );
}
