"""Scripts that tests run in an interpreter of their own: a process has one job."""
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

# A shell that runs tests in the background has them ignore Ctrl+C, and so what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A sanitizer's runtime, which an interpreter loads first; programs that were built with it have it inside.
_PRELOAD = os.environ.pop("LD_PRELOAD", None)
PYTHON = [sys.executable] if _PRELOAD is None else ["env", f"LD_PRELOAD={_PRELOAD}", sys.executable]
BIN = pathlib.Path(os.environ.get("REGATTA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))


def free_port(*hosts):
    """Free on every host, and below the ports that the kernel gives to connections: it stays free."""
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(max(low - 12_000, 1024), low)
        try:
            for host in hosts:
                with socket.socket() as probe:
                    probe.bind((host, port))
            return port
        except OSError:
            pass


TESTS = pathlib.Path(__file__).resolve().parent  # scripts may import what is beside this file


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="regatta-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("PADDLE_", "TRAINING_", "REGATTA_")) or key == "REGATTA_BIN"}
        self.env.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side
        self.env["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(TESTS))))

    def run_script(self, script, *arguments, code=0, env=None, launch=()):
        """Runs it, under `regatta launch` where `launch` has its arguments; what it printed."""
        path = self.folder / "script.py"
        path.write_text(textwrap.dedent(script))
        command = [*PYTHON, str(path), *arguments]
        if launch:
            command = [str(BIN / "regatta"), "launch", *launch, "--", *command]
        done = subprocess.run(command, cwd=self.folder, env={**self.env, **(env or {})}, capture_output=True, text=True,
                              timeout=120)
        logs = "".join(f"\n== {log.name}\n{log.read_text()[-1500:]}" for log in sorted(self.folder.glob("log/*log.*")))
        self.assertEqual(done.returncode, code, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}{logs}")
        self.stderr = done.stderr
        return done.stdout

    def log(self, name):
        return (self.folder / "log" / name).read_text()
