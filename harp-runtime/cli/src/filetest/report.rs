//! The report on a file's tests.

use std::fmt;

use harp_jit::OptLevel;

use harp_filetest::{Case, Tally, Verdict, tally};

/// The results of a file's tests.
pub(super) struct FileReport {
    /// The file's name.
    pub(super) name: String,
    /// The cases, or the message that says what is wrong with the file.
    pub(super) result: Result<Vec<Case>, String>,
}

/// The report on a line, or on a function that is skipped.
struct Entry {
    text: String,
    /// The first such line.
    line: u32,
    /// The messages, each with the machines that it holds for.
    details: Vec<(String, Vec<String>)>,
}

impl Entry {
    fn add(&mut self, details: &str, machine: String) {
        let details = details.trim();
        match self.details.iter_mut().find(|(known, _)| known == details) {
            // A skipped function is shown once, however many lines it has.
            Some((_, machines)) if machines.contains(&machine) => {}
            Some((_, machines)) => machines.push(machine),
            None => self.details.push((details.to_owned(), vec![machine])),
        }
    }
}

impl FileReport {
    pub(super) fn tally(&self) -> Tally {
        match &self.result {
            Ok(cases) => tally(cases),
            Err(_) => Tally { failed: 1, ..Tally::default() },
        }
    }

    /// The cases that have a message, in the order of their lines, with those of several machines
    /// together.
    fn entries(cases: &[Case]) -> Vec<Entry> {
        // The level is shown if cases differ in it.
        let several_levels = cases.windows(2).any(|pair| pair[0].opt_level != pair[1].opt_level);
        let mut entries: Vec<Entry> = Vec::new();
        for case in cases {
            let line = format!("line {}: {}", case.place.line, case.line);
            let (text, details) = match &case.verdict {
                Verdict::Passed => continue,
                Verdict::Printed(values) => (format!("{line} -> {values}"), ""),
                Verdict::Failed(why) => (format!("FAILED {line}"), why.as_str()),
                Verdict::Skipped { function, reason } => {
                    (format!("skipped %{function}"), reason.as_str())
                }
            };
            let known = entries.iter().position(|entry| entry.text == text);
            let index = known.unwrap_or_else(|| {
                entries.push(Entry { text, line: case.place.line, details: Vec::new() });
                entries.len() - 1
            });
            entries[index].add(details, machine(case, several_levels));
        }
        entries.sort_by_key(|entry| entry.line);
        entries
    }
}

fn machine(case: &Case, several_levels: bool) -> String {
    let level = match case.opt_level {
        _ if !several_levels => "",
        OptLevel::None => " unoptimized",
        _ => " optimized",
    };
    format!("{}{level}", case.arch)
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = match &self.result {
            Ok(cases) => cases,
            Err(error) => return writeln!(f, "{}\n  FAILED\n{error}", self.name),
        };
        let entries = Self::entries(cases);
        if !entries.is_empty() {
            writeln!(f, "{}", self.name)?;
        }
        for entry in &entries {
            writeln!(f, "  {}", entry.text)?;
            for (details, machines) in &entry.details {
                let machines = machines.join(", ");
                match details.as_str() {
                    "" => writeln!(f, "    on {machines}")?,
                    details => {
                        writeln!(f, "    on {machines}: {}", details.replace('\n', "\n      "))?;
                    }
                }
            }
        }
        Ok(())
    }
}
