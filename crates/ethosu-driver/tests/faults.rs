//! Every fault ends in an error of its own, and the next job runs.

mod common;

use std::time::Duration;

use common::*;
use ethosu_driver::{
    Accelerator, AxiPort, Channel, Config, Device, FaultKind, Hooks, InitError, InvokeError, Npu, PmuError,
    Privilege, Protection, ResetError, Security, SubmitError, Waiting, target,
};
use ethosu_isa::registers;
use ethosu_model::device::{Injection, Timing};

const LIMIT: Duration = Duration::from_millis(50);

/// Runs two copies with a fault, then without, and gives the fault's text.
fn fault(accelerator: Accelerator, injection: Injection) -> (FaultKind, String) {
    let payload = payload(accelerator, &copies(2, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);
    let clock = Ticks::default();

    sim.lock().inject(injection);
    let Err(InvokeError::Fault(fault)) = npu.invoke_within(&mut job, LIMIT, &clock) else {
        panic!("no fault");
    };
    assert_eq!(fault.recovery, Ok(()));
    assert!(!sim.lock().is_running() && !sim.lock().is_kept_on() && !sim.lock().interrupt());
    assert_eq!(npu.power_requests(), 0);

    spoil(&memory);
    npu.invoke_within(&mut job, LIMIT, &clock).expect("the next job runs");
    assert!(copied(&memory, 2));
    (fault.kind, fault.to_string())
}

#[test]
fn each_fault_has_its_error() {
    let on = |port, channel| FaultKind::Bus { port, channel: Some(channel) };
    for (injection, kind, text) in [
        (
            Injection::BusError { address: SOURCE + 5 },
            on(AxiPort::External, Channel::TransferRead),
            "bus fault on AXI1 reading in a transfer, at byte 0x20 of the command stream (NPU_OP_DMA_START), STATUS 0x00004806",
        ),
        (
            Injection::BusError { address: DESTINATION + COPY_BYTES as u64 },
            on(AxiPort::Sram, Channel::TransferWrite),
            "bus fault on AXI0 writing in a transfer, at byte 0x3c of the command stream (NPU_OP_DMA_START), STATUS 0x00009006",
        ),
        (
            Injection::BusError { address: FLASH + 32 + 0x24 },
            on(AxiPort::External, Channel::Commands),
            "bus fault on AXI1 reading commands, at byte 0x3c of the command stream (NPU_OP_DMA_START), STATUS 0x00000806",
        ),
        (
            Injection::Parse { offset: 0x21 },
            FaultKind::Parse,
            "command parse fault, at byte 0x3c of the command stream (NPU_OP_DMA_START), STATUS 0x00000012",
        ),
        (
            Injection::WeightDecoder { offset: 0 },
            FaultKind::WeightDecoder,
            "weight decoder fault, at byte 0x20 of the command stream (NPU_OP_DMA_START), STATUS 0x00000082",
        ),
        (
            Injection::Ecc { offset: 0x100 },
            FaultKind::Ecc,
            "ECC fault in an internal memory, at byte 0x44 of the command stream (NPU_OP_STOP), STATUS 0x00000102",
        ),
        (
            Injection::Hang { offset: 0x30 },
            FaultKind::TimeOut { limit: LIMIT },
            "time-out after 50ms, at byte 0x3c of the command stream (NPU_OP_DMA_START), STATUS 0x00000001",
        ),
    ] {
        for accelerator in [Accelerator::U55_128, Accelerator::U65_512] {
            let (found, message) = fault(accelerator, injection.clone());
            assert_eq!((found, &*message), (kind, text), "{injection:?} on {accelerator}");
        }
    }
}

#[test]
fn what_ran_before_a_fault_stays_written() {
    let accelerator = Accelerator::U55_256;
    let payload = payload(accelerator, &copies(3, accelerator.product()));
    let memory = memory(&payload);
    spoil(&memory);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_, target::U55> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    sim.lock().inject(Injection::BusError { address: SOURCE + 2 * COPY_BYTES as u64 });
    npu.invoke(&mut job(&payload)).unwrap_err();
    assert!(copied(&memory, 2) && !copied(&memory, 3));
}

#[test]
fn a_second_master_is_found_out() {
    let bases = |region: u32| registers::BASEP + 8 * region;
    let (reset, other) = (Protection::default().word(), Protection::from_word(0b10).word());
    for (writes, register) in [
        (vec![(registers::RESET, other), (registers::STATUS, 0)], "PROT"),
        (vec![(registers::RESET, reset)], "QBASE"),
        (vec![(registers::QBASE, 0x1234_0000)], "QBASE"),
        (vec![(registers::QSIZE, 8)], "QSIZE"),
        (vec![(registers::QCONFIG, 1)], "QCONFIG"),
        (vec![(bases(1), SRAM as u32)], "BASEP1"),
        (vec![(bases(7) + 4, 1)], "BASEP7"),
        (vec![(registers::REGIONCFG, 0)], "REGIONCFG"),
        (vec![(registers::AXI_LIMIT, 4)], "AXI_LIMIT0"),
        (vec![(registers::AXI_LIMIT + 12, 0)], "AXI_LIMIT3"),
    ] {
        interference(Accelerator::U65_256, writes, register);
    }
    for (writes, register) in [
        (vec![(registers::MEM_ATTR + 8, 0)], "MEM_ATTR2"),
        (vec![(registers::AXI_SRAM, 0)], "AXI_SRAM"),
        (vec![(registers::AXI_EXT, 1)], "AXI_EXT"),
        (vec![(registers::POWER_CTRL, 1)], "POWER_CTRL"),
    ] {
        interference(Accelerator::U85_256, writes, register);
    }
    interference(Accelerator::U55_128, vec![(registers::AXI_LIMIT + 4, 0)], "AXI_LIMIT1");
}

/// Another master's writes are found by a register's name, also where the NPU is kept on and the next job needs no reset; and
/// the next job finds everything as it was.
fn interference(accelerator: Accelerator, writes: Vec<(u32, u32)>, register: &str) {
    let (kind, text) = fault(accelerator, Injection::SecondMaster(writes.clone()));
    assert!(
        matches!(kind, FaultKind::Interference { register: found, .. } if found == register),
        "{writes:?}: {text}"
    );
    assert!(text.starts_with(&format!("something else changed the NPU: {register} is 0x")), "{text}");

    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut on = npu.keep_on().unwrap();
    let ports = || [0, 4, 8, 12, 16, 20].map(|n| sim.lock().read(registers::AXI_LIMIT + n));
    let before = ports();
    sim.lock().inject(Injection::SecondMaster(writes));
    on.invoke_within(&mut job(&payload), LIMIT, &Ticks::default()).unwrap_err();
    on.invoke(&mut job(&payload)).unwrap();
    assert_eq!(ports(), before, "{register}");
}

#[test]
fn registers_need_not_be_read_back() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new().without_read_back());
    let mut npu = device.init().unwrap();
    sim.lock().inject(Injection::SecondMaster(vec![(registers::BASEP + 56, 0x10)]));
    npu.invoke(&mut job(&payload)).expect("nobody looks");
    assert!(copied(&memory, 1));
}

