"""Faults and what must hold under them. A trial makes `cycles` faults and gives back what it counted; rows that are lost,
doubled or wrong, a job that ends and should not, or a process that hangs raise Fault."""
import os
import re
import shutil
import subprocess
import sys
import time

from ground import BIN, PATIENCE, SOURCE, TOOLS, Fault, Ground, Ledger, Process, Proxy, Server

sys.path.insert(0, str(SOURCE / "tests" / "program"))
os.environ.setdefault("REGATTA_BIN", str(BIN))
from program import CONFIG, SAMPLE  # noqa: E402


class Count(dict):
    def add(self, more):
        for key, value in more.items():
            self[key] = self.get(key, 0) + value


class Job:
    """Servers, and ledgers that push until they are told to stop."""

    def __init__(self, ground, servers=2, workers=2, mode="async", ack="", proxies=None, ledger=(), failpoints="",
                 data_dir=None):
        self.ground, self.mode = ground, mode
        self.servers = [Server(ground, i, workers, data_dir).start(failpoints) for i in range(servers)]
        self.proxies = [Proxy(ground, server.endpoint, *proxies(i)) for i, server in enumerate(self.servers)] \
            if proxies else []
        to = [end.endpoint for end in self.proxies or self.servers]
        more = ["--mode", mode, *(["--ack", ack] if ack else []), *ledger]
        self.ledgers = [Ledger(ground, rank, workers, to, *more) for rank in range(workers)]

    def begins(self):
        """Until everybody has been acknowledged something: a server that goes away earlier is not waited for."""
        self.moves(3)

    def moves(self, pushes):
        """Until everybody has been acknowledged so many more."""
        self.ground.await_acks(self.ledgers, {ledger: ledger.acknowledged() + pushes for ledger in self.ledgers})

    def stop(self):
        for ledger in self.ledgers:
            ledger.stop()

    def ends(self, seconds=PATIENCE):
        """What the ledgers counted; then the servers end by themselves."""
        count = Count()
        for ledger in self.ledgers:
            count.add({k: v for k, v in ledger.count(seconds).items() if k != "rank"})
        for server in self.servers:
            if (code := server.process.ends(30)) != 0:
                raise Fault(f"server {server.index} ended with {code}: {server.process.log()[-1500:]}")
        for proxy in self.proxies:
            count.add(proxy.end())
        if bad := {k: count[k] for k in ("lost", "doubled", "wrong") if count[k]}:
            raise Fault(f"rows: {bad} of {dict(count)}")
        return count


# What a ledger of a trial pushes: mostly small pushes, sometimes some that fill frames, sometimes slow ones.
def draw_ledger(rng, mode="async"):
    shapes = [("--keys", 8), ("--keys", 1), ("--keys", 200, "--pause", 0.001), ("--keys", 3000, "--pause", 0.01)]
    flight = ("--in_flight", rng.choice([1, 4, 32])) if mode == "async" else ()
    return (*rng.choice(shapes), *flight, "--lanes", rng.choice([1, 2, 3]))


def kill(rng, cycles, mode="async", ack="", ledger=None, pushes=50):
    """Servers are killed with -9 under load, at random moments, and started again."""
    with Ground() as ground:
        job = Job(ground, rng.choice([1, 2, 3]), rng.choice([1, 2]), mode, ack, ledger=ledger or draw_ledger(rng, mode))
        job.begins()
        for cycle in range(cycles):
            if rng.random() < 0.8:
                job.moves(rng.randint(1, pushes))
            if cycle == cycles - 1 and cycles > 1:
                job.stop()  # the last one falls into what comes after the pushes
            time.sleep(rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.5)]))
            server = rng.choice(job.servers)
            if not server.process.running():
                continue  # the job is over
            server.kill()
            time.sleep(rng.choice([0, 0, rng.uniform(0, 0.5)]))
            server.start(wait=rng.random() < 0.8)
        job.stop()
        return job.ends()


def kill_sync(rng, cycles):
    """The same; the workers push the same rows, step by step, and look at every step's rows."""
    return kill(rng, cycles, "sync")


def kill_large(rng, cycles):
    """The same; a push takes several frames."""
    mode = rng.choice(["async", "sync"])
    return kill(rng, min(cycles, 5), mode, pushes=2,
                ledger=("--keys", 9000, "--dim", 512, "--lanes", 1, "--in_flight", 2, "--pause", 0.3))


# The failpoint, its most hits before the crash, what of the job it needs.
FAILPOINTS = {
    "log.write": (2000, {}),
    "log.segment": (4, {}),  # a log's first record after a start begins a segment
    "log.fsync": (300, {"ack": "synced"}),
    "journal.written": (3, {}),
    "lane.logged": (1000, {}),
    "lane.applied": (1000, {}),
    "lane.reply": (1000, {}),
    "lane.replay": (500, {}),
    "step.complete": (200, {"mode": "sync"}),
}


