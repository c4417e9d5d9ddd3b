//! Kernels that use a module's functions and data.

use std::panic::Location;

use cranelift_codegen::ir::Value;
use cranelift_module::{DataId, FuncId};

use super::Module;
use crate::builder::{BufferParam, ElementType, KernelBuilder};

impl KernelBuilder<'_> {
    /// Calls a function that is declared in `module`, and gives its results. The kernel must then be compiled
    /// with [`Module::compile_kernel`].
    ///
    /// A function of another module is an error, and so are arguments and results of other types or in other
    /// number than its signature's.
    ///
    /// ```
    /// # use harp_jit::ir::{AbiParam, Function, UserFuncName};
    /// # use harp_jit::{FunctionBuilder, Linkage, Module, frontend_config, prelude::*};
    /// # let arch: ArchId = "harp32".parse()?;
    /// # let mut module = Module::new(arch, CompileOptions::default());
    /// let mut signature = module.make_signature();
    /// signature.params.push(AbiParam::new(types::I32));
    /// signature.returns.push(AbiParam::new(types::I32));
    /// let square = module.declare_function("square", Linkage::Local, &signature)?;
    /// // The function is built by cranelift-frontend's builder.
    /// # let mut func = Function::with_name_signature(UserFuncName::testcase("square"), signature);
    /// # let mut context = harp_jit::FunctionBuilderContext::new();
    /// # let mut b = FunctionBuilder::new(&mut func, &mut context);
    /// # let block = b.create_block();
    /// # b.append_block_params_for_function_params(block);
    /// # b.switch_to_block(block);
    /// # let x = b.block_params(block)[0];
    /// # let product = b.ins().imul(x, x);
    /// # b.ins().return_(&[product]);
    /// # b.seal_all_blocks();
    /// # b.finalize(frontend_config(&arch.into())?);
    /// module.define_function(square, &func)?;
    ///
    /// let mut source = KernelSource::new("squares", arch);
    /// let mut b = KernelBuilder::new(&mut source);
    /// let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// let x = b.load(data, i);
    /// let [product] = b.call(&module, square, &[x]);
    /// b.store(data, i, product);
    /// b.return_();
    /// b.finalize()?;
    /// let kernel = module.compile_kernel(&source)?;
    /// # assert_eq!(kernel.functions()[0].name(), "square");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn call<const N: usize>(
        &mut self,
        module: &Module,
        function: FuncId,
        args: &[Value],
    ) -> [Value; N] {
        let place = Location::caller();
        let name = module.function_declaration(function).map(|(name, _)| name).unwrap_or_default();
        let import = |func: &mut _| {
            module.declare_func_in_func(function, func).map_err(|_| function.to_string())
        };
        self.call_imported(&name, import, args, place)
    }

    /// The address of a datum that is declared in `module`, a word. The kernel must then be compiled with
    /// [`Module::compile_kernel`].
    ///
    /// A datum of another module is an error.
    #[track_caller]
    pub fn data_address(&mut self, module: &Module, datum: DataId) -> Value {
        let place = Location::caller();
        let import =
            |func: &mut _| module.declare_data_in_func(datum, func).map_err(|_| datum.to_string());
        self.address_imported(import, place)
    }

    /// A datum that is declared in `module`, as an array of `T`: see [`data_address`](Self::data_address). The
    /// datum must be aligned to `T`.
    #[track_caller]
    pub fn data<T: ElementType>(&mut self, module: &Module, datum: DataId) -> BufferParam<T> {
        BufferParam::at(self.data_address(module, datum))
    }
}
