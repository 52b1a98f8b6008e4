"""The processes of a fault test: servers that are killed and come back, workers that count, a bad network."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "program"))
from ports import free_port  # noqa: E402

BIN = pathlib.Path(os.environ.get("REGATTA_BIN", SOURCE / "build" / "bin"))
TOOLS = BIN.parent / "tests"
PATIENCE = 120 * int(os.environ.get("TEST_SLOWNESS", 1))  # seconds; a bound, not a pause


class Fault(Exception):
    """Something that must not happen has."""


class Skipped(Exception):
    """What a trial needs is not there."""


class Count(dict):
    def add(self, more):
        for key, value in more.items():
            self[key] = self.get(key, 0) + value


class Process:
    def __init__(self, ground, name, command, env=None, stdin=subprocess.DEVNULL):
        self.name, self.log_path = name, ground.folder / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.log_start = log.tell()
            self.popen = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT,
                                          stdin=stdin, cwd=ground.folder, env={**ground.env, **(env or {})})
        ground.processes.append(self)

    def log(self):
        with open(self.log_path, "rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def running(self):
        return self.popen.poll() is None

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def ends(self, seconds=PATIENCE):
        """Its exit code; one that does not end is a fault."""
        try:
            return self.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Fault(f"{self.name} did not end within {seconds} s: {self.log()[-1500:]}") from None


class Server:
    """A parameter server with a data_dir, which can be started again and again on its port."""

    def __init__(self, ground, index, workers, data_dir=None, log_limit=None, lease=None):
        self.ground, self.index, self.workers = ground, index, workers
        self.log_limit, self.lease = log_limit, lease  # MB, seconds
        self.port = free_port()
        self.data_dir = data_dir or ground.folder / f"data{index}"
        self.process = None

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    def start(self, failpoints="", wait=True):
        command = [BIN / "regatta", "pserver", "--port", self.port, "--ports_num_for_sparse", 0,
                   "--num_gradient_servers", self.workers, "--data_dir", self.data_dir, "--host", "127.0.0.1",
                   *self.ground.credentials]
        if self.log_limit:
            command += ["--log_limit", self.log_limit]
        if self.lease:
            command += ["--lease_seconds", self.lease]
        self.process = Process(self.ground, f"server{self.index}", command, {"REGATTA_FAILPOINTS": failpoints})
        if wait and not self.listens():
            raise Fault(f"server {self.index} does not start: {self.process.log()[-1500:]}")
        return self

    def listens(self, seconds=PATIENCE):
        """Whether it came to listen; False when it ended first."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if "Server listening on" in self.process.log():
                return True
            if not self.process.running():
                return False
            time.sleep(0.01)
        raise Fault(f"server {self.index} neither listens nor ends: {self.process.log()[-1500:]}")

    def kill(self):
        self.process.kill()

    def move(self):
        """The next one listens elsewhere, as where this one only sleeps on its port."""
        self.port = free_port()

    def sleep(self, seconds):
        """As a machine that swaps, or a debugger, lets it sleep."""
        self.process.popen.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.popen.send_signal(signal.SIGCONT)


class Ledger(Process):
    """One worker of a job of ledgers; `to` is where it finds its servers."""

    def __init__(self, ground, rank, workers, to, *args, name=None, env=None):
        self.rank, self.acks = rank, ground.folder / f"acks{rank}"
        self.args = [TOOLS / "ledger", "--servers", ",".join(to), "--rank", rank, "--workers", workers, "--acks",
                     self.acks, "--incarnation", 1000 + rank, *ground.credentials, *args]
        super().__init__(ground, name or f"ledger{rank}", self.args, env)

    def start_again(self, ground, failpoints=""):
        """Another process in the place of this one, which was killed."""
        self.args[self.args.index("--incarnation") + 1] += 100
        super(Ledger, self).__init__(ground, self.name, self.args, {"REGATTA_FAILPOINTS": failpoints})

    def acknowledged(self):
        return self.acks.read_bytes().count(b"\n") if self.acks.exists() else 0

    def stop(self):
        end = time.monotonic() + PATIENCE  # one that has just been started does not know the signal yet
        while self.running() and "init rpc client" not in self.log() and time.monotonic() < end:
            time.sleep(0.01)
        self.popen.send_signal(signal.SIGTERM)

    def count(self, seconds=PATIENCE):
        """What it counted, when it ends well or with wrong rows; otherwise a fault."""
        code = self.ends(seconds)
        line = re.search(r"(?m)^rank \d+ pushes .*$", self.log())
        if code not in (0, 1) or not line:
            raise Fault(f"{self.name} ended with {code}: {self.log()[-1500:]}")
        words = line[0].split()
        return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


class Proxy(Process):
    def __init__(self, ground, to, *args):
        super().__init__(ground, f"proxy{len(ground.processes)}", [TOOLS / "proxy", "--to", to, *args],
                         stdin=subprocess.PIPE)
        end = time.monotonic() + PATIENCE
        while not (port := re.search(r"port (\d+)\n", self.log())):
            if not self.running() or time.monotonic() > end:
                raise Fault(f"the proxy does not start: {self.log()}")
            time.sleep(0.01)
        self.endpoint = f"127.0.0.1:{port[1]}"

    def say(self, word):
        self.popen.stdin.write(word.encode() + b"\n")
        self.popen.stdin.flush()

    def end(self):
        self.popen.stdin.close()
        self.ends()
        words = self.log().splitlines()[-1].split()
        return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


class Ground:
    """A folder and processes; when it is left, none of either is."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta_fault_"))
        self.processes, self.mounts, self.credentials = [], [], []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PADDLE_", "REGATTA_", "TRAINING_ROLE"))}
        self.env["PATH"] = f"{BIN}:{self.env['PATH']}"
        return self

    def __exit__(self, kind, error, trace):
        for process in self.processes:
            if process.running():
                process.kill()
        for mount in self.mounts:
            subprocess.run(["umount", mount], check=False)
        keep = os.environ.get("REGATTA_KEEP")
        if keep and kind is not None:
            shutil.move(self.folder, pathlib.Path(keep) / self.folder.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def small_disk(self, size):
        """A folder that holds so much ("6m") and no more."""
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "regatta", disk], check=False,
                          capture_output=True).returncode != 0:
            raise Skipped("a small disk cannot be mounted: this takes root")
        self.mounts.append(disk)
        return disk

    def make_credentials(self):
        """From now on servers and ledgers speak TLS."""
        subprocess.run([BIN / "regatta", "credentials", "init", "creds", "--host", "127.0.0.1"], cwd=self.folder,
                       env=self.env, check=True, capture_output=True)
        self.credentials = ["--token_file", "creds/token", "--tls_cert", "creds/tls.crt", "--tls_key", "creds/tls.key",
                            "--tls_ca", "creds/ca.crt", "--admin_token_file", "creds/admin_token"]

    def await_acks(self, ledgers, counts):
        """Until every ledger has had so many of its pushes acknowledged."""
        end = time.monotonic() + PATIENCE
        for ledger in ledgers:
            while ledger.acknowledged() < counts[ledger]:
                if any(not other.running() for other in ledgers):
                    raise Fault("a ledger ended: " + " ".join(other.log()[-800:] for other in ledgers))
                if time.monotonic() > end:
                    raise Fault(f"{ledger.name} does not move: {ledger.log()[-1500:]}")
                time.sleep(0.01)
