"""Processes of a job that a test starts role by role, as a user's scripts do."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))
from ports import free_port  # noqa: E402,F401
from program import BIN, CONFIG, MULTISLOT, SAMPLE, SLOWNESS, ProgramTest, main  # noqa: E402,F401

PATIENCE = 60 * SLOWNESS  # seconds; a bound, not a pause
SLOW = {"REGATTA_FAILPOINTS": "push.lane=slow"}  # for jobs that are there to be disturbed: they leave others the cores


class ClusterTest(ProgramTest):
    """Every role gets a log of its own; what is left running at the end of a test is killed."""

    def setUp(self):
        super().setUp()
        self.started = []
        self.addCleanup(self.kill_all)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PADDLE_", "TRAINING_ROLE", "POD_IP"))}
        self.env = {**clean, "PATH": f"{BIN}:{os.environ['PATH']}",
                    "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}  # must do no harm

    def kill_all(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def role(self, log, *args, **env):
        out = open(self.folder / log, "wb")
        self.addCleanup(out.close)
        process = subprocess.Popen(["regatta", *map(str, args)], cwd=self.folder, env={**self.env, **env}, stdout=out,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def log(self, name):
        return (self.folder / name).read_text()

    def await_line(self, log, text, process=None):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if text in self.log(log):
                return
            if process is not None and process.poll() is not None:
                break
            time.sleep(0.02)
        self.fail(f"'{text}' never came: {self.log(log)[-2000:]}")

    def ends(self, process, code, log, seconds=60):
        try:
            process.wait(timeout=seconds * SLOWNESS)
        except subprocess.TimeoutExpired:
            self.fail(f"{log} did not end: {self.log(log)[-2000:]}")
        self.assertEqual(process.returncode, code, self.log(log)[-3000:])


class FleetJob(ClusterTest):
    """Servers on 127.0.0.11, .12, …, which play machines of their own; workers by PADDLE_TRAINER_ID."""

    def prepare(self, servers, workers, *args):
        self.hosts = [f"127.0.0.{11 + i}" for i in range(servers)]
        self.port = free_port(self.hosts[0])
        self.args = ("train", "-m", "config.yaml", *args)
        self.env.update(PADDLE_PSERVERS_IP_PORT_LIST=",".join(f"{host}:{self.port}" for host in self.hosts),
                        PADDLE_TRAINERS_NUM=str(workers))

    def server(self, i, *more):
        return self.role(f"s{i}.log", *self.args, *more, TRAINING_ROLE="PSERVER", POD_IP=self.hosts[i],
                         PADDLE_PORT=str(self.port))

    def worker(self, i, *more):
        return self.role(f"w{i}.log", *self.args, *more, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(i))
