//! Addresses in data, of functions and of places in other data.

use harp_isa::ArchId;
use harp_jit::{DataAccess, DataDescription, DataId, Linkage, Module, ModuleError};
use harp_tests::functions::{Result, observed, parse, single_lane, word};

use super::{archs, define, word_bytes};

#[test]
fn function_pointers_in_data() {
    for arch in archs() {
        let mut module = Module::new(arch, single_lane());
        let bytes = i64::from(arch.word().bytes());
        let functions = parse(
            arch.word(),
            &"function %double(word) -> word {
            block0(v0: word):
                v1 = iadd v0, v0
                return v1
            }
            function %square(word) -> word {
            block0(v0: word):
                v1 = imul v0, v0
                return v1
            }
            function %f(word, word) -> word {
                gv0 = symbol %pointer
                gv1 = load.word notrap aligned gv0
                gv2 = iadd_imm.word gv1, BYTES
                gv3 = symbol %numbers+BYTES
                sig0 = (word) -> word
            block0(v0: word, v1: word):
                v2 = symbol_value.word gv1
                v3 = imul_imm_s v0, BYTES
                v4 = iadd v2, v3
                v5 = load.word notrap aligned v4
                v6 = call_indirect sig0, v5(v1)
                v7 = symbol_value.word gv2
                v8 = load.word notrap aligned v7
                v9 = call_indirect sig0, v8(v6)
                v10 = symbol_value.word gv3
                v11 = load.word notrap aligned v10
                v12 = iadd v9, v11
                store notrap aligned v12, v10
                v13 = load.word notrap aligned v10
                return v13
            }"
            .replace(
                "v3 = imul_imm_s v0, BYTES",
                &format!("v30 = iconst.word {bytes}\nv3 = imul v0, v30"),
            )
            .replace("BYTES", &bytes.to_string()),
        );
        // A table of functions, a pointer to it, and numbers that change.
        let signature = &functions[0].signature;
        let double = module.declare_function("double", Linkage::Local, signature).unwrap();
        let square = module.declare_function("square", Linkage::Local, signature).unwrap();
        let table = module.declare_anonymous_data(DataAccess::ReadOnly).unwrap();
        let pointer =
            module.declare_data("pointer", Linkage::Export, DataAccess::ReadOnly).unwrap();
        let numbers =
            module.declare_data("numbers", Linkage::Local, DataAccess::ReadWrite).unwrap();
        let mut data = DataDescription::new();
        data.define_zeroinit(2 * bytes as usize);
        let [first, second] = [double, square].map(|id| module.declare_func_in_data(id, &mut data));
        data.write_function_addr(0, first);
        data.write_function_addr(bytes as u32, second);
        module.define_data(table, &data).unwrap();
        let mut data = DataDescription::new();
        data.define_zeroinit(bytes as usize);
        let target = module.declare_data_in_data(table, &mut data);
        data.write_data_addr(0, target, 0);
        module.define_data(pointer, &data).unwrap();
        let mut data = DataDescription::new();
        data.define(word_bytes(arch, &[100, 200]));
        module.define_data(numbers, &data).unwrap();
        define(&mut module, &functions);

        let module = module.finish().unwrap();
        for (choice, wanted) in [(0, 14 * 14 + 200), (1, 49 * 49 + 200)] {
            let given = observed(&module, &functions, "f", &[word(arch, choice), word(arch, 7)]);
            assert_eq!(given.unwrap(), Result::Values(vec![word(arch, wanted)]), "{arch}");
        }
    }
}

/// A datum of words that are addresses: of `target`, and so many bytes behind it.
fn pointers(module: &Module, arch: ArchId, targets: &[(DataId, i64)]) -> DataDescription {
    let bytes = u32::from(arch.word().bytes());
    let mut data = DataDescription::new();
    data.define_zeroinit(targets.len() * bytes as usize);
    for (index, &(target, offset)) in targets.iter().enumerate() {
        let target = module.declare_data_in_data(target, &mut data);
        data.write_data_addr(index as u32 * bytes, target, offset);
    }
    data
}

