//! From the arguments on the command line to those of a launch.

use std::path::PathBuf;
use std::rc::Rc;
use std::{fmt, io};

use bytemuck::{cast_slice, pod_collect_to_vec};
use harp_jit::ParamType;
use harp_jit::ir::{Type, types};
use harp_runtime::{Arg, Buffer, BufferError, Device, Element as HostElement};
use thiserror::Error;

use super::super::source::{Parameter, Takes};
use super::super::values::{Element, ValueError};
use super::contents::Elements;
use super::spec::{Argument, Contents, Spec};

/// Why the arguments do not fit a kernel.
#[derive(Debug, Error)]
pub(in super::super) enum ArgumentError {
    #[error("argument `{text}` does not fit parameter {parameter}")]
    Problem { text: String, parameter: String, source: Problem },
    #[error("argument `{text}`: the kernel has no parameter `{name}`; {known}")]
    NoParameter { text: String, name: String, known: String },
    #[error("argument `{text}`: parameter {parameter} has an argument already")]
    Twice { text: String, parameter: String },
    #[error("argument `{text}` is one too many; {known}")]
    TooMany { text: String, known: String },
    #[error("no argument for parameter {parameter}: give one with `--arg`")]
    Missing { parameter: String },
    #[error("the kernel has no buffer `{name}`; its buffers are {known}")]
    NoBuffer { name: String, known: String },
}

/// What is wrong with an argument.
#[derive(Debug, Error)]
pub(in super::super) enum Problem {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("`{text}` is neither true nor false")]
    Bool { text: String },
    #[error("it is {given}")]
    Kind { given: &'static str },
    #[error("it is of type {given}")]
    Type { given: Element },
    #[error("it has {given} numbers")]
    Count { given: usize },
    #[error(
        "the kernel does not say of which type the elements are: write it before, such as f32:... or f32x..."
    )]
    NoType,
    #[error("`{text}` holds no numbers")]
    EmptyRange { text: String },
    #[error("it takes {bytes} bytes, the memory has {limit} (see `--ram`)")]
    TooLarge { bytes: u128, limit: u64 },
    #[error("the file has {bytes} bytes, which is no multiple of the {} of {element}", element.bytes())]
    FileLength { bytes: usize, element: Element },
    #[error("{bytes} bytes of local memory are no multiple of the {size} of an element")]
    LocalSize { bytes: usize, size: usize },
    #[error("cannot read `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("parameter `{name}` gets no buffer of its own")]
    NoBuffer { name: String },
}

/// An argument that fits its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Numbers by their bits.
    Numbers(Vec<(ParamType, u64)>),
    Buffer(Elements),
    /// The buffer of the parameter with this index.
    Same(usize),
    /// The null pointer.
    Null,
    Local {
        element: Type,
        len: usize,
    },
}

/// A parameter as messages name it.
struct Label<'a>(usize, &'a Parameter);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.1.name {
            Some(name) => write!(f, "`{name}` ({})", self.1.takes),
            None => write!(f, "{} ({})", self.0, self.1.takes),
        }
    }
}

/// The index of the parameter with a name, or with a number from 0.
pub(super) fn find(parameters: &[Parameter], name: &str) -> Option<usize> {
    let named = parameters.iter().position(|param| param.name.as_deref() == Some(name));
    named.or_else(|| name.parse().ok().filter(|&number: &usize| number < parameters.len()))
}

fn known(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "it has no parameters, as it uses none".to_owned();
    }
    let name = |(number, param): (usize, &Parameter)| match &param.name {
        Some(name) => format!("`{name}`"),
        None => number.to_string(),
    };
    let names = parameters.iter().enumerate().map(name).collect::<Vec<_>>().join(", ");
    // What a shader declares and does not use is no parameter.
    format!("the parameters that it uses are {names}")
}

/// What each parameter gets: arguments with a name or number go to their parameter, the others in order to those that are
/// left. `memory` is the size of the device's.
pub(super) fn bind(
    parameters: &[Parameter],
    arguments: &[Argument],
    memory: u64,
) -> Result<Vec<Bound>, ArgumentError> {
    let mut of = vec![None; parameters.len()];
    let label = |index: usize| Label(index, &parameters[index]).to_string();
    let (named, others): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.name.is_some());
    for argument in named {
        let (text, name) = (argument.text.clone(), argument.name.clone().unwrap_or_default());
        let Some(index) = find(parameters, &name) else {
            let known = known(parameters);
            return Err(ArgumentError::NoParameter { text, name, known });
        };
        if of[index].replace(argument).is_some() {
            return Err(ArgumentError::Twice { text, parameter: label(index) });
        }
    }
    let mut others = others.into_iter();
    for place in of.iter_mut().filter(|place| place.is_none()) {
        *place = others.next();
    }
    if let Some(argument) = others.next() {
        let (text, known) = (argument.text.clone(), known(parameters));
        return Err(ArgumentError::TooMany { text, known });
    }
    let given = of.into_iter().enumerate().map(|(index, given)| {
        let argument: &Argument =
            given.ok_or_else(|| ArgumentError::Missing { parameter: label(index) })?;
        let bound = match &argument.spec {
            Spec::Same(name) => same(parameters, index, name),
            spec => fit(&parameters[index].takes, spec, memory),
        };
        let problem = move |source| {
            let (text, parameter) = (argument.text.clone(), label(index));
            ArgumentError::Problem { text, parameter, source }
        };
        Ok((bound.map_err(problem)?, problem))
    });
    let given: Vec<_> = given.collect::<Result<_, _>>()?;
    for (bound, problem) in &given {
        if let Bound::Same(index) = *bound
            && !matches!(given[index].0, Bound::Buffer(_))
        {
            let name = parameters[index].name.clone().unwrap_or_else(|| index.to_string());
            return Err(problem(Problem::NoBuffer { name }));
        }
    }
    Ok(given.into_iter().map(|(bound, _)| bound).collect())
}

