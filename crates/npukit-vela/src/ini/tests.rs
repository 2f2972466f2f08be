//! What Vela takes and refuses.

use super::*;

const SAMPLE: &str = "; a comment\n[System_Config.Board]\ncore_clock=400e6\naxi0_port=Sram\naxi1_port = OffChipFlash\n\
        Sram_burst_length=32\nOffChipFlash_clock_scale=0.125\nOffChipFlash_max_writes=0\n\
        [Memory_Mode.Base]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n\
        # another\n[Memory_Mode.Small]\ninherit=Memory_Mode.Base\narena_mem_area=Axi1\narena_cache_size: 16384\n";

#[test]
fn names_values_and_inheritance() {
    let ini = VelaIni::parse(SAMPLE).unwrap();
    assert_eq!(ini.system_configs(), ["Board"]);
    assert_eq!(ini.memory_modes(), ["Base", "Small"]);
    let board = ini.system_config("Board").unwrap();
    assert_eq!(board.core_clock_hz, 400e6);
    assert_eq!((board.axi0.burst_bytes, board.axi0.maximum_writes), (32, None));
    assert_eq!(board.axi1.memory, "OffChipFlash");
    assert_eq!((board.axi1.clock_scale, board.axi1.maximum_writes), (0.125, Some(0)));
    let small = ini.memory_mode("Small").unwrap();
    assert_eq!((small.constants.as_str(), small.arena.as_str()), ("Axi1", "Axi1"));
    assert_eq!(small.arena_cache_bytes, Some(16384));
    assert_eq!(ini.memory_mode("Base").unwrap().arena_cache_bytes, None);
}

#[test]
fn mistakes_are_named() {
    assert_eq!(VelaIni::parse("a=b\n"), Err(IniError::NoSection { line: 1 }));
    assert_eq!(VelaIni::parse("[x]\nnonsense\n"), Err(IniError::Line { line: 2, text: "nonsense".into() }));
    let ini =
        VelaIni::parse("[Memory_Mode.A]\ninherit=Memory_Mode.B\n[Memory_Mode.B]\ninherit=Memory_Mode.A\n");
    assert_eq!(ini.unwrap().memory_mode("A"), Err(IniError::Circle { section: "Memory_Mode.A".into() }));
    let ini = VelaIni::parse("[Memory_Mode.A]\narena_cache_size=many\n").unwrap();
    assert!(matches!(ini.memory_mode("A"), Err(IniError::Value { .. })));
    assert!(matches!(ini.memory_mode("Z"), Err(IniError::Unknown { .. })));
}