#[test]
fn addresses_of_places_in_data() {
    for arch in archs() {
        let bytes = i64::from(arch.word().bytes());
        let functions = parse(
            arch.word(),
            &"function %at(word) -> word, word {
                gv0 = symbol %pointers
                gv1 = symbol %cells
            block0(v0: word):
                v1 = symbol_value.word gv0
                v30 = iconst.word BYTES
                v2 = imul v0, v30
                v3 = iadd v1, v2
                v4 = load.word notrap aligned v3
                v5 = load.word notrap aligned v4
                v6 = symbol_value.word gv1
                v7 = isub v4, v6
                return v5, v7
            }
            function %twice() -> word {
                gv0 = symbol %pointers+FAR
            block0:
                v1 = symbol_value.word gv0
                v2 = load.word notrap aligned v1
                v3 = load.word notrap aligned v2
                v4 = load.word notrap aligned v3
                return v4
            }"
            .replace("BYTES", &bytes.to_string())
            .replace("FAR", &(3 * bytes).to_string()),
        );
        let mut module = Module::new(arch, single_lane());
        let declare = |module: &mut Module, name: &str| {
            module.declare_data(name, Linkage::Export, DataAccess::ReadWrite).unwrap()
        };
        let [cells, own] = ["cells", "pointers"].map(|name| declare(&mut module, name));
        // The name that a label would have.
        let taken = declare(&mut module, &format!("cells.{bytes}"));
        let targets =
            [(cells, 2 * bytes), (cells, bytes), (cells, 0), (own, bytes), (cells, 3 * bytes)];
        let data = pointers(&module, arch, &targets);
        module.define_data(own, &data).unwrap();
        for id in [cells, taken] {
            let mut data = DataDescription::new();
            data.define(word_bytes(arch, &[10, 20, 30]));
            module.define_data(id, &data).unwrap();
        }
        define(&mut module, &functions);
        let module = module.finish().unwrap();
        for (index, cell, place) in [(0, 30, 2), (1, 20, 1), (2, 10, 0)] {
            let given = observed(&module, &functions, "at", &[word(arch, index)]).unwrap();
            let wanted = [cell, place * bytes].map(|value| word(arch, value));
            assert_eq!(given, Result::Values(wanted.to_vec()), "{arch} {index}");
        }
        let end = observed(&module, &functions, "at", &[word(arch, 4)]).unwrap();
        assert!(
            matches!(&end, Result::Values(values) if values[1] == word(arch, 3 * bytes)),
            "{end:?}"
        );
        let given = observed(&module, &functions, "twice", &[]).unwrap();
        assert_eq!(given, Result::Values(vec![word(arch, 20)]), "{arch}");
    }
}

#[test]
fn places_that_no_label_can_have() {
    let arch = ArchId::HARP32;
    let fails = |linkage, offset: i64| {
        let mut module = Module::new(arch, single_lane());
        let own = module.declare_data("own", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let other = module.declare_data("other", linkage, DataAccess::ReadOnly).unwrap();
        if linkage != Linkage::Import {
            let data = pointers(&module, arch, &[(own, 0), (own, 0)]);
            module.define_data(other, &data).unwrap();
        }
        let data = pointers(&module, arch, &[(other, offset)]);
        module.define_data(own, &data).unwrap();
        match module.finish() {
            Ok(_) => None,
            Err(ModuleError::Data { name, given, .. }) => Some((name, given)),
            Err(other) => panic!("{other}"),
        }
    };
    let refused = |offset| Some(("other".to_owned(), offset));
    for (offset, wanted) in
        [(0, None), (4, None), (8, None), (9, refused(9)), (-1, refused(-1)), (6, refused(6))]
    {
        assert_eq!(fails(Linkage::Local, offset), wanted);
    }
    assert_eq!(fails(Linkage::Import, 0), None);
    assert_eq!(fails(Linkage::Import, 4), refused(4));
}