/// The buffer of another parameter.
fn same(parameters: &[Parameter], index: usize, name: &str) -> Result<Bound, Problem> {
    if !matches!(parameters[index].takes, Takes::Buffer(_) | Takes::Word(_)) {
        return Err(Problem::Kind { given: "a buffer" });
    }
    let other = find(parameters, name);
    other.map(Bound::Same).ok_or_else(|| Problem::NoBuffer { name: name.to_owned() })
}

/// The argument for a parameter.
fn fit(takes: &Takes, spec: &Spec, memory: u64) -> Result<Bound, Problem> {
    match (takes, spec) {
        (Takes::Word(ty), Spec::Numbers { element, numbers }) if numbers.len() == 1 => {
            numbers_for(&[*ty], *element, numbers)
        }
        (Takes::Scalar(ty), Spec::Numbers { element, numbers }) => {
            numbers_for(&[*ty], *element, numbers)
        }
        (Takes::Fields(fields), Spec::Numbers { element, numbers }) => {
            let types: Vec<ParamType> = fields.iter().map(|&(_, ty)| ty).collect();
            numbers_for(&types, *element, numbers)
        }
        (Takes::Buffer(_), Spec::Numbers { numbers, .. }) if numbers.len() == 1 => {
            Err(Problem::Kind { given: "a number" })
        }
        (Takes::Buffer(_) | Takes::Word(_), Spec::Numbers { element, numbers }) => {
            let element = element_of(takes, *element)?;
            let bits: Result<Vec<u64>, _> =
                numbers.iter().map(|text| element.parse(text)).collect();
            Ok(Bound::Buffer(Elements::of(element, bits?.into_iter())))
        }
        (Takes::Buffer(_) | Takes::Word(_), Spec::Buffer { element, contents }) => {
            let element = match (element_of(takes, *element), contents) {
                (Err(Problem::NoType), Contents::File(_)) => Element::U8,
                (element, _) => element?,
            };
            Elements::new(element, contents, memory).map(Bound::Buffer)
        }
        (Takes::Group(_) | Takes::Word(_), Spec::Local { element, len }) => {
            let wanted = match takes {
                Takes::Group(wanted) => *wanted,
                _ => None,
            };
            local(wanted, *element, *len)
        }
        (Takes::Buffer(_) | Takes::Word(_), Spec::Null) => Ok(Bound::Null),
        (_, Spec::Numbers { .. }) => Err(Problem::Kind { given: "a number" }),
        (_, Spec::Null) => Err(Problem::Kind { given: "the null pointer" }),
        (_, Spec::Buffer { .. } | Spec::Same(_)) => Err(Problem::Kind { given: "a buffer" }),
        (_, Spec::Local { .. }) => Err(Problem::Kind { given: "local memory" }),
    }
}

fn numbers_for(
    types: &[ParamType],
    element: Option<Element>,
    numbers: &[String],
) -> Result<Bound, Problem> {
    if types.len() != numbers.len() {
        return Err(Problem::Count { given: numbers.len() });
    }
    let number = |(&ty, text): (&ParamType, &String)| {
        let Some(own) = Element::of_param(ty) else {
            let value = match text.as_str() {
                "true" | "1" => 1,
                "false" | "0" => 0,
                _ => return Err(Problem::Bool { text: text.clone() }),
            };
            return Ok((ty, value));
        };
        match element {
            Some(given) if given.clif_type() != own.clif_type() => Err(Problem::Type { given }),
            given => Ok((ty, given.unwrap_or(own).parse(text)?)),
        }
    };
    types.iter().zip(numbers).map(number).collect::<Result<_, _>>().map(Bound::Numbers)
}

/// The type of a buffer's elements.
fn element_of(takes: &Takes, given: Option<Element>) -> Result<Element, Problem> {
    let wanted = match takes {
        Takes::Buffer(wanted) => *wanted,
        _ => None,
    };
    agreed(wanted, given)?.ok_or(Problem::NoType)
}

