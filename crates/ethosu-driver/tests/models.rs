//! Real networks through driver and NPU: compiled by Vela for every accelerator, run synchronously, asynchronously and by three
//! threads that share two NPUs, and compared with TensorFlow Lite Micro bit by bit.
//!
//! What Vela makes is kept in the target folder, so that only the first run compiles.

mod common;

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use common::{Event, FLASH, SRAM, Shared, Sim, Wall};
use ethosu_driver::placement::{MemoryMode, SystemConfig, placement};
use ethosu_driver::{Accelerator, Config, Device, Hooks, Job, Pool, Waiting, Want, target::Any};
use ethosu_model::device::{Banks, Timing};
use npub::{Blob, Place, TensorKind};
use npukit_vela::compile::{BuildOptions, build};
use npukit_vela::npy::Array;
use npukit_vela::oracle::{Loaded, Oracle, OracleOptions, Reference};
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::{Environment, Toolchain};

const SAMPLES: usize = 3;
const LIMIT: Duration = Duration::from_secs(600);

/// A network as TensorFlow Lite Micro computes it.
struct Model {
    name: String,
    bytes: Vec<u8>,
    inputs: Vec<Vec<Array>>,
    outputs: Vec<Vec<Array>>,
}

/// A compiled network and how it has to be run.
struct Compiled {
    npub: Vec<u8>,
    config: Config<Any>,
}

fn environment() -> Environment {
    Toolchain::from_environment().unwrap().ensure(&mut Silent).expect("the toolchain is installed")
}

impl Model {
    fn new(path: &Path, environment: &Environment) -> Model {
        let bytes = fs::read(path).unwrap();
        let loaded = Oracle::load(environment, Reference::Tflm, &bytes, &OracleOptions::default()).unwrap();
        let Loaded::Ready(mut oracle) = loaded else { panic!("TFLM runs it") };
        let mut state = 1u64;
        let mut byte = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 48) as u8
        };
        let inputs: Vec<Vec<Array>> = (0..SAMPLES)
            .map(|sample| {
                let input = oracle.inputs().iter().map(|input| {
                    let length = input.shape.iter().product::<usize>() * input.dtype.bytes();
                    // The last sample is dark: small values give other paths than noise.
                    let scale = if sample + 1 == SAMPLES { 8 } else { 1 };
                    let data = (0..length).map(|_| byte() / scale).collect();
                    Array::new(input.dtype, input.shape.clone(), data).unwrap()
                });
                input.collect()
            })
            .collect();
        let outputs = oracle.run(&inputs).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Model { name, bytes, inputs, outputs }
    }

    fn compiled(&self, accelerator: Accelerator, environment: &Environment) -> Compiled {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = |ending| folder.join(format!("{}-{accelerator}.{ending}", self.name));
        let (blob, names) = (file("npub"), file("txt"));
        if !names.exists() {
            let built =
                build(environment.vela(), &self.bytes, &BuildOptions::new(accelerator), &mut Silent).unwrap();
            fs::create_dir_all(&folder).unwrap();
            fs::write(&blob, &built.npub).unwrap();
            let configuration = &built.compiled.configuration;
            fs::write(&names, format!("{}\n{}", configuration.memory_mode, configuration.system_config))
                .unwrap();
        }
        let names = fs::read_to_string(names).unwrap();
        let (mode, system) = names.split_once('\n').unwrap();
        let (mode, system) = (MemoryMode::from_name(mode).unwrap(), SystemConfig::from_name(system).unwrap());
        let placement = placement(mode, system).unwrap();
        assert_eq!(placement.product, accelerator.product());
        let config =
            Config::new().with_routing(placement.commands, placement.regions).for_accelerator(accelerator);
        Compiled { npub: fs::read(blob).unwrap(), config }
    }
}

/// A network's memory on the board: its own arena, the blob shared.
struct Slot<'c> {
    blob: Blob<'c>,
    loaded: npub::Job,
    memory: &'c Shared,
}

