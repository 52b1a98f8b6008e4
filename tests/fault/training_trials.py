"""Trials of whole training jobs: processes of `regatta launch` are killed, and what it saves must be what it saves
undisturbed."""
import os
import re
import subprocess
import sys
import time

from ground import BIN, PATIENCE, SOURCE, Count, Fault, Ground, Process

sys.path.insert(0, str(SOURCE / "tests" / "program"))
os.environ.setdefault("REGATTA_BIN", str(BIN))
from program import CONFIG, SAMPLE  # noqa: E402


class Training:
    """A job of `regatta launch` in a folder of its own; sync, so that its bytes are known."""

    def __init__(self, ground):
        self.ground = ground
        for i in range(2):
            path = ground.folder / "train" / f"part-{i}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join((SAMPLE.read_text().splitlines(keepends=True) * 5)[i:]))
        (ground.folder / "config.yaml").write_text(CONFIG.format(batch=10))

    def launch(self, save, *more, log_limit=None):
        command = [BIN / "regatta", "launch", "--server_num=2", "--worker_num=2", "--log_dir", f"log_{save}",
                   "--max_restarts", 1000, "--", "train", "-m", "config.yaml", "-o", "runner.split_file_list=True", "-o",
                   "runner.sync_mode=sync", "-o", f"runner.model_save_path={save}", *more]
        return Process(self.ground, save, command, {"REGATTA_LOG_LIMIT": str(log_limit)} if log_limit else {})

    def dump(self, save):
        done = subprocess.run([BIN / "regatta", "checkpoint", "dump", save], cwd=self.ground.folder, env=self.ground.env,
                              capture_output=True, check=True)
        return done.stdout

    def starts(self, process, role):
        """The process ids of all that were started, by name; the last one is there now."""
        pids = {}
        for line in process.log().splitlines():
            if begun := re.match(rf"  ({role} \d+): pid (\d+)", line) or re.search(
                    rf"({role} \d+) \(pid \d+\).*started again as pid (\d+)", line):
                pids.setdefault(begun[1], []).append(int(begun[2]))
        return pids


# How the epochs of a training job are: with many small ones most kills fall between them; with checkpoints of the whole
# job, by steps and by time, many fall into their meetings.
SHAPES = (("-o", "runner.epochs=3"),
          ("-o", "runner.epochs=15", "-o", "runner.train_batch_size=100", "-o", "runner.test_data_dir=train"),
          ("-o", "runner.epochs=3", "-o", "runner.thread_num=3", "-o", "runner.lanes=2"),
          ("-o", "runner.epochs=3", "-o", "runner.reader_type=InmemoryDataset", "-o", "runner.row_precision=bfloat16"),
          ("-o", "runner.epochs=3", "-o", "runner.checkpoint_steps=3"),
          ("-o", "runner.epochs=3", "-o", "runner.checkpoint_minutes=0.01"))


def training_workers(rng, cycles, shape=None):
    """The same with workers killed, too: each goes on where it was."""
    return training(rng, cycles, ("worker", "worker", "server"), shape or rng.choice(SHAPES))


def training(rng, cycles, roles=("server",), shape=SHAPES[0]):
    """A job of `regatta launch` whose servers are killed now and then saves the bytes that the undisturbed one saves."""
    count = Count()
    with Ground() as ground:
        job = Training(ground)
        straight = job.launch("straight", *shape)
        if straight.ends() != 0:
            raise Fault(f"the undisturbed job: {straight.log()[-1500:]}")
        expected = job.dump("straight")
        while count.get("kills", 0) < cycles:
            save = f"killed{count.get('jobs', 0)}"
            process = job.launch(save, *shape, log_limit=rng.choice([None, 1]))
            end = time.monotonic() + PATIENCE
            while "batch_id: 2" not in process.log():
                if not process.running() or time.monotonic() > end:
                    raise Fault(f"the job does not begin: {process.log()[-1500:]}")
                time.sleep(0.01)
            kills = 0
            while process.running() and kills < min(4, cycles):
                try:
                    os.kill(rng.choice(list(job.starts(process, rng.choice(roles)).values()))[-1], 9)
                    kills += 1
                except ProcessLookupError:
                    pass
                time.sleep(rng.uniform(0, 2))
            if process.ends() != 0:
                raise Fault(f"the job failed: {process.log()[-3000:]}")
            if job.dump(save) != expected:
                raise Fault(f"after {kills} kills the save is another")
            count.add({"jobs": 1, "kills": kills})
    return count
