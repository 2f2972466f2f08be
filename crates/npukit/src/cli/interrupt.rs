//! Leaves nothing behind when a signal ends the program: no compiler that still runs, no temporary folder.

#[cfg(unix)]
pub(super) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::{iterator::Signals, low_level::emulate_default_handler};

    // What the caller had ignored, as nohup does, stays so.
    let signals = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal));
    // Without the watch signals do what they always do.
    let Ok(mut signals) = Signals::new(signals) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            npukit_vela::interrupt::clean_up();
            // The caller sees which signal it was.
            let _ = emulate_default_handler(signal);
        }
    });
}

#[cfg(not(unix))]
pub(super) fn watch() {}

/// Whether a signal was ignored when the program was started. Known on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
