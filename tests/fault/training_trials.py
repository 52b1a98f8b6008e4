"""Trials of whole training jobs: processes of `regatta launch` are killed, its disk is full, and what it saves must be what it
saves undisturbed."""
import math
import os
import pathlib
import re
import shutil
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

    def launch(self, save, *more, log_limit=None, failpoints=""):
        command = [BIN / "regatta", "launch", "--server_num=2", "--worker_num=2", "--log_dir",
                   f"log_{pathlib.Path(save).name}",
                   "--max_restarts", 1000, "--", "train", "-m", "config.yaml", "-o", "runner.split_file_list=True", "-o",
                   "runner.sync_mode=sync", "-o", f"runner.model_save_path={save}", *more]
        env = {"REGATTA_FAILPOINTS": failpoints, **({"REGATTA_LOG_LIMIT": str(log_limit)} if log_limit else {})}
        return Process(self.ground, pathlib.Path(save).name, command, env)

    def dump(self, save):
        done = subprocess.run([BIN / "regatta", "checkpoint", "dump", save], cwd=self.ground.folder, env=self.ground.env,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise Fault(f"{save}: {done.stderr.decode()}")
        return done.stdout

    def says(self, process, words, times=1):
        """Until it has said so, so often."""
        end = time.monotonic() + PATIENCE
        while process.log().count(words) < times:
            if not process.running() or time.monotonic() > end:
                raise Fault(f"the job does not say '{words}': {process.log()[-1500:]}")
            time.sleep(0.01)

    def server_says(self, process, save, words):
        """Until the first server has said so, or the job has ended."""
        log, end = self.ground.folder / f"log_{save}" / "serverlog.0", time.monotonic() + PATIENCE
        while process.running() and words not in log.read_text():
            if time.monotonic() > end:
                raise Fault(f"server 0 does not say '{words}': {log.read_text()[-1500:]}")
            time.sleep(0.002)

    def starts(self, process, role):
        """The process ids of all that were started, by name; the last one is there now."""
        pids = {}
        for line in process.log().splitlines():
            if begun := re.match(rf"  ({role} \d+): pid (\d+)", line) or re.search(
                    rf"({role} \d+) \(pid \d+\).*started again as pid (\d+)", line):
                pids.setdefault(begun[1], []).append(int(begun[2]))
        return pids


# How the epochs of a training job are: with many small ones most kills fall between them; with checkpoints of the whole
# job, by steps and by time, many fall into their barriers.
SHAPES = (("-o", "runner.epochs=3"),
          ("-o", "runner.epochs=15", "-o", "runner.train_batch_size=100", "-o", "runner.test_data_dir=train"),
          ("-o", "runner.epochs=3", "-o", "runner.thread_num=3", "-o", "runner.lanes=2"),
          ("-o", "runner.epochs=3", "-o", "runner.reader_type=InmemoryDataset", "-o", "runner.row_precision=bfloat16"),
          ("-o", "runner.epochs=3", "-o", "runner.checkpoint_steps=3"),
          ("-o", "runner.epochs=3", "-o", "runner.checkpoint_minutes=0.01"))


def training_workers(rng, cycles, shape=None):
    """The same with workers killed, too: each goes on where it was."""
    return training(rng, cycles, ("worker", "worker", "server"), shape or rng.choice(SHAPES))


GEO = ("-o", "runner.epochs=6", "-o", "runner.sync_mode=geo", "-o", "runner.geo_step=3")


def training_geo(rng, cycles):
    """A job of geo whose workers and servers are killed ends with every row that the undisturbed one has."""
    return training(rng, cycles, ("worker", "worker", "server"), GEO, rows_of)


def rows_of(dump):
    """Which rows and parameters there are; their values, which in geo are a matter of the moment, must be finite."""
    names = []
    for line in dump.decode().splitlines():
        table, name, *values = line.split("\t")
        names.append((table, name))
        if not all(math.isfinite(float(value)) for value in values if value != "|"):
            raise Fault(f"not a number: {line}")
    return names


def training(rng, cycles, roles=("server",), shape=SHAPES[0], same=bytes):
    """A job of `regatta launch` whose servers are killed now and then saves the bytes that the undisturbed one saves."""
    count = Count()
    with Ground() as ground:
        job = Training(ground)
        straight = job.launch("straight", *shape)
        if straight.ends() != 0:
            raise Fault(f"the undisturbed job: {straight.log()[-1500:]}")
        expected = same(job.dump("straight"))
        while count.get("kills", 0) < cycles:
            save = f"killed{count.get('jobs', 0)}"
            process = job.launch(save, *shape, log_limit=rng.choice([None, 1]))
            job.says(process, "batch_id: 2")
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
            if same(job.dump(save)) != expected:
                raise Fault(f"after {kills} kills the save is another")
            count.add({"jobs": 1, "kills": kills})
    return count


def training_end(rng, cycles):
    """Processes of a training job are killed in the moments around its end: it ends well, with the undisturbed bytes, and
    trains no epoch twice."""
    count = Count()
    with Ground() as ground:
        job = Training(ground)
        shape = ("-o", "runner.epochs=2")
        straight = job.launch("straight", *shape)
        if straight.ends() != 0:
            raise Fault(f"the undisturbed job: {straight.log()[-1500:]}")
        expected = job.dump("straight")
        whom = (("worker 0", "worker 1"), ("worker 0", "worker 1", "server 0", "server 1"), ("server 0", "server 1"),
                ("worker 1", "server 0"), ("worker 1",), ("worker 0",))
        while count.get("kills", 0) < cycles:
            save = f"ended{count.get('jobs', 0)}"
            process = job.launch(save, *shape)
            job.says(process, "epoch: 1 done")
            if rng.random() < 0.3:
                time.sleep(rng.uniform(0, 0.3))
            else:
                job.server_says(process, save, rng.choice(["worker 0 is done", "worker 1 is done", "all workers are done"]))
            pids = {**job.starts(process, "worker"), **job.starts(process, "server")}
            kills = 0
            for name in whom[count.get("jobs", 0) % len(whom)]:
                try:
                    os.kill(pids[name][-1], 9)
                    kills += 1
                except ProcessLookupError:
                    pass
            if process.ends() != 0:
                raise Fault(f"the job failed: {process.log()[-3000:]}")
            if process.log().count("epoch: 0 done") != 1:
                raise Fault(f"an epoch was trained again: {process.log()[-3000:]}")
            if job.dump(save) != expected:
                raise Fault(f"after {kills} kills at the end the save is another")
            count.add({"jobs": 1, "kills": kills, "ends": 1})
    return count


def disk_full_save(rng, cycles):
    """The disk of a training job's saves fills up, and has room again later: training goes on, the checkpoints that were
    there can be read, and the job saves the bytes that the undisturbed one saves."""
    count = Count()
    with Ground() as ground:
        job = Training(ground)
        shape = ("-o", "runner.epochs=2", "-o", "runner.checkpoint_steps=3")
        straight = job.launch("straight", *shape)
        if straight.ends() != 0:
            raise Fault(f"the undisturbed job: {straight.log()[-1500:]}")
        expected = job.dump("straight")
        disk = ground.small_disk("32m")
        for turn in range(cycles):
            save, skipped = disk / f"save{turn}", "checkpoint skipped, training goes on: "
            process = job.launch(save, *shape, failpoints="push.lane=slow")
            job.says(process, "checkpoint: snapshot", rng.randrange(2, 5))
            leave_little(disk, rng.choice([0, 4096, 100_000]))
            job.says(process, skipped, rng.randrange(1, 4))
            job.dump(save)
            (disk / "filler").unlink()
            if process.ends() != 0:
                raise Fault(f"the job failed: {process.log()[-3000:]}")
            why = process.log().split(skipped)[1].split("\n")[0]  # before writing it is known, or found out on the way
            if not any(words in why for words in ("not enough room", "No space left")) or str(save) not in why:
                raise Fault(f"it does not say which file has no room: {process.log()[-3000:]}")
            if job.dump(save) != expected:
                raise Fault("after a full disk the save is another")
            shutil.rmtree(save)
            count.add({"jobs": 1, "full": 1})
    return count


def leave_little(disk, room):
    """Fills the disk but for so many bytes."""
    block = bytes(1 << 12)
    with open(disk / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(block):
                pass
        except OSError:
            pass
        filler.truncate(max(filler.tell() - room, 0))
