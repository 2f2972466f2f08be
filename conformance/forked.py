"""Runs a function in a forked process of its own: compilers and interpreters may crash or corrupt their heap."""

from __future__ import annotations

import os
import pickle
import select
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What became of a forked call: its value, or why there is none, and what it printed."""

    value: object
    failure: str | None
    printed: str


def call(function: Callable[[], object], timeout: float) -> Outcome:
    """Calls `function` in a forked child, its output captured; the child is killed after `timeout` seconds."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            _child(function, writer, log.fileno())
        os.close(writer)
        data, late = _read_all(reader, time.monotonic() + timeout)
        os.close(reader)
        if late:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        log.seek(0)
        printed = log.read().decode(errors="replace")
    if late:
        return Outcome(None, f"no answer in {timeout:g} s", printed)
    if os.WIFSIGNALED(status):
        return Outcome(None, f"killed by {signal.Signals(os.WTERMSIG(status)).name}", printed)
    if not data:
        return Outcome(None, "ended without an answer", printed)
    value, failure = pickle.loads(data)
    return Outcome(value, failure, printed)


def _child(function: Callable[[], object], writer: int, log: int) -> None:
    code = 1
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            answer = (function(), None)
        except BaseException as problem:  # noqa: BLE001  (SystemExit is an answer too)
            answer = (None, f"{type(problem).__name__}: {problem}")
        data = pickle.dumps(answer)
        while data:
            data = data[os.write(writer, data):]
        code = 0
    finally:
        os._exit(code)


def _read_all(reader: int, deadline: float) -> tuple[bytes, bool]:
    data = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return data, True
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            return data, False
        data += chunk
