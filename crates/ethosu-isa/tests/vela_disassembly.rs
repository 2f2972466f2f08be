//! Every command of every stream that Vela makes of real models, compared with Vela's own disassembly.

#[path = "vela/mod.rs"]
mod vela;
#[path = "vela/listing.rs"]
mod vela_listing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ethosu_isa::{Accelerator, Decoder, Instruction, Payload, PayloadKind};
use vela::Vela;
use vela_listing::Line;

/// One run of Vela.
#[derive(Clone)]
struct Job {
    model: PathBuf,
    accelerator: Accelerator,
    options: &'static [&'static str],
}

/// What was compared.
#[derive(Default)]
struct Totals {
    streams: usize,
    commands: BTreeMap<&'static str, usize>,
}

/// The payloads in a `_vela.tflite`: byte vectors, so each has its length before it.
fn payloads(file: &[u8]) -> Vec<Payload<'_>> {
    let mut found = Vec::new();
    for offset in (4..file.len().saturating_sub(4)).step_by(4) {
        if Payload::is_payload(&file[offset..]) {
            let length =
                u32::from_le_bytes(file[offset - 4..offset].try_into().expect("four bytes")) as usize;
            let bytes =
                file.get(offset..offset + length).unwrap_or_else(|| panic!("{length} bytes at {offset:#x}"));
            found.push(
                Payload::parse(bytes).unwrap_or_else(|error| panic!("payload at {offset:#x}: {error}")),
            );
        }
    }
    found
}

fn words(stream: &[u8]) -> Vec<u32> {
    stream.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

fn listed_words(lines: &[Line]) -> Vec<u32> {
    lines.iter().flat_map(|line| [Some(line.control), line.payload].into_iter().flatten()).collect()
}

/// Compares one command with Vela's line for it.
fn compare(instruction: &Instruction, line: &Line, accelerator: Accelerator) -> Result<(), String> {
    let product = accelerator.product();
    let same = |what: &str, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
        let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
        if ours == theirs { Ok(()) } else { Err(format!("{what} is {ours}, Vela says {theirs}: {line:?}")) }
    };
    same("offset", &instruction.offset, &line.offset)?;
    same("control word", &instruction.words.control, &line.control)?;
    same("payload word", &instruction.words.payload, &line.payload)?;
    same("name", &instruction.command.name(), &line.name)?;
    let mut fields = BTreeMap::new();
    instruction.command.for_each_field(|name, value| {
        fields.insert(name.to_owned(), value.to_string());
    });
    same("fields", &fields, &vela_listing::translated(line, product)?)?;
    same("encoding", &instruction.command.encode(product), &Ok::<_, ()>(instruction.words))
}

/// Compiles a model and compares all of its streams.
fn check(vela: &Vela, job: &Job, scratch: &Path, totals: &Mutex<Totals>) -> Result<(), String> {
    let compiled = vela::compile(vela, &job.model, job.accelerator, job.options, scratch)?;
    let mut listed = vela_listing::streams(&compiled.text);
    let payloads = payloads(&compiled.file);
    if payloads.len() != listed.len() || payloads.is_empty() {
        return Err(format!("{} payloads, {} listed", payloads.len(), listed.len()));
    }
    let kind = if job.options.contains(&"COP2") { PayloadKind::Cop2 } else { PayloadKind::Cop1 };
    for payload in payloads {
        assert_eq!(payload.kind(), kind);
        assert_eq!(payload.accelerator(), Ok(job.accelerator));
        assert_eq!(payload.config_word(), job.accelerator.config_word());
        assert_eq!(payload.arch_word(), job.accelerator.arch_word());
        assert_eq!(payload.stream_offset() % 16, 0);
        // The file doesn't keep the order of the text.
        let words = words(payload.stream());
        let place = listed.iter().position(|(_, lines)| listed_words(lines) == words);
        let (count, lines) = listed.swap_remove(place.ok_or("a payload that isn't listed")?);
        assert_eq!(count, words.len());

        let mut decoder = Decoder::new(payload.stream(), job.accelerator.product());
        let mut totals = totals.lock().expect("no thread fails while it counts");
        totals.streams += 1;
        for line in &lines {
            let instruction =
                decoder.next().ok_or("fewer commands than listed")?.map_err(|error| error.to_string())?;
            *totals.commands.entry(instruction.command.name()).or_default() += 1;
            compare(&instruction, line, job.accelerator)?;
        }
        if decoder.next().is_some() {
            return Err("more commands than listed".to_owned());
        }
    }
    Ok(())
}