impl<'c> Slot<'c> {
    fn new(compiled: &'c Compiled, memory: &'c Shared, arena: u64) -> Slot<'c> {
        let blob = Blob::parse(&compiled.npub).unwrap();
        let lent = npub::Arena { base: arena, bytes: blob.arena_bytes() };
        let loaded = npub::load(&compiled.npub, FLASH, lent, None).unwrap();
        assert_eq!(loaded.misaligned().next(), None);
        Slot { blob, loaded, memory }
    }

    fn job(&self) -> Job<'c> {
        Job::from_npub(&self.loaded, self.blob.bytes())
    }

    fn places(&self, kind: TensorKind) -> Vec<Place> {
        self.blob.tensors().unwrap().of_kind(kind).map(|tensor| tensor.place.unwrap()).collect()
    }

    /// Fills the arena with noise and puts a sample's inputs in.
    fn put(&self, inputs: &[Array]) {
        let mut memory = self.memory.lock().unwrap();
        for (base, size) in self.loaded.region_base.into_iter().zip(self.loaded.region_size) {
            if (SRAM..FLASH).contains(&base) {
                memory.bytes_mut(base, size as usize).unwrap().fill(0x5A);
            }
        }
        for (place, input) in self.places(TensorKind::Input).into_iter().zip(inputs) {
            let address = self.loaded.address(place).unwrap();
            memory.bytes_mut(address, input.data().len()).unwrap().copy_from_slice(input.data());
        }
    }

    fn check(&self, outputs: &[Array], case: &str) {
        let memory = self.memory.lock().unwrap();
        let places = self.places(TensorKind::Output);
        assert_eq!(places.len(), outputs.len());
        for (place, output) in places.into_iter().zip(outputs) {
            let address = self.loaded.address(place).unwrap();
            assert_eq!(memory.bytes(address, output.data().len()), Some(output.data()), "{case}");
        }
    }
}

/// Flash with the blob, and room for arenas.
fn board(compiled: &Compiled, arenas: u64) -> (Shared, u64) {
    let arena = Blob::parse(&compiled.npub).unwrap().arena_bytes().next_multiple_of(64);
    let mut banks = Banks::new();
    banks.rom(FLASH, compiled.npub.clone());
    banks.ram(SRAM, (arena * arenas) as usize);
    (Arc::new(Mutex::new(banks)), arena)
}

/// Hooks that let a thread sleep.
struct Sleeping(Arc<Event>);

impl Waiting for Sleeping {
    fn ticket(&self) -> u32 {
        self.0.ticket()
    }

    fn wait(&self, ticket: u32, limit: Option<Duration>) {
        self.0.wait(ticket, limit);
    }

    fn notify(&self) {
        self.0.notify();
    }
}

impl Hooks for Sleeping {
    type Argument = ();
}

type OurDevice = Device<Sim, Any, Sleeping>;

fn device(accelerator: Accelerator, compiled: &Compiled, memory: &Shared) -> (Sim, OurDevice) {
    let sim = Sim::new(accelerator, memory);
    let device = Device::with_hooks(sim.clone(), compiled.config, Sleeping(Arc::default()));
    (sim, device)
}

