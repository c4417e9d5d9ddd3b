//! What came of the files.

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
    /// From CLIF to finished kernels.
    pub(crate) direct: f64,
    /// The median of the rounds' ratios of the two.
    pub(crate) ratio: f64,
    /// From the source to the module.
    pub(crate) tools: Option<f64>,
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

/// The value in the middle; of none, no number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    let sum: f64 = logarithms.iter().sum();
    (!logarithms.is_empty()).then(|| (sum / logarithms.len() as f64).exp())
}

/// A table of files, what was refused, and sums.
pub(crate) fn table(reports: &[FileReport]) -> String {
    let mut text = String::from(
        "| file | kernels | compiled | refused | panicked | machine | µs | µs from CLIF | ratio | µs of tools | times |\n\
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
        for Times { arch, whole, direct, ratio, tools } in &report.times {
            let times = format!("{arch} | {whole:.0} | {direct:.0} | {ratio:.2}");
            let tools = tools.map_or_else(
                || " | ".to_owned(),
                |tools| format!("{tools:.0} | {:.0}", tools / whole),
            );
            line(&mut text, format_args!("| {counts} | {times} | {tools} |"));
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
    let times = || reports.iter().flat_map(|report| &report.times);
    if let Some(mean) = geometric_mean(times().map(|times| times.ratio)) {
        line(text, format_args!("geometric mean of whole / from CLIF: {mean:.3}"));
    }
    let faster = times().filter_map(|times| Some(times.tools? / times.whole));
    if let Some(mean) = geometric_mean(faster.clone()) {
        let least = faster.fold(f64::INFINITY, f64::min);
        line(
            text,
            format_args!("geometric mean of tools / whole: {mean:.0}, the least: {least:.0}"),
        );
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("text grows");
}
