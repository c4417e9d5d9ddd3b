//! What is shown of a file's tests.

use std::fmt;

use harp_jit::OptLevel;

use crate::filetest::{Case, Tally, Verdict, tally};

/// What a file's tests came to.
pub(super) struct FileReport {
    /// The file's name.
    pub(super) name: String,
    /// The cases, or what is wrong with the file, as it is shown.
    pub(super) result: Result<Vec<Case>, String>,
    /// Whether cases that differ in optimization alone are told apart.
    pub(super) several_levels: bool,
}

/// What is shown once for all machines that it is true for.
struct Entry<'a> {
    text: String,
    details: String,
    machines: Vec<String>,
    case: &'a Case,
}

impl FileReport {
    pub(super) fn tally(&self) -> Tally {
        match &self.result {
            Ok(cases) => tally(cases),
            Err(_) => Tally { failed: 1, ..Tally::default() },
        }
    }

    /// The cases that there is something to say about, in the order of their lines, equal ones of several
    /// machines together.
    fn entries<'a>(&self, cases: &'a [Case]) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for case in cases {
            let place = &case.place;
            let line = format!("line {}: {}", place.line, case.line);
            let (text, details) = match &case.verdict {
                Verdict::Passed => continue,
                Verdict::Printed(values) => (format!("{line} -> {values}"), String::new()),
                Verdict::Failed(why) => (format!("FAILED {line}"), why.clone()),
                Verdict::Skipped { function, reason } => {
                    (format!("skipped %{function}"), reason.clone())
                }
            };
            let machine = self.machine(case);
            let same = entries.iter_mut().find(|e| e.text == text && e.details == details);
            match same {
                Some(entry) if entry.machines.contains(&machine) => {}
                Some(entry) => entry.machines.push(machine),
                None => entries.push(Entry { text, details, machines: vec![machine], case }),
            }
        }
        entries.sort_by_key(|entry| entry.case.place.line);
        entries
    }

    fn machine(&self, case: &Case) -> String {
        let level = match case.opt_level {
            _ if !self.several_levels => "",
            OptLevel::None => " unoptimized",
            OptLevel::Speed => " optimized",
        };
        format!("{}{level}", case.arch)
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = match &self.result {
            Ok(cases) => cases,
            Err(error) => return writeln!(f, "{}\n  FAILED\n{error}", self.name),
        };
        let entries = self.entries(cases);
        if !entries.is_empty() {
            writeln!(f, "{}", self.name)?;
        }
        for Entry { text, details, machines, .. } in &entries {
            writeln!(f, "  {text}")?;
            let machines = machines.join(", ");
            match details.as_str() {
                "" => writeln!(f, "    on {machines}")?,
                details => {
                    writeln!(f, "    on {machines}: {}", details.trim().replace('\n', "\n      "))?
                }
            }
        }
        Ok(())
    }
}