/// Runs the jobs two at a time and returns what was compared and what went wrong.
fn run(vela: &Vela, jobs: &[Job]) -> (Totals, Vec<String>) {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vela_disassembly");
    let totals = Mutex::new(Totals::default());
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = check(vela, job, &scratch, &totals) {
                        let Job { model, accelerator, options } = job;
                        let failure = format!("{} on {accelerator} {options:?}: {error}", model.display());
                        failures.lock().expect("no thread fails while it reports").push(failure);
                    }
                }
            });
        }
    });
    let totals = totals.into_inner().expect("no thread failed");
    let sum: usize = totals.commands.values().sum();
    println!(
        "{} streams of {} compilations, {sum} commands: {:#?}",
        totals.streams,
        jobs.len(),
        totals.commands
    );
    (totals, failures.into_inner().expect("no thread failed"))
}

#[test]
fn every_command_agrees_with_vela() {
    let vela = Vela::find();
    // Beside those that run wholly on the NPU, one of which the compiler places only parts there.
    let names =
        npukit_testkit::MODELS.into_iter().chain(["kws_micronet_m.tflite", "keyword_scrambled_8bit.tflite"]);
    let mut models: Vec<PathBuf> = names.filter_map(npukit_testkit::model).collect();
    for ours in ["digits/digits_int8.tflite", "gesture/gesture_int16.tflite"] {
        models.push(npukit_testkit::repository().join("examples").join(ours));
    }
    let mut jobs = Vec::new();
    for model in &models {
        for accelerator in Accelerator::ALL {
            jobs.push(Job { model: model.clone(), accelerator, options: &[] });
        }
    }
    for accelerator in [Accelerator::U55_128, Accelerator::U65_512, Accelerator::U85_1024] {
        jobs.push(Job { model: models[0].clone(), accelerator, options: &["--cop-format", "COP2"] });
        let options = &["--cop-format", "COP2", "--separate-io-regions"];
        jobs.push(Job { model: models[0].clone(), accelerator, options });
    }
    let (totals, failures) = run(&vela, &jobs);
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), jobs.len(), failures.join("\n"));
    assert!(totals.streams >= jobs.len());
    for command in
        ["NPU_OP_CONV", "NPU_OP_DEPTHWISE", "NPU_OP_POOL", "NPU_OP_ELEMENTWISE", "NPU_OP_DMA_START"]
    {
        assert!(totals.commands.contains_key(command), "no {command} among the models");
    }
}

/// A wider search for commands that the models above don't use: `NPUKIT_MODELS=folder cargo test -- --ignored`. Models that
/// Vela refuses or leaves to the CPU are passed over; at least one has to compile.
#[test]
#[ignore = "needs a folder of models, named by NPUKIT_MODELS"]
fn every_command_of_a_folder_of_models_agrees_with_vela() {
    let vela = Vela::find();
    let folder = PathBuf::from(std::env::var_os("NPUKIT_MODELS").expect("NPUKIT_MODELS"));
    let entries = std::fs::read_dir(&folder).expect("the folder can be read");
    let mut models: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    models.retain(|model| model.extension().is_some_and(|extension| extension == "tflite"));
    models.sort();
    let mut jobs = Vec::new();
    for model in models {
        for accelerator in [Accelerator::U55_128, Accelerator::U65_512, Accelerator::U85_1024] {
            jobs.push(Job { model: model.clone(), accelerator, options: &[] });
        }
    }
    let (totals, failures) = run(&vela, &jobs);
    let (passed_over, failures): (Vec<String>, Vec<String>) = failures
        .into_iter()
        .partition(|failure| failure.contains("os error 2") || failure.contains(", 0 listed"));
    println!("passed over:\n{}", passed_over.join("\n"));
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), jobs.len(), failures.join("\n"));
    assert!(totals.streams > 0);
}
