//! `harp filetest`: Cranelift's file tests on HARP machines.

mod report;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use harp_isa::ArchId;
use harp_isa::asm::Colors;
use harp_jit::OptLevel;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use walkdir::WalkDir;

use super::error::CliError;
use super::files::Input;
use super::numbers::number;
use harp_filetest::{FileTestConfig, Tally, run_text};
use report::FileReport;

/// Run Cranelift's file tests
#[derive(Args)]
#[command(
    long_about = "Run Cranelift's file tests

Every `; run:` and `; print:` line of the files is compiled and run on one lane of each machine. The
files' `target` lines and other kinds of tests are ignored. Their `set opt_level` holds unless `--opt`
overrides it.

The output shows the lines that fail, with the expected and the actual result; functions that are skipped
because they use what the machine does not have, with the reason; the results of `; print:` lines; and last
the counts. One line on one machine counts one. On machines with the extension, functions of scalar
integers may be skipped only for listed constructs (thread-local storage, calls that catch exceptions, stack
switching, addresses narrower than a word, the pinned register). If they do not compile for any other reason,
their lines fail.",
    after_help = "Examples:
  harp filetest tests/filetests
  harp filetest -a harp32 -a 4w32/16/8/8+x icmp.clif call.clif
  harp filetest --opt both --fuel 1000000 loops.clif"
)]
pub(super) struct FileTest {
    /// Files, and folders with `*.clif` files; `-` is standard input
    #[arg(value_name = "FILE|DIR", required = true)]
    inputs: Vec<Input>,
    /// A machine; may be given several times [default: harp32, harp64, harp32+x, harp64+x]
    #[arg(short, long, value_name = "ARCH")]
    arch: Vec<ArchId>,
    /// How much to optimize [default: the file's `set opt_level`, else speed]
    #[arg(long, value_name = "LEVEL")]
    opt: Option<Levels>,
    /// The most instructions that a call may take
    #[arg(long, value_name = "N", default_value = "50000000", value_parser = number)]
    fuel: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Levels {
    /// Only what code generation needs
    None,
    /// Cranelift's mid-end
    Speed,
    /// Both: each line is run at both levels
    Both,
}

impl FileTest {
    pub(super) fn run(self) -> Result<(), CliError> {
        let files = self.files()?;
        let config = self.config();
        let bar = match io::stderr().is_terminal() && files.len() > 1 {
            true => ProgressBar::new(files.len() as u64).with_style(style()),
            false => ProgressBar::hidden(),
        };
        let reports: Vec<FileReport> =
            files.par_iter().map(|file| run_file(file, &config)).inspect(|_| bar.inc(1)).collect();
        bar.finish_and_clear();

        let mut out = BufWriter::new(anstream::stdout().lock());
        let mut total = Tally::default();
        for report in reports {
            total += report.tally();
            write!(out, "{report}").map_err(CliError::stdout)?;
        }
        writeln!(out, "{total}").and_then(|()| out.flush()).map_err(CliError::stdout)?;
        match total.failed {
            0 => Ok(()),
            _ => Err(CliError::TestsFailed),
        }
    }

    fn config(&self) -> FileTestConfig {
        let mut config = FileTestConfig { fuel: self.fuel, ..FileTestConfig::default() };
        if !self.arch.is_empty() {
            config.archs.clone_from(&self.arch);
        }
        config.opt_levels = match self.opt {
            None => Vec::new(),
            Some(Levels::None) => vec![OptLevel::None],
            Some(Levels::Speed) => vec![OptLevel::Speed],
            Some(Levels::Both) => vec![OptLevel::None, OptLevel::Speed],
        };
        config
    }

    /// The files, those of folders in the order of their names.
    fn files(&self) -> Result<Vec<Input>, CliError> {
        let mut files = Vec::new();
        for input in &self.inputs {
            match input {
                Input::File(path) if path.is_dir() => files.extend(files_in(path, input)?),
                file => files.push(file.clone()),
            }
        }
        Ok(files)
    }
}

fn files_in(folder: &Path, input: &Input) -> Result<Vec<Input>, CliError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry =
            entry.map_err(|error| CliError::Read { file: input.clone(), source: error.into() })?;
        let is_test = entry.path().extension().is_some_and(|extension| extension == "clif");
        if entry.file_type().is_file() && is_test {
            files.push(Input::File(PathBuf::from(entry.path())));
        }
    }
    match files.is_empty() {
        true => Err(CliError::NoFileTests { folder: input.clone() }),
        false => Ok(files),
    }
}

/// Runs the tests of one file. An error in the file is a failure of that file only: the others still run.
fn run_file(file: &Input, config: &FileTestConfig) -> FileReport {
    let name = file.name();
    let result = file.read_text().map_err(|error| error.report()).and_then(|text| {
        run_text(&text, &name, config).map_err(|error| error.render(&text, Colors::Ansi))
    });
    FileReport { name, result }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:40} {pos}/{len} files")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
