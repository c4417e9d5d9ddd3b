//! Floors, not circles: a module imports only what stands on a floor below its own.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemMod, ItemUse, Macro, Meta, UseTree};

use super::rust_files;

/// The modules of a crate, floor by floor from the ground up.
type Floors = &'static [&'static [&'static str]];

const CRATES: [(&str, Floors); 11] = [
    (
        "harp-isa/src",
        &[
            &["error_list", "reg", "symbol"],
            &["arch"],
            &["abi", "opcode"],
            &["operand"],
            &["table"],
            &["instruction", "sharing"],
            &["encoding"],
            &["disassemble"],
            &["object"],
            &["asm", "link"],
        ],
    ),
    (
        "harp-emu/src",
        &[
            &["config", "console", "interrupt", "notation", "random", "stats", "word"],
            &["device", "memory", "reference_float", "trap", "warp"],
            &["inspect", "json", "stop", "tlb"],
            &["barrier"],
            &["host_code", "observe"],
            &["exec", "profile"],
            &["core"],
            &["machine"],
        ],
    ),
    (
        "harp-emu/native/src",
        &[
            &["calls", "class", "shape"],
            &["body", "rows"],
            &["faint", "state"],
            &["rules"],
            &["frame", "observe", "region"],
            &["begin", "code", "homes", "live", "needs"],
            &["emit", "record", "stats", "waiting"],
            &["translated"],
            &["lent"],
            &["adopted"],
            &["known"],
            &["shared"],
            &["tier"],
            &["native"],
        ],
    ),
    (
        "harp-jit/check/src",
        &[
            &["error", "number", "record"],
            &["assumption", "code", "places"],
            &["lanes", "op", "structure"],
            &["frame", "regions", "shared", "skeleton"],
            &["term"],
            &["numbering", "provenance"],
            &["fact", "repeats"],
            &["state"],
            &["join", "live", "names", "value"],
            &["merge", "selection"],
            &["transfer"],
            &["solve"],
        ],
    ),
    (
        "harp-jit/src",
        &[
            &[
                "abi", "aliases", "constant", "forms", "lock", "scalar", "source", "stats",
                "times", "width",
            ],
            &["intrinsic"],
            &["analysis"],
            &["print", "profile", "routine"],
            &["error", "plan", "strategy", "vcode"],
            &[
                "convergence",
                "groups",
                "if_convert",
                "options",
                "regalloc",
                "sharing",
                "symbols",
                "validate",
            ],
            &["accesses", "emit", "isel", "legalize", "mid_end"],
            &["divergence", "function", "precheck"],
            &["builder"],
            &["kernel", "unit"],
            &["identity"],
            &["pipeline"],
            &["library"],
            &["compiler"],
            &["module"],
            &["text"],
        ],
    ),
    (
        "harp-jit/spirv/src",
        &[
            &["error", "prologue", "sets"],
            &["reader"],
            &["decorations"],
            &["types"],
            &["constants", "values"],
            &["fold"],
            &["module"],
            &["escape", "tails"],
            &["unit"],
            &["function"],
            &["half"],
            &["instruction"],
            &["extended"],
            &["kernel"],
        ],
    ),
    ("harp-runtime/library/src", &[&["lane", "words"], &["lock"], &["call", "grid", "warps"]]),
    (
        "harp-runtime/monitor/src",
        &[
            &["finding", "items", "unwritten"],
            &["checks", "races", "regions"],
            &["ordered"],
            &["monitor"],
        ],
    ),
    (
        "harp-runtime/src",
        &[
            &["heap", "kept", "kernel", "observe", "report", "sealed"],
            &["cache", "finding"],
            &["error", "image", "memory", "profile", "program"],
            &["tier"],
            &["config"],
            &["device"],
            &["buffer"],
            &["args"],
            &["snapshot"],
            &["launch"],
            &["queue", "replay"],
        ],
    ),
    (
        "tests/oracle/src",
        &[
            &["functions", "lanes", "meetings", "memory"],
            &["atomic", "case"],
            &["run"],
            &["interpret"],
        ],
    ),
    (
        "tests/src",
        &[
            &["base_forms", "machines", "progress", "quality", "saxpy", "seeds"],
            &["generate"],
            &["random", "workloads"],
            &["fuzzing", "mutate"],
        ],
    ),
];

#[test]
fn modules_import_from_floors_below() {
    for (folder, floors) in CRATES {
        let mut floor_of = BTreeMap::new();
        for (number, floor) in floors.iter().enumerate() {
            for module in *floor {
                assert_eq!(
                    floor_of.insert(*module, number),
                    None,
                    "{folder}: `{module}` stands twice"
                );
            }
        }
        let imports = imports(folder);
        assert!(imports.values().any(|others| !others.is_empty()), "{folder} imports nothing?");
        for (module, others) in &imports {
            let Some(own) = floor_of.get(module.as_str()) else {
                panic!("{folder}: `{module}` stands on no floor");
            };
            for (other, file) in others {
                let below = floor_of.get(other.as_str()).is_some_and(|floor| floor < own);
                assert!(
                    below,
                    "{file}: `{module}` imports `{other}`, which is on no floor below it"
                );
            }
        }
        for module in floor_of.keys() {
            assert!(imports.contains_key(*module), "{folder} has no module `{module}`");
        }
    }
}

/// What the modules of a crate import of each other, tests aside, each with a file that does.
fn imports(folder: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for (name, text) in rust_files(folder) {
        let path = name[folder.len() + 1..].trim_end_matches(".rs").trim_end_matches("/mod");
        let path: Path = path.split('/').map(str::to_owned).collect();
        files.insert(path, (syn::parse_file(&text).expect("the crate compiles"), name));
    }
    let (root, _) = files.remove(&["lib".to_owned()][..]).expect("a crate has a root");
    let named = Visitor::of(&root, &[]);
    let modules: BTreeSet<String> = files.keys().map(|path| path[0].clone()).collect();
    // Names that the root gives to what modules hold.
    let given = named.uses.iter().filter(|path| path.len() > 1 && modules.contains(&path[0]));
    let given: BTreeMap<&str, &str> =
        given.map(|path| (path[path.len() - 1].as_str(), path[0].as_str())).collect();
    let seen: BTreeMap<&Path, Visitor> =
        files.iter().map(|(path, (file, _))| (path, Visitor::of(file, path))).collect();
    let all = seen.values().chain([&named]);
    let tests: BTreeSet<&Path> = all.flat_map(|seen| &seen.tests).collect();
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, seen) in &seen {
        if (1..=path.len()).any(|length| tests.contains(&path[..length].to_vec())) {
            continue;
        }
        let imports = found.entry(path[0].clone()).or_default();
        for used in &seen.uses {
            let Some(first) = used.first() else { continue };
            let other = given.get(first.as_str()).copied().unwrap_or(first);
            if modules.contains(other) && other != path[0] {
                imports.insert(other.to_owned(), files[*path].1.clone());
            }
        }
    }
    found
}

