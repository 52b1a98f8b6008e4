"""Jobs that take checkpoints while they train, and are killed."""
import re
import signal
import time

from cluster import MULTISLOT, PATIENCE, SLOW, FleetJob, main  # noqa: F401

SYNC = ("-o", "runner.sync_mode=sync")


def steps(n):
    return ("-o", f"runner.checkpoint_steps={n}")


class CheckpointJob(FleetJob):
    def launch(self, save, *more, servers=2, workers=2, code=0, failpoints="", restarts=0):
        """`regatta launch`, and the log of its first worker."""
        log_dir = f"log_{save}"
        self.run_regatta("launch", f"--server_num={servers}", f"--worker_num={workers}", "--log_dir", log_dir,
                         "--max_restarts", restarts, "--", "train", "-m", "config.yaml", "-o",
                         "runner.split_file_list=True", "-o", f"runner.model_save_path={save}", *more, code=code,
                         env={**self.env, "REGATTA_FAILPOINTS": failpoints})
        return (self.folder / log_dir / "workerlog.0").read_text()

    def checkpoints(self, save):
        folder = self.folder / save / "checkpoint"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])

    def kill_everything(self, save, *more, servers=2, after=1):
        """Starts a job, and kills all of its processes when it has so many checkpoints."""
        self.prepare(servers, 2, "-o", "runner.split_file_list=True", "-o", f"runner.model_save_path={save}", *more)
        processes = [self.server(i) for i in range(servers)] + [self.worker(i) for i in range(2)]
        end = time.monotonic() + PATIENCE
        while self.log("w0.log").count("checkpoint: snapshot") < after + 1 or not self.checkpoints(save):
            self.assertLess(time.monotonic(), end, self.log("w0.log")[-2000:])
            self.assertIsNone(processes[-1].poll(), self.log("w0.log")[-2000:])
            time.sleep(0.005)
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            process.wait()
