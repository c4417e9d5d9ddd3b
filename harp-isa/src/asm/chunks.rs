//! How a text is divided into chunks.
//!
//! The first item after a *break* starts a chunk. Breaks are labels, `.perm`, `.align`, `.entry`,
//! `.global`, and a change between code and data. A chunk has the name of the last label, which
//! several chunks may share. A label with no item before the next label or the end makes an empty
//! chunk. `.chunk` starts a chunk at once, which a change between code and data does not end.

use crate::object::{Chunk, Object, Permissions, Reference};
use crate::{ArchId, WordSize};

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Code,
    Data,
}

/// The items that an open chunk takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Items of one kind; another kind starts a chunk.
    Only(Content),
    /// All items: `.chunk` began it.
    Any,
}

/// The properties of a chunk that `.chunk` states.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) entry: bool,
    pub(super) global: bool,
    pub(super) permissions: Permissions,
}

/// Gathers code and data into chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    arch: ArchId,
    chunks: Vec<Chunk>,
    entry: usize,
    size: u64,
    /// The items that the last chunk still takes; `None` if it is closed.
    open: Option<Open>,
    name: String,
    /// Whether the last label still has no item.
    bare_label: bool,
    alignment: Option<u64>,
    permissions: Permissions,
    marks: Marks,
    /// Whether there was an item since the last break, not counting changes of content.
    items: bool,
}

/// The marks `.entry` and `.global`, valid until the next label, `.perm` or `.align` that follows an item.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    entry: bool,
    global: bool,
}

impl Chunks {
    pub(super) fn new(arch: ArchId) -> Chunks {
        Chunks {
            arch,
            chunks: Vec::new(),
            entry: 0,
            size: 0,
            open: None,
            name: String::new(),
            bare_label: false,
            alignment: None,
            permissions: Permissions::READ,
            marks: Marks::default(),
            items: false,
        }
    }

    pub(super) fn label(&mut self, name: &str) {
        self.finish_label();
        self.end_marks();
        name.clone_into(&mut self.name);
        self.bare_label = true;
    }

    pub(super) fn permissions(&mut self, permissions: Permissions) {
        self.end_marks();
        self.permissions = permissions;
    }

    pub(super) fn align(&mut self, alignment: u64) {
        self.end_marks();
        self.alignment = Some(alignment);
    }

    pub(super) fn mark_entry(&mut self) {
        self.interrupt();
        self.marks.entry = true;
    }

    pub(super) fn mark_global(&mut self) {
        self.interrupt();
        self.marks.global = true;
    }

    /// The bytes emitted so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Appends an item; `reference` makes a reference from its offset in the chunk.
    pub(super) fn emit(
        &mut self,
        content: Content,
        bytes: &[u8],
        reference: impl FnOnce(u64) -> Option<Reference>,
    ) {
        if self.open != Some(Open::Any) && self.open != Some(Open::Only(content)) {
            let default = match (content, self.arch.word()) {
                (Content::Code, _) => 0,
                (Content::Data, WordSize::Four) => 4,
                (Content::Data, WordSize::Eight) => 8,
            };
            let alignment = self.alignment.take().unwrap_or(default);
            self.start(alignment);
            self.open = Some(Open::Only(content));
        }
        self.bare_label = false;
        self.items = true;
        self.size += bytes.len() as u64;
        let chunk = self.chunks.last_mut().expect("one was started");
        chunk.references.extend(reference(chunk.data.len() as u64));
        chunk.data.extend_from_slice(bytes);
    }

    /// Starts a chunk with exactly these properties, whatever marks, alignment or label are pending. Items after
    /// its end keep its name and permissions.
    pub(super) fn begin(&mut self, header: Header, alignment: u64, address: Option<u64>) {
        self.finish_label();
        let Header { name, entry, global, permissions } = header;
        (self.name, self.permissions, self.bare_label) = (name, permissions, false);
        self.marks = Marks { entry, global };
        self.alignment = None;
        self.start(alignment);
        self.chunks.last_mut().expect("one was started").address = address;
        self.marks = Marks::default();
        self.items = false;
        self.open = Some(Open::Any);
    }

    /// Adds a reference to the chunk that takes items; false if there is none.
    pub(super) fn refer(&mut self, reference: Reference) -> bool {
        let chunk = self.chunks.last_mut().filter(|_| self.open.is_some());
        chunk.map(|chunk| chunk.references.push(reference)).is_some()
    }

    pub(super) fn finish(mut self) -> Object {
        self.finish_label();
        Object { arch: self.arch, chunks: self.chunks, entry: self.entry }
    }

    fn start(&mut self, alignment: u64) {
        if self.marks.entry {
            self.entry = self.chunks.len();
        }
        self.chunks.push(Chunk {
            name: self.name.clone(),
            alignment,
            permissions: self.permissions,
            global: self.marks.global,
            address: None,
            data: Vec::new(),
            references: Vec::new(),
        });
    }

    /// Makes an empty chunk for a label without items.
    fn finish_label(&mut self) {
        if self.bare_label {
            self.alignment = None;
            self.start(0);
        }
    }

    fn interrupt(&mut self) {
        self.open = None;
        self.items = false;
    }

    fn end_marks(&mut self) {
        if self.items {
            self.marks = Marks::default();
        }
        self.interrupt();
    }
}