def failpoint(rng, cycles, name=None):
    """The server crashes at a named place before or after a write, an acknowledgement, an update."""
    name = name or rng.choice(list(FAILPOINTS))
    most, needs = FAILPOINTS[name]
    with Ground() as ground:
        job = Job(ground, 1, 2, ledger=draw_ledger(rng, needs.get("mode", "async")), **needs)
        job.begins()
        server = job.servers[0]
        crashes = 0
        for _ in range(cycles):
            server.kill()
            server.start(f"{name}=crash@{rng.randint(1, most)}", wait=False)
            end = time.monotonic() + 5
            while server.process.running() and time.monotonic() < end:
                time.sleep(0.005)
            if server.process.running():
                continue  # it was not that far yet
            if server.process.popen.returncode != -9:
                raise Fault(f"{name}: the server ended with {server.process.popen.returncode}: "
                            f"{server.process.log()[-1500:]}")
            crashes += 1
            if rng.random() < 0.5:
                server.start()
                job.moves(1)
        if not server.process.running():
            server.start()
        job.moves(3)
        job.stop()
        count = job.ends()
        count["crashes"] = crashes
        return count


def end(rng, cycles):
    """The server crashes while a job ends and is forgotten; the next job on its folder finds nothing of it."""
    count = Count()
    for _ in range(cycles):
        with Ground() as ground:
            name, least, most = rng.choice([("log.drop", 1, 2), ("journal.written", 4, 5), ("log.segment", 5, 6)])
            job = Job(ground, 1, 1, ledger=("--count", 50), failpoints=f"{name}=crash@{rng.randint(least, most)}")
            server, ledger = job.servers[0], job.ledgers[0]
            while ledger.running():
                if not server.process.running():
                    server.start()
                    count.add({"crashes": 1})
                time.sleep(0.01)
            if ledger.ends() != 0:
                raise Fault(f"the first job: {ledger.log()[-1500:]}")
            if server.process.running() and "begins anew" not in server.process.log():
                code = server.process.ends(30)
                count.add({"crashes": 1 if code == -9 else 0})
            server.kill()
            server.start("log.forget=crash" if rng.random() < 0.5 else "", wait=False)
            if not server.listens():
                server.start()
                count.add({"crashes": 1})
            ledger.acks.unlink()
            # The same keys again: what was left of the first job would show as doubled.
            second = Ledger(ground, 0, 1, [server.endpoint], "--count", 20, name="second")
            count.add({k: v for k, v in second.count().items() if k != "rank"})
            if server.process.ends(30) != 0:
                raise Fault(f"the server did not end well: {server.process.log()[-1500:]}")
            if count["lost"] + count["doubled"] + count["wrong"]:
                raise Fault(f"the second job's rows: {dict(count)}")
    return count


def cut(rng, cycles, mode=None):
    """Connections are cut at random bytes and moments, refused for a while, and servers killed behind them now and
    then; about `cycles` of them."""
    with Ground() as ground:
        mode = mode or rng.choice(["async", "sync"])
        how = rng.choice([("--cut_seconds", 1), ("--cut_bytes", 200_000), ("--cut_seconds", 2, "--cut_bytes", 1_000_000)])
        job = Job(ground, rng.choice([1, 2]), 2, mode, ledger=draw_ledger(rng, mode),
                  proxies=lambda i: ("--calm", "--seed", rng.randrange(1 << 30), *how))
        job.begins()
        for proxy in job.proxies:
            proxy.say("begin")
        for _ in range(max(1, cycles // 8)):
            time.sleep(rng.uniform(0.5, 1.5))
            draw = rng.random()
            proxy, server = rng.choice(list(zip(job.proxies, job.servers)))
            if draw < 0.3:
                proxy.say("refuse")
                proxy.say("cut")
                time.sleep(rng.uniform(0, 0.5))
                proxy.say("accept")
            elif draw < 0.5:
                server.kill()
                server.start()
        job.stop()
        return job.ends()


def delay(rng, cycles):
    """Everything takes 200 ms longer each way, one direction stands still for a second now and then."""
    with Ground() as ground:
        job = Job(ground, 1, 2, rng.choice(["async", "sync"]), ledger=("--keys", 20),
                  proxies=lambda i: ("--calm", "--seed", rng.randrange(1 << 30), "--delay", 0.2, "--stall", 1, "--stall_every", 2))
        job.begins()
        job.proxies[0].say("begin")
        for _ in range(cycles):
            time.sleep(rng.uniform(0.5, 1.5))
            if rng.random() < 0.5:
                job.proxies[0].say("cut")
        job.stop()
        return job.ends()
