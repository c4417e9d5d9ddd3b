//! What cranelift-interpreter asks of its surroundings: one frame, and nothing else.
//!
//! Memory instructions and calls are executed before they reach the interpreter, so whatever would
//! ask for memory, functions or globals is answered with an error.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    ExternalName, FuncRef, Function, GlobalValue, MemFlagsData, StackSlot, Type,
};
use cranelift_interpreter::address::{Address, AddressSize};
use cranelift_interpreter::frame::Frame;
use cranelift_interpreter::interpreter::LibCallHandler;
use cranelift_interpreter::state::{InterpreterFunctionRef, MemoryError, State};

/// The frame of the kernel function.
pub(super) struct KernelState<'a> {
    frames: Vec<Frame<'a>>,
}

impl<'a> KernelState<'a> {
    pub(super) fn new(func: &'a Function) -> KernelState<'a> {
        KernelState { frames: vec![Frame::new(func)] }
    }
}

fn no_memory<T>() -> Result<T, MemoryError> {
    Err(MemoryError::InvalidEntry { entry: 0, max: 0 })
}

impl<'a> State<'a> for KernelState<'a> {
    fn get_function(&self, _: FuncRef) -> Option<&'a Function> {
        None
    }

    fn get_current_function(&self) -> &'a Function {
        self.current_frame().function()
    }

    fn get_libcall_handler(&self) -> LibCallHandler {
        |_, _| Err(cranelift_interpreter::step::CraneliftTrap::BadSignature)
    }

    fn push_frame(&mut self, function: &'a Function) {
        self.frames.push(Frame::new(function));
    }

    fn pop_frame(&mut self) {
        self.frames.pop();
    }

    fn current_frame_mut(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("the kernel's frame stays")
    }

    fn current_frame(&self) -> &Frame<'a> {
        self.frames.last().expect("the kernel's frame stays")
    }

    fn stack_address(&self, _: AddressSize, _: StackSlot, _: u64) -> Result<Address, MemoryError> {
        no_memory()
    }

    fn checked_load(&self, _: Address, _: Type, _: MemFlagsData) -> Result<DataValue, MemoryError> {
        no_memory()
    }

    fn checked_store(
        &mut self,
        _: Address,
        _: DataValue,
        _: MemFlagsData,
    ) -> Result<(), MemoryError> {
        no_memory()
    }

    fn function_address(&self, _: AddressSize, _: &ExternalName) -> Result<Address, MemoryError> {
        no_memory()
    }

    fn get_function_from_address(&self, _: Address) -> Option<InterpreterFunctionRef<'a>> {
        None
    }

    fn resolve_global_value(&self, _: GlobalValue) -> Result<DataValue, MemoryError> {
        no_memory()
    }

    fn get_pinned_reg(&self) -> DataValue {
        DataValue::I64(0)
    }

    fn set_pinned_reg(&mut self, _: DataValue) {}
}