/// The type that was given, or else the one that is wanted; both must be the same to a launch.
fn agreed(wanted: Option<Type>, given: Option<Element>) -> Result<Option<Element>, Problem> {
    let wanted = wanted.and_then(Element::of);
    match (wanted, given) {
        (Some(wanted), Some(given)) if given.clif_type() != wanted.clif_type() => {
            Err(Problem::Type { given })
        }
        _ => Ok(given.or(wanted)),
    }
}

/// `len` counts elements if their type was given, else bytes.
fn local(wanted: Option<Type>, given: Option<Element>, len: usize) -> Result<Bound, Problem> {
    let element = agreed(wanted, given)?.unwrap_or(Element::I8);
    let size = if given.is_some() { 1 } else { element.bytes() };
    if !len.is_multiple_of(size) {
        return Err(Problem::LocalSize { bytes: len, size });
    }
    Ok(Bound::Local { element: element.clif_type(), len: len / size })
}

impl Bound {
    /// The types of the launch's parameters that it is for.
    pub(super) fn types(&self) -> Vec<ParamType> {
        match self {
            Bound::Numbers(numbers) => numbers.iter().map(|&(ty, _)| ty).collect(),
            Bound::Buffer(_) | Bound::Same(_) | Bound::Null => vec![ParamType::Pointer],
            Bound::Local { .. } => vec![ParamType::Group],
        }
    }

    /// The buffer, if it is one with contents of its own, with a name for messages.
    pub(super) fn array(
        &self,
        device: &Device,
        name: String,
    ) -> Result<Option<Array>, BufferError> {
        let Bound::Buffer(elements) = self else { return Ok(None) };
        Array::new(device, name, elements).map(Some)
    }

    /// The arguments of a launch; `array` is the buffer if it is one.
    pub(super) fn args(self, array: Option<&Array>) -> Vec<Arg> {
        match self {
            Bound::Numbers(numbers) => {
                numbers.into_iter().map(|(ty, bits)| scalar(ty, bits)).collect()
            }
            Bound::Local { element, len } => vec![group(element, len)],
            Bound::Null => vec![Arg::address(0)],
            Bound::Buffer(_) | Bound::Same(_) => {
                array.map(|array| array.memory.arg()).into_iter().collect()
            }
        }
    }
}

fn scalar(ty: ParamType, bits: u64) -> Arg {
    match ty {
        ParamType::I8 => Arg::from(bits as u8),
        ParamType::I16 | ParamType::F16 => Arg::from(bits as u16),
        ParamType::I32 => Arg::from(bits as u32),
        ParamType::F32 => Arg::from(f32::from_bits(bits as u32)),
        ParamType::F64 => Arg::from(f64::from_bits(bits)),
        ParamType::Bool => Arg::from(bits != 0),
        ParamType::Word => Arg::from(bits as usize),
        _ => Arg::from(bits),
    }
}

fn group(element: Type, len: usize) -> Arg {
    match element {
        types::I16 => Arg::group::<u16>(len),
        types::I32 => Arg::group::<u32>(len),
        types::I64 => Arg::group::<u64>(len),
        types::F32 => Arg::group::<f32>(len),
        types::F64 => Arg::group::<f64>(len),
        _ => Arg::group::<u8>(len),
    }
}

/// A buffer of a launch.
#[derive(Clone)]
pub(super) struct Array {
    pub(super) name: String,
    pub(super) element: Element,
    memory: Rc<dyn Memory>,
}

/// A buffer of elements of some type.
trait Memory {
    fn arg(&self) -> Arg;
    fn read(&self, device: &Device) -> Result<Vec<u8>, BufferError>;
}

impl<T: HostElement> Memory for Buffer<T> {
    fn arg(&self) -> Arg {
        Arg::from(self)
    }

    fn read(&self, device: &Device) -> Result<Vec<u8>, BufferError> {
        Ok(cast_slice(&device.read(self)?).to_vec())
    }
}

impl Array {
    fn new(device: &Device, name: String, elements: &Elements) -> Result<Array, BufferError> {
        let element = elements.element;
        let memory = match element.clif_type() {
            types::I8 => memory::<u8>(device, &name, elements)?,
            types::I16 => memory::<u16>(device, &name, elements)?,
            types::I32 => memory::<u32>(device, &name, elements)?,
            types::F32 => memory::<f32>(device, &name, elements)?,
            types::F64 => memory::<f64>(device, &name, elements)?,
            _ => memory::<u64>(device, &name, elements)?,
        };
        Ok(Array { name, element, memory })
    }

    /// The same memory under another name.
    pub(super) fn named(self, name: String) -> Array {
        Array { name, ..self }
    }

    /// Its bytes.
    pub(super) fn read(&self, device: &Device) -> Result<Vec<u8>, BufferError> {
        self.memory.read(device)
    }
}

fn memory<T: HostElement>(
    device: &Device,
    name: &str,
    elements: &Elements,
) -> Result<Rc<dyn Memory>, BufferError> {
    let buffer = match &elements.bytes {
        None => device.buffer_uninitialized::<T>(elements.len)?,
        Some(bytes) => device.buffer_from_slice::<T>(&pod_collect_to_vec(bytes))?,
    };
    Ok(Rc::new(buffer.named(name)))
}
