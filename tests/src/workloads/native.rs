//! Cranelift's own code generator for the host, as it is measured.

use std::cell::RefCell;
use std::fmt;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable, Flags};

/// The host as a target, optimizing and without checks.
pub struct Native {
    isa: OwnedTargetIsa,
    /// Used again for each function, as Cranelift's users do it.
    context: RefCell<Context>,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.name())
    }
}

impl Native {
    /// # Errors
    ///
    /// If Cranelift has no code generator for the host.
    pub fn new() -> Result<Native, String> {
        let mut flags = settings::builder();
        for (name, value) in
            [("opt_level", "speed"), ("enable_verifier", "false"), ("regalloc_checker", "false")]
        {
            flags.set(name, value).map_err(|error| error.to_string())?;
        }
        let isa = cranelift_native::builder()?.finish(Flags::new(flags));
        let context = RefCell::new(Context::new());
        isa.map(|isa| Native { isa, context }).map_err(|error| error.to_string())
    }

    /// The host's architecture.
    pub fn name(&self) -> String {
        self.isa.triple().architecture.to_string()
    }

    /// Compiles a function up to its bytes, as cranelift-jit does before it copies them; how many there
    /// are. Fails if it does not compile.
    pub fn code_bytes(&self, func: &Function) -> Result<usize, String> {
        let mut context = self.context.borrow_mut();
        context.clear();
        context.func = func.clone();
        let compiled = context
            .compile(&*self.isa, &mut ControlPlane::default())
            .map_err(|error| format!("{:?}", error.inner))?;
        Ok(compiled.code_buffer().len())
    }
}