#[test]
fn a_second_masters_job_is_not_run_over() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let refused = |npu: &mut Npu<'_, Sim>, requests: u32| {
        sim.lock().set_timing(Timing::Manual);
        sim.lock().write(registers::CMD, registers::command::RUN);
        assert!(sim.lock().is_running());
        let error = npu.invoke(&mut job(&payload)).unwrap_err();
        assert!(matches!(error, InvokeError::Submit(SubmitError::Occupied { .. })), "{error}");
        if requests == 0 {
            // A first request for power resets, too.
            assert!(matches!(npu.keep_on().unwrap_err(), ResetError::Occupied { .. }));
            assert!(matches!(npu.pmu().unwrap_err(), PmuError::Reset(ResetError::Occupied { .. })));
        }
        assert_eq!(npu.power_requests(), requests);
        assert!(sim.lock().is_running(), "it was left alone");
        npu.reset().unwrap();
        sim.lock().set_timing(Timing::AtOnce);
        npu.invoke(&mut job(&payload)).unwrap();
        assert!(copied(&memory, 1));
    };
    refused(&mut npu, 0);
    refused(&mut npu.keep_on().unwrap(), 1);
    // Initialising is the one thing that stops whatever runs.
    sim.lock().set_timing(Timing::Manual);
    drop(npu);
    sim.lock().write(registers::CMD, registers::command::RUN);
    let npu = device.init().unwrap();
    assert!(!sim.lock().is_running());
    drop(npu);
}

/// The interrupt that nobody hears: a thread that blocks until it comes looks once more when its time is over.
#[test]
fn a_blocked_thread_looks_before_it_gives_up() {
    struct Deaf;
    impl Waiting for Deaf {
        fn wait(&self, _: u32, limit: Option<Duration>) {
            std::thread::sleep(limit.expect("without a limit it would wait for ever"));
        }
    }
    impl Hooks for Deaf {
        type Argument = ();
    }

    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device = Device::<_, target::Any, _>::with_hooks(sim.clone(), Config::new(), Deaf);
    let mut npu = device.init().unwrap();
    sim.lock().set_timing(Timing::Manual);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !sim.lock().is_running() {
                std::thread::yield_now();
            }
            sim.lock().advance();
        });
        let completion =
            npu.invoke_within(&mut job(&payload), LIMIT, &Wall::new()).expect("it was over in time");
        assert!(!completion.interrupt);
    });
    assert!(copied(&memory, 1));
}

