//! temp
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "temp")]
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let m = harp_spirv::SpirvModule::parse(&std::fs::read(&a[1]).unwrap()).unwrap();
    let k = m.kernel(&a[2], a[3].parse().unwrap()).unwrap();
    println!("{}", k.source().function().display());
    
    let k = k.compile(&harp_jit::CompileOptions::default()).unwrap();
    println!("{}", k.disassembly());
    for f in k.functions() {
        println!("== {}\n{}", f.name(), f.disassembly());
    }
}
