"""Runs the requests of one call, and returns outputs in the order of the call."""

import itertools
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable

from octavo._library import Engine, ResourceExhausted

# Maximum number of requests in the engine; further ones wait in Python.
_IN_FLIGHT_MAX = 1024


@dataclass
class Job:
    submit: Callable[[int], None]  # submits the request with this number
    begin: Callable[[int], Any]  # returns the receiver of its pieces


class Batches:
    """The only reader of an engine's outputs. Runs one batch at a time."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._ids = itertools.count()
        self.lock = threading.Lock()  # held while a batch runs

    def run(self, jobs: list[Job], use_tqdm: Any) -> list[Any]:
        with self.lock:
            return self._run(jobs, use_tqdm)

    def _run(self, jobs: list[Job], use_tqdm: Any) -> list[Any]:
        waiting = deque(enumerate(jobs))
        running: dict[int, tuple[int, Any]] = {}
        done: list[Any] = [None] * len(jobs)
        progress = _progress(len(jobs), use_tqdm)
        try:
            while waiting or running:
                self._submit_more(waiting, running)
                # after an error of one piece, _drop() waits for the requests in `running`
                pieces = self._engine.wait(1000)
                owners = [running.pop(piece.request) if piece.last else running[piece.request] for piece in pieces]
                for piece, (number, receiver) in zip(pieces, owners):
                    done[number] = receiver.take(piece)
                    if piece.last:
                        progress.update(1)
        finally:
            progress.close()
            self._drop(running)
        return done

    def _submit_more(self, waiting: deque, running: dict[int, tuple[int, Any]]) -> None:
        while waiting and len(running) < _IN_FLIGHT_MAX:
            number, job = waiting[0]
            request = next(self._ids)
            receiver = job.begin(request)
            try:
                job.submit(request)
            except ResourceExhausted:
                if running:
                    return
                raise
            waiting.popleft()
            running[request] = (number, receiver)

    def _drop(self, running: dict[int, Any]) -> None:
        """After an error: aborts running requests, so that their outputs do not appear in the next call."""
        for request in running:
            self._engine.abort(request)
        while running:
            for piece in self._engine.wait(1000):
                if piece.last:
                    running.pop(piece.request, None)


class _NoProgress:
    def update(self, count: int) -> None: ...
    def close(self) -> None: ...


def _progress(total: int, wanted: Any) -> Any:
    """Returns a tqdm progress bar, if tqdm is installed and the output is a terminal. `wanted` may be a function that
    makes one."""
    if callable(wanted):
        return wanted(total=total, desc="Processed prompts")
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoProgress()
    return tqdm(total=total, desc="Processed prompts", disable=None if wanted else True)
