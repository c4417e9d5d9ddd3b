//! Declarations of names, and how functions and data refer to them.

use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, GlobalValue, GlobalValueData, Signature,
    UserExternalName,
};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{
    DataDeclaration, DataDescription, DataId, FuncId, FuncOrDataId, FunctionDeclaration, Linkage,
    ModuleDeclarations, ModuleRelocTarget,
};

use super::{Module, ModuleError};

/// What code may do with a datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataAccess {
    /// Load only.
    ReadOnly,
    /// Load and store. Every launch begins with the initial contents.
    ReadWrite,
}

impl Module {
    /// The declarations so far.
    pub fn declarations(&self) -> &ModuleDeclarations {
        &self.declarations
    }

    /// A signature without parameters and results, of calling convention `fast`.
    pub fn make_signature(&self) -> Signature {
        Signature::new(CallConv::Fast)
    }

    /// Declares a function, or declares it again.
    ///
    /// # Errors
    ///
    /// If the name is declared as something else, or is not a valid name.
    pub fn declare_function(
        &mut self,
        name: &str,
        linkage: Linkage,
        signature: &Signature,
    ) -> Result<FuncId, ModuleError> {
        check_name(name)?;
        let declared = self.declarations.declare_function(name, linkage, signature);
        declared.map(|(id, _)| id).map_err(|error| declaration_error(name, error))
    }

    /// Declares a function without a name, which is local.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn declare_anonymous_function(
        &mut self,
        signature: &Signature,
    ) -> Result<FuncId, ModuleError> {
        let declared = self.declarations.declare_anonymous_function(signature);
        declared.map_err(|error| declaration_error("", error))
    }

    /// Declares a datum, or declares it again.
    ///
    /// # Errors
    ///
    /// If the name is declared as something else, or is not a valid name.
    pub fn declare_data(
        &mut self,
        name: &str,
        linkage: Linkage,
        access: DataAccess,
    ) -> Result<DataId, ModuleError> {
        check_name(name)?;
        let writable = access == DataAccess::ReadWrite;
        let declared = self.declarations.declare_data(name, linkage, writable, false);
        declared.map(|(id, _)| id).map_err(|error| declaration_error(name, error))
    }

    /// Declares a datum without a name, which is local.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn declare_anonymous_data(&mut self, access: DataAccess) -> Result<DataId, ModuleError> {
        let writable = access == DataAccess::ReadWrite;
        let declared = self.declarations.declare_anonymous_data(writable, false);
        declared.map_err(|error| declaration_error("", error))
    }

    /// Imports a declared function into `func`, to call it or take its address.
    ///
    /// # Errors
    ///
    /// If the id is not this module's.
    pub fn declare_func_in_func(
        &self,
        id: FuncId,
        func: &mut Function,
    ) -> Result<FuncRef, ModuleError> {
        let (_, declaration) = self.function_declaration(id)?;
        let signature = func.import_signature(declaration.signature.clone());
        let colocated = declaration.linkage.is_final();
        let name = func.declare_imported_user_function(UserExternalName::new(0, id.as_u32()));
        Ok(func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            colocated,
            patchable: false,
        }))
    }

    /// Imports a declared datum into `func`, to take its address with `symbol_value`.
    ///
    /// # Errors
    ///
    /// If the id is not this module's.
    pub fn declare_data_in_func(
        &self,
        id: DataId,
        func: &mut Function,
    ) -> Result<GlobalValue, ModuleError> {
        let (_, declaration) = self.data_declaration(id)?;
        let colocated = declaration.linkage.is_final();
        let name = func.declare_imported_user_function(UserExternalName::new(1, id.as_u32()));
        Ok(func.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::user(name),
            offset: 0.into(),
            colocated,
            tls: false,
        }))
    }

    /// Imports a declared function into a datum, to write its address there.
    pub fn declare_func_in_data(&self, id: FuncId, data: &mut DataDescription) -> FuncRef {
        data.import_function(ModuleRelocTarget::from(id))
    }

    /// Imports a declared datum into a datum, to write its address there.
    pub fn declare_data_in_data(&self, id: DataId, data: &mut DataDescription) -> GlobalValue {
        data.import_global_value(ModuleRelocTarget::from(id))
    }

    /// The function or datum with this linker's name.
    pub(super) fn definition(&self, name: &str) -> Option<FuncOrDataId> {
        if let Some(found) = self.declarations.get_name(name) {
            return Some(found);
        }
        let functions = self.declarations.get_functions();
        let mut functions = functions.filter(|(_, d)| d.name.is_none());
        if let Some((id, _)) = functions.find(|(id, d)| d.linkage_name(*id) == name) {
            return Some(FuncOrDataId::Func(id));
        }
        let data = self.declarations.get_data_objects();
        let mut data = data.filter(|(_, d)| d.name.is_none());
        data.find(|(id, d)| d.linkage_name(*id) == name).map(|(id, _)| FuncOrDataId::Data(id))
    }

    pub(super) fn function_declaration(
        &self,
        id: FuncId,
    ) -> Result<(String, &FunctionDeclaration), ModuleError> {
        if id.as_u32() as usize >= self.declarations.get_functions().count() {
            return Err(ModuleError::Undeclared { id: id.to_string() });
        }
        let declaration = self.declarations.get_function_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration))
    }

    pub(super) fn data_declaration(
        &self,
        id: DataId,
    ) -> Result<(String, &DataDeclaration), ModuleError> {
        if id.as_u32() as usize >= self.declarations.get_data_objects().count() {
            return Err(ModuleError::Undeclared { id: id.to_string() });
        }
        let declaration = self.declarations.get_data_decl(id);
        Ok((declaration.linkage_name(id).into_owned(), declaration))
    }

    /// The linker's name of CLIF's name `u<namespace>:<index>`.
    pub(super) fn user_name(&self, namespace: u32, index: u32) -> String {
        let declared = match namespace {
            0 => self.function_declaration(FuncId::from_u32(index)).map(|(name, _)| name),
            _ => self.data_declaration(DataId::from_u32(index)).map(|(name, _)| name),
        };
        match declared {
            Ok(name) if namespace < 2 => name,
            _ => format!("u{namespace}:{index}"),
        }
    }
}

fn check_name(name: &str) -> Result<(), ModuleError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.contains('\0') {
        "it contains a zero byte"
    } else if name.starts_with("runtime.") {
        "names of the runtime library begin like that"
    } else {
        return Ok(());
    };
    Err(ModuleError::Name { name: name.to_owned(), reason })
}

fn declaration_error(name: &str, error: cranelift_module::ModuleError) -> ModuleError {
    let signatures = match error {
        cranelift_module::ModuleError::IncompatibleSignature(_, first, second) => {
            Some((first.to_string(), second.to_string()))
        }
        _ => None,
    };
    ModuleError::Declaration { name: name.to_owned(), signatures }
}
