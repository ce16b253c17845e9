//! `include/tamis.h` is what the code says, and the declarations for Lua are those of the header.

use crate::repository;

const HEADER: &str = "crates/capi/include/tamis.h";

#[test]
fn header_is_that_of_the_code() {
    let folder = repository("crates/capi");
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    // The sources by name, so that no metadata of the workspace are asked for.
    let made = cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder.join("src/memory.rs"))
        .with_src(folder.join("src/status.rs"))
        .with_src(folder.join("src/entry.rs"))
        .generate()
        .unwrap();
    let mut fresh = Vec::new();
    made.write(&mut fresh);
    let fresh = String::from_utf8(fresh).unwrap();
    if std::env::var_os("TAMIS_BLESS").is_some() {
        std::fs::write(repository(HEADER), &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(repository(HEADER)).unwrap_or_default();
    assert!(
        kept == fresh,
        "{HEADER} is not that of the code; look at the difference after TAMIS_BLESS=1 cargo test -p tamis-capi"
    );
}

/// Without comments, and with one space where there is any.
fn flat(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("( ", "(")
}

#[test]
fn lua_declares_what_the_header_does() {
    let header = flat(&std::fs::read_to_string(repository(HEADER)).unwrap());
    let lua = flat(&std::fs::read_to_string(repository("bindings/lua/tamis.lua")).unwrap());
    let declared: Vec<&str> = header
        .split(';')
        .filter_map(|part| {
            let start = [
                "tamis_status tamis_",
                "uint32_t tamis_",
                "const char *tamis_",
                "void tamis_",
            ]
            .iter()
            .filter_map(|begin| part.find(begin))
            .min()?;
            part.get(start..).filter(|declaration| declaration.contains('('))
        })
        .collect();
    assert_eq!(declared.len(), 9, "{declared:#?}");
    for declaration in declared {
        assert!(
            lua.contains(&format!("{declaration};")),
            "tamis.lua lacks: {declaration};"
        );
    }
}