/// What stands before is what Vela 5.2.0 takes; each change is one that it refuses, or takes for something else.
#[test]
fn nonsense_is_refused() {
    let refused = |from: &str, to: &str, said: &str| {
        let text = SAMPLE.replace(from, to);
        assert_ne!(text, SAMPLE, "{from}");
        let system = VelaIni::parse(&text).and_then(|ini| ini.system("Board", "Base"));
        assert_eq!(system.unwrap_err().to_string(), said);
    };
    assert!(VelaIni::parse(SAMPLE).unwrap().system("Board", "Base").is_ok());
    let memories = "expected Sram, Dram, OnChipFlash, OffChipFlash";
    refused(
        "axi0_port=Sram",
        "axi0_port=Bogus",
        &format!("[System_Config.Board] axi0_port=Bogus: {memories}"),
    );
    refused("axi0_port=Sram", "axi0_port=sram", &format!("[System_Config.Board] axi0_port=sram: {memories}"));
    refused("axi1_port = OffChipFlash\n", "", &format!("[System_Config.Board] has no axi1_port: {memories}"));
    refused("axi0_port=Sram\n", "", &format!("[System_Config.Board] has no axi0_port: {memories}"));
    let clock = "a clock in hertz from 10000 to 10000000000";
    refused("core_clock=400e6\n", "", &format!("[System_Config.Board] has no core_clock: expected {clock}"));
    for wrong in ["1e300", "inf", "nan", "-4e8", "400", "fast", "400e6\n  9"] {
        let said = format!("[System_Config.Board] core_clock={}: expected {clock}", wrong.replace("  ", ""));
        refused("=400e6", &format!("={wrong}"), &said);
    }
    refused(
        "Scale=0.125".to_lowercase().as_str(),
        "scale=1e-300",
        "[System_Config.Board] OffChipFlash_clock_scale=1e-300: expected a number from 0.0001 to 100",
    );
    refused(
        "Sram_burst_length=32",
        "Sram_burst_length=4294967295",
        "[System_Config.Board] Sram_burst_length=4294967295: expected a whole number from 1 to 4096",
    );
    refused(
        "Sram_burst_length=32\n",
        "",
        "[System_Config.Board] has no Sram_clock_scale: expected figures of the memory behind axi0_port",
    );
    let section = "[Memory_Mode.Base]";
    refused(
        "arena_mem_area=Axi0",
        "arena_mem_area=AXI0",
        &format!("{section} arena_mem_area=AXI0: expected Axi0, Axi1"),
    );
    let flash = "Axi1 is OffChipFlash with [System_Config.Board]: expected";
    refused(
        "arena_mem_area=Axi0",
        "arena_mem_area=Axi1",
        &format!("{section} arena_mem_area={flash} Sram or Dram"),
    );
    refused("cache_mem_area=Axi0", "cache_mem_area=Axi1", &format!("{section} cache_mem_area={flash} Sram"));
    refused(
        "const_mem_area=Axi1\narena_mem_area=Axi0\n",
        "arena_mem_area=Axi1\n",
        &format!(
            "{section} const_mem_area=Axi0 is Sram with [System_Config.Board]: expected Dram, OnChipFlash or OffChipFlash"
        ),
    );
    refused("# another", "[Memory_Mode.Base]", "line 13: section [Memory_Mode.Base] is there a second time");
    refused(
        "; a comment",
        "[System_Config.Board]",
        "line 2: section [System_Config.Board] is there a second time",
    );
    refused(
        "core_clock=400e6\n",
        "core_clock=400e6\nCore_Clock=1\n",
        "line 4: [System_Config.Board] has Core_Clock a second time",
    );
    let misspelt = VelaIni::parse(&SAMPLE.replace("Sram_burst_length", "Srm_burst_length")).unwrap();
    let error = misspelt.system("Board", "Base").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "[System_Config.Board] Srm_burst_length=32: Vela knows no such key; expected core_clock, "
        ),
        "{error}"
    );
    assert!(error.contains("Sram_burst_length"), "{error}");
}

#[test]
fn everything_may_be_in_sram() {
    let text = SAMPLE.replace("const_mem_area=Axi1", "const_mem_area=Axi0");
    assert!(VelaIni::parse(&text).unwrap().system("Board", "Base").is_ok());
}

/// As ConfigParser has it: a default comes before an inherited value, and may be for sections of another kind.
#[test]
fn defaults_are_everybodys() {
    let ini =
        VelaIni::parse(&format!("[DEFAULT]\narena_mem_area=Axi1\n[DEFAULT]\nother=1\n{SAMPLE}")).unwrap();
    assert_eq!(ini.memory_mode("Base").unwrap().arena, "Axi0");
    assert!(ini.system_config("Board").is_ok());
    let own = "arena_mem_area=Axi1\narena_cache_size";
    let ini = VelaIni::parse(&format!(
        "[DEFAULT]\narena_mem_area=Axi1\n{}",
        SAMPLE.replace(own, "arena_cache_size")
    ));
    assert_eq!(ini.unwrap().memory_mode("Small").unwrap().arena, "Axi1");
}

#[test]
fn other_products_configurations_are_not_offered() {
    let ini =
        VelaIni::parse("[System_Config.Ethos_U55_A]\n[System_Config.ethos_u85_B]\n[System_Config.Mine]\n")
            .unwrap();
    assert_eq!(ini.system_configs_for(Product::U85), ["ethos_u85_B", "Mine"]);
    assert_eq!(ini.system_configs_for(Product::U55), ["Ethos_U55_A", "Mine"]);
}
