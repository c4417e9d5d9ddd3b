//! Finalizes all kernels of the files in folders: OpenCL C, WGSL and SPIR-V modules of any origin. What does not become a
//! kernel is listed with the instruction that is not supported.
//!
//! ```text
//! cargo run --release -p harp-spirv --example folder -- FOLDER... [--only cl,wgsl] [--rounds 9] [--json]
//! ```
//!
//! Times are from a module's bytes to all its kernels; the same from the kernels' functions, which cranelift-frontend builds
//! anew, to kernels; and of OpenCL C from the source to an object for the host, by clang and llc. OpenCL C takes
//! clang-14, llvm-spirv-14 and llc-14, WGSL the command `naga`. The shortest of some rounds counts, since what else the
//! computer does can only add to it. Memory comes from the allocator that `harp` has.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod finalize;
mod replay;
mod report;
mod sources;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Parser;
use harp_isa::{ArchId, WordSize};

use report::FileReport;
use sources::Tools;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Options {
    /// Folders, of which all files are taken, or single files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Only files that end so.
    #[arg(long, value_delimiter = ',', default_value = "cl,wgsl,spv")]
    only: Vec<String>,
    /// The machines.
    #[arg(long, value_delimiter = ',', default_value = "harp32,harp32+x,harp64,harp64+x")]
    arch: Vec<ArchId>,
    /// How often each time is taken; the shortest counts. With 0 nothing is timed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// More for clang, such as `--clang=-Iinclude`.
    #[arg(long, allow_hyphen_values = true)]
    clang: Vec<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let tools = Tools::new(options.clang, options.rounds)?;
    let mut files = Vec::new();
    for path in &options.paths {
        sources::collect(path, &options.only, &mut files)?;
    }
    files.sort();
    // What panics is reported; the message would only break the table.
    std::panic::set_hook(Box::new(|_| {}));
    let reports: Vec<FileReport> =
        files.iter().map(|file| file_report(file, &tools, &options.arch, options.rounds)).collect();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else {
        print!("{}", report::table(&reports));
    }
    Ok(())
}

/// Makes a file's modules, and all kernels of them for all machines.
fn file_report(file: &Path, tools: &Tools, archs: &[ArchId], rounds: usize) -> FileReport {
    let mut report = FileReport::new(file);
    for word in [WordSize::Four, WordSize::Eight] {
        let mut archs = archs.iter().filter(|arch| arch.word() == word).peekable();
        if archs.peek().is_none() {
            continue;
        }
        let made = match tools.module(file, word) {
            Ok(made) => made,
            Err(error) => {
                report.no_module = Some(error);
                return report;
            }
        };
        for &arch in archs {
            finalize::kernels(&made, arch, rounds, &mut report);
        }
    }
    report
}
