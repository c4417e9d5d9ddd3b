//! What came of the files.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

/// What came of a file on all machines.
#[derive(Serialize)]
pub(crate) struct FileReport {
    pub(crate) file: String,
    /// Why tools made no module of it.
    pub(crate) no_module: Option<String>,
    pub(crate) kernels: usize,
    /// Of all machines together.
    pub(crate) compiled: usize,
    pub(crate) refused: Vec<Problem>,
    pub(crate) panicked: Vec<Problem>,
    pub(crate) times: Vec<Times>,
}

/// A kernel, or a whole module, that was not finalized for a machine.
#[derive(Serialize)]
pub(crate) struct Problem {
    pub(crate) kernel: String,
    pub(crate) arch: String,
    pub(crate) what: String,
}

/// Microseconds for all kernels of a module on a machine.
#[derive(Serialize)]
pub(crate) struct Times {
    pub(crate) arch: String,
    /// From the module's bytes to finished kernels.
    pub(crate) whole: f64,
    /// From the calls of a builder to finished kernels.
    pub(crate) direct: f64,
    /// From the source to an object for the host.
    pub(crate) host: Option<f64>,
}

impl FileReport {
    pub(crate) fn new(file: &Path) -> FileReport {
        FileReport {
            file: file.display().to_string(),
            no_module: None,
            kernels: 0,
            compiled: 0,
            refused: Vec::new(),
            panicked: Vec::new(),
            times: Vec::new(),
        }
    }
}

/// The least of the numbers; of none, no number.
pub(crate) fn least(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::NAN, f64::min)
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    let sum: f64 = logarithms.iter().sum();
    (!logarithms.is_empty()).then(|| (sum / logarithms.len() as f64).exp())
}

/// A table of files, what was refused, and sums.
pub(crate) fn table(reports: &[FileReport]) -> String {
    let mut text = String::from(
        "| file | kernels | compiled | refused | panicked | machine | µs | µs by a builder | ratio | µs of clang and llc | times |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for report in reports {
        let name = Path::new(&report.file).file_name().unwrap_or_default().to_string_lossy();
        let counts = format!(
            "{name} | {} | {} | {} | {}",
            report.kernels,
            report.compiled,
            report.refused.len(),
            report.panicked.len()
        );
        if report.times.is_empty() {
            line(&mut text, format_args!("| {counts} | | | | | | |"));
        }
        for Times { arch, whole, direct, host } in &report.times {
            let times = format!("{arch} | {whole:.0} | {direct:.0} | {:.2}", whole / direct);
            let host = host.map_or_else(
                || " | ".to_owned(),
                |host| format!("{host:.0} | {:.0}", host / whole),
            );
            line(&mut text, format_args!("| {counts} | {times} | {host} |"));
        }
    }
    text.push('\n');
    for report in reports {
        let FileReport { file, no_module, refused, panicked, .. } = report;
        if let Some(error) = no_module {
            line(&mut text, format_args!("{file}: no module: {error}"));
        }
        for (what, problems) in [("refused", refused), ("panicked", panicked)] {
            for Problem { kernel, arch, what: why } in problems {
                line(&mut text, format_args!("{file}: {kernel} for {arch} {what}: {why}"));
            }
        }
    }
    totals(&mut text, reports);
    text
}

fn totals(text: &mut String, reports: &[FileReport]) {
    let sum = |count: fn(&FileReport) -> usize| reports.iter().map(count).sum::<usize>();
    let made = sum(|report| report.no_module.is_none().into());
    let kernels = sum(|report| report.kernels);
    line(text, format_args!("{} files, {made} with modules, {kernels} kernels", reports.len()));
    let (compiled, refused) = (sum(|report| report.compiled), sum(|report| report.refused.len()));
    let panicked = sum(|report| report.panicked.len());
    line(
        text,
        format_args!(
            "on all machines: {compiled} compiled, {refused} refused, {panicked} panicked"
        ),
    );
    let archs: BTreeSet<&str> =
        reports.iter().flat_map(|report| &report.times).map(|times| times.arch.as_str()).collect();
    for arch in archs {
        means(text, reports, arch);
    }
}

/// The means of a machine's times.
fn means(text: &mut String, reports: &[FileReport], arch: &str) {
    let times =
        || reports.iter().flat_map(|report| &report.times).filter(|times| times.arch == arch);
    if let Some(mean) = geometric_mean(times().map(|times| times.whole / times.direct)) {
        line(
            text,
            format_args!("{arch}: {mean:.3} times as long as by a builder (geometric mean)"),
        );
    }
    let faster = || times().filter_map(|times| Some(times.host? / times.whole));
    if let Some(mean) = geometric_mean(faster()) {
        let least = least(faster().collect());
        line(
            text,
            format_args!(
                "{arch}: clang and llc take {mean:.0} times as long (geometric mean), at least {least:.0} times"
            ),
        );
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("text grows");
}
