//! Cranelift's file tests on HARP machines.
//!
//! A file test is a CLIF text whose comments state the results of calls:
//!
//! ```text
//! test interpret
//! test run
//! target aarch64
//!
//! function %double(i32) -> i32 {
//! block0(v0: i32):
//!     v1 = iadd v0, v0
//!     return v1
//! }
//! ; run: %double(21) == 42
//! ; print: %double(-1)
//! ```
//!
//! Of the lines before the functions only `set opt_level` counts, unless the configuration has a level; others,
//! such as the names of machines, are ignored: each `; run:` and `; print:` line is run, on one lane of each
//! configured HARP machine. Functions may call each other by name, whatever their order. Data that they refer to
//! is defined by comments `; data: %name type value...` ([`TextData`](harp_jit::text::TextData)).
//!
//! The result of a line on one machine is one [`Case`]. A function that uses what a machine does not have
//! is skipped with the reason; but on machines with the extension functions of scalar integers may be
//! skipped for listed constructs only. A trap is a failure.
#![forbid(unsafe_code)]

mod command;
mod constructs;
mod libcalls;
mod link;

use harp_isa::ArchId;
use harp_jit::text::{TextError, TextFile, argument_words, result_values};
use harp_jit::{CompileOptions, Execution, OptLevel, SourcePlace};

use harp_runtime::ProgramError;

use command::{Line, shown};
use link::{Linked, Missing};

/// The size of the stack of programs from CLIF text: some functions recurse deeply or have large slots.
pub const STACK_BYTES: u32 = 1 << 21;

/// Machines and options of a run of file tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTestConfig {
    /// The machines.
    pub archs: Vec<ArchId>,
    /// The optimization levels; all lines run with each. If it is empty, the levels that the file sets by
    /// `set opt_level` are used, or `speed` if it sets none.
    pub opt_levels: Vec<OptLevel>,
    /// The most instructions that a call may take.
    pub fuel: u64,
    /// Whether the results of all stages of compilation are checked.
    pub verify: bool,
}

impl Default for FileTestConfig {
    /// `harp32` and `harp64`, with and without the extension; optimized as the file says; 50 million
    /// instructions.
    fn default() -> FileTestConfig {
        FileTestConfig {
            archs: default_archs(),
            opt_levels: Vec::new(),
            fuel: 50_000_000,
            verify: CompileOptions::default().verify,
        }
    }
}

/// The presets, with and without the extension.
fn default_archs() -> Vec<ArchId> {
    let ids = ["harp32", "harp64", "harp32+x", "harp64+x"];
    ids.iter().map(|id| id.parse().expect("a preset")).collect()
}

/// The result of a line on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The machine.
    pub arch: ArchId,
    /// The level at which the function was compiled.
    pub opt_level: OptLevel,
    /// The place of the line.
    pub place: SourcePlace,
    /// The line from `run` or `print` on.
    pub line: String,
    /// The result.
    pub verdict: Verdict,
}

/// The result of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call gave what was expected.
    Passed,
    /// The call of a `; print:` line gave these values.
    Printed(String),
    /// The call gave something else; or the function must compile but does not; or the line is not valid.
    Failed(String),
    /// The function uses something that the machine does not have.
    Skipped {
        /// The function that uses it.
        function: String,
        /// What the machine does not have.
        reason: String,
    },
}

/// How many lines passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Passed or printed.
    pub passed: usize,
    /// Failed; a file that cannot be read counts as one.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// How many of the cases passed, failed and were skipped.
pub fn tally(cases: &[Case]) -> Tally {
    let mut tally = Tally::default();
    for case in cases {
        match case.verdict {
            Verdict::Passed | Verdict::Printed(_) => tally.passed += 1,
            Verdict::Failed(_) => tally.failed += 1,
            Verdict::Skipped { .. } => tally.skipped += 1,
        }
    }
    tally
}

/// Runs the lines of a text on all machines: machine by machine, the lines in their order. `file` is the name
/// of the text in source places.
///
/// # Errors
///
/// If the text is not CLIF.
pub fn run_text(text: &str, file: &str, config: &FileTestConfig) -> Result<Vec<Case>, TextError> {
    let parsed = TextFile::parse(text, file)?;
    let lines = command::lines(&parsed);
    let opt_levels = match config.opt_levels.is_empty() {
        true => levels_set(&parsed),
        false => config.opt_levels.clone(),
    };
    let mut cases = Vec::new();
    for &arch in &config.archs {
        for &opt_level in &opt_levels {
            let options = CompileOptions {
                opt_level,
                execution: Execution::SingleLane,
                stack_bytes: STACK_BYTES,
                verify: config.verify,
                ..CompileOptions::default()
            };
            let mut linked = Linked::new(&parsed, arch, options);
            cases.extend(lines.iter().map(|line| Case {
                arch,
                opt_level,
                place: line.place.clone(),
                line: line.text.clone(),
                verdict: run_line(&parsed, line, &mut linked, config.fuel),
            }));
        }
    }
    Ok(cases)
}

/// The levels of a file's `set opt_level` lines, each once. Cranelift's `speed_and_size` is `speed` here.
fn levels_set(file: &TextFile) -> Vec<OptLevel> {
    let mut levels = Vec::new();
    for line in file.header() {
        let mut words = line.text.split_whitespace();
        if words.next() != Some("set") {
            continue;
        }
        let level = words.filter_map(|word| word.strip_prefix("opt_level=")).next_back();
        let level = match level {
            Some("none") => OptLevel::None,
            Some(_) => OptLevel::Speed,
            None => continue,
        };
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    if levels.is_empty() { vec![OptLevel::Speed] } else { levels }
}

fn run_line(file: &TextFile, line: &Line, linked: &mut Linked<'_>, fuel: u64) -> Verdict {
    let function = &file.functions()[line.function];
    let command = match &line.command {
        Ok(command) => command,
        Err(message) => return Verdict::Failed(message.clone()),
    };
    let program = match linked.program(function) {
        Ok(program) => program,
        Err(Missing::Unsupported { function, reason }) => {
            return Verdict::Skipped { function, reason };
        }
        Err(Missing::Failed(message)) => return Verdict::Failed(message),
    };
    let (signature, word) = (&function.func.signature, program.arch().word());
    let args = argument_words(&command.args, &signature.params, word);
    match program.call(&args, Some(fuel)) {
        Ok(outcome) => {
            let results = result_values(&outcome.results, &signature.returns, word);
            match command.expected {
                command::Expected::Anything => Verdict::Printed(shown(&results)),
                _ if command.expected.holds(&results) => Verdict::Passed,
                _ => Verdict::Failed(format!("got {}", shown(&results))),
            }
        }
        Err(ProgramError::Trap(trap)) => Verdict::Failed(format!("trapped in {trap}")),
        Err(error) => Verdict::Failed(error.to_string()),
    }
}