#[test]
fn a_missing_interrupt_is_no_fault_and_a_spurious_one_no_end() {
    let accelerator = Accelerator::U55_64;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);

    sim.lock().inject(Injection::MissingInterrupt);
    let completion = npu.invoke(&mut job).unwrap();
    assert!(!completion.interrupt && copied(&memory, 1));

    sim.lock().raise_interrupt();
    assert_eq!(device.on_interrupt(), ethosu_driver::Interrupt::Spurious);
    assert!(!sim.lock().interrupt());

    spoil(&memory);
    sim.lock().set_timing(Timing::Manual);
    let running = npu.submit(&mut job).unwrap();
    sim.lock().raise_interrupt();
    assert_eq!(device.on_interrupt(), ethosu_driver::Interrupt::Notice);
    let ethosu_driver::Progress::Running(running) = running.poll() else { panic!("over too early") };
    assert!(sim.lock().advance());
    assert_eq!(device.on_interrupt(), ethosu_driver::Interrupt::JobOver);
    assert_eq!(device.on_interrupt(), ethosu_driver::Interrupt::Spurious);
    let completion = running.wait().unwrap();
    assert!(completion.interrupt && copied(&memory, 1));
    assert_eq!(completion.status.history(), 0xFFFF);
}

#[test]
fn resets_that_fail() {
    let accelerator = Accelerator::U65_256;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let config = Config::new().with_reset_polls(100).with_protection(Security::NonSecure, Privilege::User);
    let device: Device<_> = Device::new(sim.clone(), config);

    sim.lock().inject(Injection::EndlessReset);
    let error = device.init().unwrap_err();
    assert!(matches!(error, InitError::Reset(ResetError::TimeOut { polls: 100, .. })), "{error}");
    // The reset goes on, and nothing else can be read. The next attempt begins it anew.
    sim.lock().inject(Injection::EndlessReset);
    assert!(matches!(device.init().unwrap_err(), InitError::Reset(ResetError::TimeOut { .. })));
    drop(device.init().expect("this reset ends"));

    let wrong = Protection { security: Security::NonSecure, privilege: Privilege::Privileged };
    sim.lock().inject(Injection::WrongProtection(wrong));
    let error = device.init().unwrap_err();
    assert_eq!(error.to_string(), "after the reset the NPU is non-secure, privileged, not non-secure, user");

    let mut npu = device.init().unwrap();
    let mut job = job(&payload);
    sim.lock().inject(Injection::EndlessReset);
    let error = npu.invoke(&mut job).unwrap_err();
    assert!(matches!(error, InvokeError::Submit(SubmitError::Reset(ResetError::TimeOut { .. }))), "{error}");
    assert_eq!(npu.power_requests(), 0);
    npu.invoke(&mut job).expect("the next job resets again");
    assert!(copied(&memory, 1));

    // A reset that fails after a fault is told with the fault.
    sim.lock().inject(Injection::Parse { offset: 0 });
    let mut on = npu.keep_on().unwrap();
    sim.lock().inject(Injection::WrongProtection(wrong));
    let Err(InvokeError::Fault(fault)) = on.invoke(&mut job) else { panic!("no fault") };
    assert_eq!(fault.kind, FaultKind::Parse);
    assert!(matches!(fault.recovery, Err(ResetError::Protection { .. })));
    assert!(
        fault
            .to_string()
            .ends_with("; then after the reset the NPU is non-secure, privileged, not non-secure, user")
    );
    spoil(&memory);
    on.invoke(&mut job).expect("the next job resets again");
    assert!(copied(&memory, 1));
    assert_eq!(on.power_requests(), 1);
    drop(on);
    assert_eq!(npu.power_requests(), 0);
}

#[test]
fn what_the_model_does_not_know_ends_in_a_time_out_and_has_a_reason() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let clock = Ticks::default();

    // Regions that overlap a little: the model doesn't follow that.
    let bases = [SRAM + 0x1000, SRAM + 0x1020];
    let mut overlapping =
        ethosu_driver::Job::from_addresses(&payload, Some(FLASH), &bases, &[64, 64]).unwrap();
    let Err(InvokeError::Fault(fault)) = npu.invoke_within(&mut overlapping, LIMIT, &clock) else {
        panic!("no fault");
    };
    assert_eq!(fault.kind, FaultKind::TimeOut { limit: LIMIT });
    let reason = sim.lock().refusal().unwrap().to_string();
    assert_eq!(reason, "regions 0 and 1 overlap, and what the job writes to them isn't followed");

    npu.invoke_within(&mut job(&payload), LIMIT, &clock).unwrap();
    assert!(copied(&memory, 1) && sim.lock().refusal().is_none());
}
