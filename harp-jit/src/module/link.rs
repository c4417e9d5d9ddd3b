//! Linking within a module: the definitions that a kernel needs, and the module's object.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_module::{DataId, FuncId, FuncOrDataId};
use harp_isa::object::{Chunk, Object, Permissions};
use hashbrown::HashSet;

use super::{Data, Module, ModuleError, is_global};
use crate::function::{self, CompiledFunction, FunctionCode, Linked};

/// A finished module.
#[derive(Clone, Debug)]
pub struct CompiledModule {
    object: Object,
    functions: Vec<FunctionCode>,
    stack_bytes: u32,
}

impl CompiledModule {
    /// The functions and data, to link with others.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The functions in the order of their declarations, then the library routines that they need.
    pub fn functions(&self) -> &[FunctionCode] {
        &self.functions
    }

    /// The function with this linker's name.
    pub fn function(&self, name: &str) -> Option<&FunctionCode> {
        self.functions.iter().find(|function| function.name() == name)
    }

    /// The size of the stack that each lane must have, and the alignment of this stack.
    pub fn stack_bytes(&self) -> u32 {
        self.stack_bytes
    }
}

impl Module {
    /// The module's object.
    ///
    /// # Errors
    ///
    /// If a local name is declared but not defined, if a function is too large for its own jumps, or if a
    /// library routine does not compile.
    pub fn finish(self) -> Result<CompiledModule, ModuleError> {
        let functions = self.declarations.get_functions();
        let functions = functions
            .filter(|(id, d)| d.linkage.requires_definition() && !self.functions.contains_key(id))
            .map(|(id, d)| d.linkage_name(id).into_owned());
        let data = self.declarations.get_data_objects();
        let data = data
            .filter(|(id, d)| d.linkage.requires_definition() && !self.data.contains_key(id))
            .map(|(id, d)| d.linkage_name(id).into_owned());
        let names: Vec<String> = functions.chain(data).collect();
        if !names.is_empty() {
            return Err(ModuleError::Undefined { names });
        }
        let mut references = self.functions.values().flat_map(CompiledFunction::references);
        let routines = self.compiler.routines(&mut references)?;
        let functions = self.functions.iter().map(|(&id, function)| (function, self.linked(id)));
        let routines = routines.iter().map(|routine| (&**routine, Linked::Local));
        let all: Vec<_> = functions.chain(routines).collect();
        let placed = function::place(&all, self.arch()).map_err(|error| error.explain("module"))?;
        let mut chunks: Vec<Chunk> = placed.iter().flat_map(FunctionCode::chunks).collect();
        chunks.extend(self.data_chunks(None)?.into_iter().flatten());
        Ok(CompiledModule {
            object: function::object(self.arch(), chunks),
            functions: placed,
            stack_bytes: self.options().stack_bytes,
        })
    }

    /// The names that a kernel needs, transitively through definitions.
    pub(super) fn needed<'a>(&'a self, entry: &'a CompiledFunction) -> HashSet<&'a str> {
        let mut needed = HashSet::new();
        let mut todo: Vec<&str> = entry.references().collect();
        while let Some(name) = todo.pop() {
            if !needed.insert(name) {
                continue;
            }
            match self.definition(name) {
                Some(FuncOrDataId::Func(id)) => {
                    todo.extend(
                        self.functions.get(&id).into_iter().flat_map(CompiledFunction::references),
                    );
                }
                Some(FuncOrDataId::Data(id)) => {
                    todo.extend(self.data.get(&id).into_iter().flat_map(Data::references));
                }
                None => {}
            }
        }
        needed
    }

    /// The chunks of each datum: read-only data first, so that written data lies at the end of an image.
    pub(super) fn data_chunks(
        &self,
        needed: Option<&HashSet<&str>>,
    ) -> Result<Vec<Vec<Chunk>>, ModuleError> {
        let labels = self.inner_labels()?;
        let [mut read_only, mut writable] = [Vec::new(), Vec::new()];
        for (&id, data) in &self.data {
            let declaration = self.declarations.get_data_decl(id);
            let name = declaration.linkage_name(id);
            if needed.is_some_and(|needed| !needed.contains(name.as_ref())) {
                continue;
            }
            let (permissions, data_chunks) = match declaration.writable {
                true => (Permissions::READ | Permissions::WRITE, &mut writable),
                false => (Permissions::READ, &mut read_only),
            };
            let global = is_global(declaration.linkage);
            let labels: Vec<i64> = labels.get(&id).into_iter().flatten().copied().collect();
            let label = |name: &str, offset| self.place_name(name, offset);
            data_chunks.push(data.chunks(&name, permissions, global, self.arch(), &labels, label));
        }
        read_only.append(&mut writable);
        Ok(read_only)
    }

    /// The places inside data whose addresses other data holds.
    fn inner_labels(&self) -> Result<BTreeMap<DataId, BTreeSet<i64>>, ModuleError> {
        let mut labels: BTreeMap<DataId, BTreeSet<i64>> = BTreeMap::new();
        for address in self.data.values().flat_map(Data::inner_addresses) {
            let fail = |what, limit| {
                let (name, given) = (address.target.clone(), address.offset);
                Err(ModuleError::Data { name, what, given, limit })
            };
            let found = match self.definition(&address.target) {
                Some(FuncOrDataId::Data(id)) => self.data.get(&id).map(|data| (id, data)),
                _ => None,
            };
            match found {
                None => {
                    return fail("an address inside of it, though it is defined elsewhere", None);
                }
                Some((_, data)) if !data.has_place(address.offset) => {
                    return fail(
                        "an address outside of it, or inside one of its addresses",
                        Some(data.len()),
                    );
                }
                Some((id, _)) => labels.entry(id).or_default().insert(address.offset),
            };
        }
        Ok(labels)
    }

    /// A unique linker's name for a place in a datum.
    fn place_name(&self, name: &str, offset: i64) -> String {
        if offset == 0 {
            return name.to_owned();
        }
        let mut label = format!("{name}.{offset}");
        while self.declarations.get_name(&label).is_some() {
            label.push('.');
        }
        label
    }

    pub(super) fn linked(&self, id: FuncId) -> Linked {
        match is_global(self.declarations.get_function_decl(id).linkage) {
            true => Linked::Global,
            false => Linked::Local,
        }
    }
}
