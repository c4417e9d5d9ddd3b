//! Progress of long runs: a bar on a terminal, else a line now and then.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// So many lines are written where there is no terminal.
const LINES: u64 = 20;

/// How much of something is done. Threads may share it.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    done: AtomicU64,
    count: u64,
    what: &'static str,
}

impl Progress {
    /// Of so many things, which are called `what` together. Panics if `what` is part of no template of a bar.
    pub fn new(count: u64, what: &'static str) -> Progress {
        let template =
            format!("{{elapsed_precise}} {{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).expect("a word needs no escape");
        let bar = ProgressBar::new(count).with_style(style);
        Progress { bar, done: AtomicU64::new(0), count, what }
    }

    /// So many more are done.
    pub fn inc(&self, more: u64) {
        let before = self.done.fetch_add(more, Ordering::Relaxed);
        self.bar.inc(more);
        let part = |done: u64| done * LINES / self.count.max(1);
        if self.bar.is_hidden() && part(before) != part(before + more) {
            let Progress { count, what, .. } = self;
            let (done, elapsed) = (before + more, HumanDuration(self.bar.elapsed()));
            // Nobody may listen, and the work goes on.
            let _ = writeln!(io::stderr(), "{done} of {count} {what} after {elapsed}");
        }
    }

    /// All is done: the bar goes.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
