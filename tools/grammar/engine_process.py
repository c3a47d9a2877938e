"""Runs an engine in a separate process, with a limit on its processor time for each schema."""

import multiprocessing
import os
import signal


def resident_mb(process):
    return int(open(f"/proc/{process}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_s(process):
    fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(pipe, make):
    os.setpgid(0, 0)  # processes that the engine starts end with it
    before = resident_mb("self")
    engine = make()
    inside = engine.pid() == os.getpid()
    pipe.send(engine.pid())
    while True:
        name, argument = pipe.recv()
        answer = getattr(engine, name)(argument)
        pipe.send((answer, resident_mb(engine.pid()) - (before if inside else 0)))


class EngineProcess:
    """make: makes the engine in the process. The engine is an object with pid() (whose time and memory count),
    compile(text) and read(tokens)."""

    def __init__(self, make, limit_s):
        self.make, self.limit_s = make, limit_s
        self.process = None
        self.memory_mb = 0.0

    def start(self):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=serve, args=(theirs, self.make), daemon=True)
        self.process.start()
        theirs.close()
        try:
            self.pid = self.pipe.recv()
        except EOFError:
            raise SystemExit("the engine did not start: its error is above") from None

    def call(self, name, argument):
        """Returns the engine's answer, or None if the limit was reached or the process has died; the next call then
        starts another process.

        The limit applies to a call of compile() and all calls until the next one.
        """
        if not self.process:
            self.start()
        if name == "compile":
            self.deadline_s = processor_s(self.pid) + self.limit_s
        self.pipe.send((name, argument))
        try:
            while not self.pipe.poll(0.2):
                if processor_s(self.pid) > self.deadline_s:
                    return self.end()
            answer, memory_mb = self.pipe.recv()
        except (EOFError, OSError):
            return self.end()
        self.memory_mb = max(self.memory_mb, memory_mb)
        return answer

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.pipe.close()
        self.process = None
