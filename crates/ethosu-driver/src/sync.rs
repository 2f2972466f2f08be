//! Atomics and the waker's cell, or the model checker's in their place.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use core::task::Waker;

/// A cell for one waker, which any thread or interrupt handler may wake.
pub(crate) struct WakerCell {
    #[cfg(not(loom))]
    inner: atomic_waker::AtomicWaker,
    #[cfg(loom)]
    inner: loom::future::AtomicWaker,
}

impl WakerCell {
    const_unless_loom! {
        pub(crate) fn new() -> WakerCell {
            WakerCell {
                #[cfg(not(loom))]
                inner: atomic_waker::AtomicWaker::new(),
                #[cfg(loom)]
                inner: loom::future::AtomicWaker::new(),
            }
        }
    }

    /// Puts a waker in, in the place of the one that is there.
    pub(crate) fn register(&self, waker: &Waker) {
        #[cfg(not(loom))]
        self.inner.register(waker);
        #[cfg(loom)]
        self.inner.register_by_ref(waker);
    }

    /// Takes the waker out and wakes it. What happened before this is seen after the waker's registration or by its task.
    pub(crate) fn wake(&self) {
        self.inner.wake();
    }

    /// Takes the waker out.
    pub(crate) fn clear(&self) {
        #[cfg(not(loom))]
        drop(self.inner.take());
        #[cfg(loom)]
        drop(self.inner.take_waker());
    }
}

pub(crate) fn spin_loop() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