/// A module, or something in one, from the root of its crate on.
type Path = Vec<String>;

/// What a file names.
struct Visitor {
    /// The module that is being looked at.
    module: Path,
    /// Paths that it names from the root of the crate on.
    uses: Vec<Path>,
    /// Modules in files of their own that are tests.
    tests: Vec<Path>,
}

impl Visitor {
    fn of(file: &syn::File, module: &[String]) -> Visitor {
        let mut visitor =
            Visitor { module: module.to_owned(), uses: Vec::new(), tests: Vec::new() };
        visitor.visit_file(file);
        visitor
    }

    fn name(&mut self, segments: &[String]) {
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let path = match segments.first().map(String::as_str) {
            Some("crate") => segments[1..].to_vec(),
            Some("super") if ups <= self.module.len() => {
                [&self.module[..self.module.len() - ups], &segments[ups..]].concat()
            }
            // In the root itself.
            Some(_) if self.module.is_empty() => segments.to_vec(),
            _ => return,
        };
        self.uses.push(path);
    }

    fn tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.name(&with(&name.ident)),
            UseTree::Rename(name) => self.name(&with(&name.ident)),
            UseTree::Glob(_) => self.name(before),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
        }
    }
}

impl Visit<'_> for Visitor {
    fn visit_item_use(&mut self, item: &ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        let inner = [&self.module[..], &[item.ident.to_string()]].concat();
        match (is_test(&item.attrs), &item.content) {
            (true, None) => self.tests.push(inner),
            (true, Some(_)) => {}
            (false, _) => {
                let outer = std::mem::replace(&mut self.module, inner);
                visit::visit_item_mod(self, item);
                self.module = outer;
            }
        }
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if !self.module.is_empty() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.name(&segments.collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &Macro) {
        // Arguments of a macro are no syntax yet: words, of which those behind `crate` count.
        let text = item.tokens.to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        for part in words.windows(3).filter(|part| part[..2] == ["crate", "::"]) {
            self.name(&["crate".to_owned(), part[2].to_owned()]);
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => attribute.path().is_ident("test"),
    })
}
