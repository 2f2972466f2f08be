"""A forked call's answer, failure, crash and delay are told apart."""

from __future__ import annotations

import os
import signal
import time
import unittest

from conformance import forked


class Forked(unittest.TestCase):
    """One test per way to end."""

    def test_value_and_output(self) -> None:
        def work() -> int:
            os.write(1, b"hello")
            return 42

        outcome = forked.call(work, 10)
        self.assertEqual((outcome.value, outcome.failure, outcome.printed), (42, None, "hello"))

    def test_exception(self) -> None:
        outcome = forked.call(lambda: 1 // 0, 10)
        self.assertIn("ZeroDivisionError", outcome.failure)

    def test_signal(self) -> None:
        outcome = forked.call(lambda: os.kill(os.getpid(), signal.SIGSEGV), 10)
        self.assertEqual(outcome.failure, "killed by SIGSEGV")

    def test_timeout(self) -> None:
        start = time.monotonic()
        outcome = forked.call(lambda: time.sleep(60), 0.3)
        self.assertEqual(outcome.failure, "no answer in 0.3 s")
        self.assertLess(time.monotonic() - start, 10)


if __name__ == "__main__":
    unittest.main()
