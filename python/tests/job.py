"""Jobs of two servers and two workers under `regatta launch --max_restarts`, whose processes tests kill."""
import os
import re
import signal
import subprocess
import time

from script import BIN, ScriptTest


class JobTest(ScriptTest):
    def start_job(self, name, *command):
        """What the launcher prints is in NAME.log, what its processes do in log_NAME."""
        out = open(self.folder / f"{name}.log", "wb")
        self.addCleanup(out.close)
        process = subprocess.Popen(
            [BIN / "regatta", "launch", "--server_num=2", "--worker_num=2", f"--log_dir=log_{name}", "--max_restarts=20", "--",
             *command], cwd=self.folder, env=self.env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def kill(self, name, process):
        pid = int(re.findall(rf"{process}(?: \(pid \d+\).*started again as|:) pid (\d+)", self.said(name))[-1])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended

    def await_words(self, name, process, there):
        """Waits until what the launcher has printed is as `there` wants it."""
        deadline = time.monotonic() + 60
        while not there(self.said(name)):
            self.assertIsNone(process.poll(), self.said(name)[-3000:])
            self.assertLess(time.monotonic(), deadline, self.said(name)[-3000:])
            time.sleep(0.01)

    def end_job(self, name, process):
        """What worker 0 has printed, of a job that ended well."""
        logs = lambda: "".join(f"\n== {log}\n{log.read_text()[-2500:]}" for log in self.folder.glob(f"log_{name}/*log.*"))
        self.assertEqual(process.wait(timeout=150), 0, self.said(name)[-3000:] + logs())
        return (self.folder / f"log_{name}/workerlog.0").read_text()

    def dump(self, path):
        """Every row and parameter of a save, as text."""
        return subprocess.run([BIN / "regatta", "checkpoint", "dump", self.folder / path], text=True, capture_output=True,
                              check=True).stdout
