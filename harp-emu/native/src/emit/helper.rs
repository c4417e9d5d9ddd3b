//! Functions that regions call for accesses to addresses that may lie anywhere: done where they are, such an access takes
//! some hundred bytes of host code for 32 lanes, and a region has many. The functions keep all registers of the host, so
//! that a region loses nothing by a call but the way of addresses and values through the frame.

use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, InstBuilder, Signature, Type, UserExternalName,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::memory::guest;
use super::{Emitter, aligned};
use crate::body::Access;
use crate::frame::{at, scratch};
use crate::shape::Shape;

/// What such a function does, in all lanes, lowest first, with the addresses in scratch vector 0, which have been
/// checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    /// Loads into scratch vector 3.
    Gather(Access),
    /// Stores the words in scratch vector 1.
    Scatter(Access),
}

impl Emitter<'_, '_> {
    /// Loads from addresses that have been checked.
    pub(super) fn gather_each(&mut self, addresses: &[Value], access: Access) -> Vec<Value> {
        self.put_scratch(0, addresses);
        self.call_helper(Helper::Gather(access));
        self.scratch_vectors(3)
    }

    /// Stores to addresses that have been checked.
    pub(super) fn scatter_each(&mut self, addresses: &[Value], values: &[Value], access: Access) {
        self.put_scratch(0, addresses);
        self.put_scratch(1, values);
        self.call_helper(Helper::Scatter(access));
    }

    fn call_helper(&mut self, helper: Helper) {
        let known = self.helpers.iter().find(|(other, _)| *other == helper);
        let function = known.map(|(_, function)| *function).unwrap_or_else(|| {
            let index = u32::try_from(self.helpers.len()).unwrap_or(u32::MAX);
            let name = UserExternalName { namespace: 0, index };
            let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
            let signature = self.b.import_signature(signature());
            let data = ExtFuncData { name, signature, colocated: true, patchable: false };
            let function = self.b.import_function(data);
            self.helpers.push((helper, function));
            function
        });
        let frame = self.frame;
        self.b.ins().call(function, &[frame]);
    }
}

/// It takes the frame.
fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.push(AbiParam::new(types::I64));
    signature
}

impl Helper {
    pub(super) fn function(self, shape: Shape, config: TargetFrontendConfig) -> Context {
        let mut context = Context::new();
        context.func = ir::Function::with_name_signature(UserFuncName::user(0, 0), signature());
        let mut builder = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut context.func, &mut builder);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        b.seal_block(block);
        let frame = b.block_params(block)[0];
        let memory = b.ins().load(types::I64, aligned(), frame, at!(memory));
        match self {
            Helper::Gather(access) => gather(&mut b, shape, [frame, memory], access),
            Helper::Scatter(access) => scatter(&mut b, shape, [frame, memory], access),
        }
        b.ins().return_(&[]);
        b.finalize(config);
        context
    }
}

fn gather(b: &mut FunctionBuilder<'_>, shape: Shape, pointers: [Value; 2], access: Access) {
    let [frame, _] = pointers;
    for k in 0..shape.vectors() {
        let first = k * shape.per_vector();
        let mut vector = None;
        for lane in first..shape.lanes.min(first + shape.per_vector()) {
            let address = address(b, shape, pointers, lane);
            let word = load(b, shape.int(), (address, 0), access);
            vector = Some(match vector {
                None => b.ins().scalar_to_vector(shape.int_vector(), word),
                Some(vector) => b.ins().insertlane(vector, word, (lane - first) as u8),
            });
        }
        if let Some(vector) = vector {
            b.ins().store(aligned(), vector, frame, scratch(3) + 16 * k as i32);
        }
    }
}

fn scatter(b: &mut FunctionBuilder<'_>, shape: Shape, pointers: [Value; 2], access: Access) {
    let [frame, _] = pointers;
    for lane in 0..shape.lanes {
        let address = address(b, shape, pointers, lane);
        let word = b.ins().load(shape.int(), aligned(), frame, place(shape, 1, lane));
        let narrow = narrow(access);
        let word = if narrow == shape.int() { word } else { b.ins().ireduce(narrow, word) };
        b.ins().store(guest(), word, address, 0);
    }
}

/// The address of the host at which lane number `lane` accesses guest memory.
fn address(
    b: &mut FunctionBuilder<'_>,
    shape: Shape,
    [frame, memory]: [Value; 2],
    lane: usize,
) -> Value {
    let place = place(shape, 0, lane);
    let address = match shape.bytes() {
        4 => b.ins().uload32(aligned(), frame, place),
        _ => b.ins().load(types::I64, aligned(), frame, place),
    };
    b.ins().iadd(memory, address)
}

/// Where a lane's word of a scratch vector is.
fn place(shape: Shape, number: usize, lane: usize) -> i32 {
    scratch(number) + (lane * shape.bytes()) as i32
}

/// A word that is loaded from an address of the host and a distance from there.
pub(super) fn load(
    b: &mut FunctionBuilder<'_>,
    int: Type,
    (address, distance): (Value, i32),
    access: Access,
) -> Value {
    let narrow = narrow(access);
    let value = b.ins().load(narrow, guest(), address, distance);
    match access.signed {
        _ if narrow == int => value,
        true => b.ins().sextend(int, value),
        false => b.ins().uextend(int, value),
    }
}

/// What an access moves.
pub(super) fn narrow(access: Access) -> Type {
    match access.bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