/// The hardware of an NPU: runs jobs and calls the interrupt handler.
fn hardware(sim: &Sim, device: &OurDevice, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        sim.lock().advance();
        let line = sim.lock().interrupt();
        if line {
            device.on_interrupt();
        } else {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match std::pin::Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn exact(model: &Model, accelerator: Accelerator, environment: &Environment) {
    let compiled = model.compiled(accelerator, environment);
    let case = |way: &str, sample: usize| format!("{} on {accelerator}, {way}, sample {sample}", model.name);
    let samples = || model.inputs.iter().zip(&model.outputs).enumerate();

    // Synchronously, without an interrupt: the driver asks.
    let (memory, arena) = board(&compiled, 3);
    let slot = Slot::new(&compiled, &memory, SRAM);
    let sim = Sim::new(accelerator, &memory);
    let quiet: Device<_> = Device::new(sim.clone(), compiled.config);
    let mut npu = quiet.init().unwrap();
    let mut job = slot.job();
    for (sample, (inputs, outputs)) in samples() {
        slot.put(inputs);
        let result = npu.invoke_within(&mut job, LIMIT, &Wall::new());
        assert!(result.is_ok(), "{}: {result:?}, {:?}", case("synchronously", sample), sim.lock().refusal());
        slot.check(outputs, &case("synchronously", sample));
    }
    drop(npu);

    // Asynchronously: the interrupt handler wakes the future.
    let (sim, device) = self::device(accelerator, &compiled, &memory);
    sim.lock().set_timing(Timing::Manual);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| hardware(&sim, &device, &done));
        let mut npu = device.init().unwrap();
        for (sample, (inputs, outputs)) in samples() {
            slot.put(inputs);
            let completion = block_on(npu.submit(&mut job).unwrap()).unwrap();
            assert!(completion.interrupt);
            slot.check(outputs, &case("asynchronously", sample));
        }
        done.store(true, Ordering::Relaxed);
    });

    // Three threads on two NPUs.
    let npus = [(); 2].map(|()| self::device(accelerator, &compiled, &memory));
    npus.iter().for_each(|(sim, _)| sim.lock().set_timing(Timing::Manual));
    let event = Event::default();
    let pool: Pool<'_, _, _, _, 2, 4, _> = Pool::with_waiting([&npus[0].1, &npus[1].1], &event).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for (sim, device) in &npus {
            let done = &done;
            scope.spawn(move || hardware(sim, device, done));
        }
        let (pool, compiled, memory, case) = (&pool, &compiled, &memory, &case);
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || {
                    let slot = Slot::new(compiled, memory, SRAM + thread * arena);
                    let mut job = slot.job();
                    for (sample, (inputs, outputs)) in samples() {
                        slot.put(inputs);
                        let mut npu = pool.reserve_blocking(Want::Accelerator(accelerator)).unwrap();
                        if thread == 0 {
                            block_on(npu.submit(&mut job).unwrap()).unwrap();
                        } else {
                            npu.invoke_within(&mut job, LIMIT, &Wall::new()).unwrap();
                        }
                        drop(npu);
                        slot.check(outputs, &case("with others", sample));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let jobs: u64 = npus.iter().map(|(sim, _)| sim.lock().jobs()).sum();
    assert_eq!(jobs, 3 * SAMPLES as u64);
}

fn exact_everywhere(path: Option<PathBuf>) {
    let Some(path) = path else { return };
    let environment = environment();
    let model = Model::new(&path, &environment);
    for accelerator in Accelerator::ALL {
        exact(&model, accelerator, &environment);
    }
}

#[test]
fn ad01() {
    exact_everywhere(npukit_testkit::model("ad01_int8.tflite"));
}

#[test]
fn hello_world() {
    exact_everywhere(npukit_testkit::model("hello_world_int8.tflite"));
}

#[test]
fn kws() {
    exact_everywhere(npukit_testkit::model("kws_ref_model.tflite"));
}

#[test]
fn micro_speech() {
    exact_everywhere(npukit_testkit::model("micro_speech_quantized.tflite"));
}

#[test]
fn person_detect() {
    exact_everywhere(npukit_testkit::model("person_detect.tflite"));
}

#[test]
fn resnet8() {
    exact_everywhere(npukit_testkit::model("pretrainedResnet_quant.tflite"));
}

#[test]
fn vww() {
    exact_everywhere(npukit_testkit::model("vww_96_int8.tflite"));
}

#[test]
fn digits() {
    exact_everywhere(Some(npukit_testkit::repository().join("examples/digits/digits_int8.tflite")));
}

#[test]
fn gesture() {
    exact_everywhere(Some(npukit_testkit::repository().join("examples/gesture/gesture_int16.tflite")));
}
