#!/usr/bin/env python3
"""Attacks a parameter server while it serves a job, and says what became of both.

    tests/fault/attack.py                            every attack, in the clear and with TLS, 5 s each
    tests/fault/attack.py reset_verb --seconds 15    one of them, for longer
    tests/fault/attack.py --bin other/build/bin      the same against other programs

A stranger's attack comes with TLS by the job's certificate and without a token; a worker's with its token.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import re
import sys
import threading
import time
from dataclasses import dataclass, replace

if __name__ == "__main__" and "--bin" in sys.argv:  # before ground.py looks for the programs
    os.environ["REGATTA_BIN"] = str(pathlib.Path(sys.argv[sys.argv.index("--bin") + 1]).resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attacks import ATTACKS, LEAST, NEEDS, Target  # noqa: E402
from ground import Fault, Ground  # noqa: E402
from handmade import Access, Gone, Worker, await_true  # noqa: E402
from trials import Job  # noqa: E402

ALLOWED = 256 << 20  # bytes above idle


# ---- what becomes of the server ----

class Watch:
    """The server's threads and memory, and how long a worker's heartbeat and a new lane's HELLO take meanwhile."""

    def __init__(self, server, access):
        self.server, self.access = server, access
        self.threads = 0
        self.heartbeat = self.hello = 0.0
        self.over = threading.Event()
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak begins here
        self.idle = self.memory("VmRSS")
        self.running = [threading.Thread(target=body) for body in (self.look, self.beat, self.greet)]
        for thread in self.running:
            thread.start()

    @property
    def pid(self):
        return self.server.process.popen.pid

    def memory(self, name):
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(rf"{name}:\s+(\d+)", status)
        return int(found[1]) << 10 if found else 0

    def look(self):
        self.peak = self.idle
        while not self.over.wait(0.02):
            try:
                self.threads = max(self.threads, len(os.listdir(f"/proc/{self.pid}/task")))
            except OSError:
                return
            self.peak = max(self.peak, self.memory("VmHWM"))

    def beat(self):
        worker = None
        while not self.over.is_set():
            begin = time.monotonic()
            try:
                worker = worker or Worker(self.server.endpoint, 1, 1001, self.access, timeout=60)
                worker.heartbeat()
            except Gone:
                worker = None
                continue
            finally:
                self.heartbeat = max(self.heartbeat, time.monotonic() - begin)
            self.over.wait(0.05)

    def greet(self):
        """A lane that is closed is tried again: what counts is when a worker is in."""
        while not self.over.is_set():
            begin = time.monotonic()
            while not self.over.is_set():
                try:
                    worker = Worker.__new__(Worker)
                    worker.endpoint, worker.access, worker.timeout = self.server.endpoint, self.access, 30
                    worker.id = b"\x08\x01\x10\xe9\x07"  # rank 1, incarnation 1001
                    lane = worker.lane(0)
                    lane.close()
                    if lane.hello[0] == 0:
                        break
                except Gone:
                    pass
                time.sleep(0.02)
            self.hello = max(self.hello, time.monotonic() - begin)
            self.over.wait(0.3)

    def end(self):
        self.over.set()
        for thread in self.running:
            thread.join()


@dataclass
class Outcome:
    attack: str
    tls: bool
    alive: bool = True
    well: str = "yes"  # how the job ended
    heartbeat: float = 0
    hello: float = 0
    threads: int = 0
    above: int = 0  # bytes
    exact: bool = False
    log: str = ""

    def good(self):
        return self.alive and self.well == "yes" and self.exact and self.above <= ALLOWED

    def row(self):
        yes = {True: "yes", False: "NO"}
        return (f"{self.attack:17} {'TLS' if self.tls else 'clear':6} {yes[self.alive]:6} {self.well:8} "
                f"{1000 * self.heartbeat:9.0f} {1000 * self.hello:9.0f} {self.threads:8} {self.above / (1 << 20):10.0f}  "
                f"{yes[self.exact]}")


TITLE = (f"{'attack':17} {'':6} {'alive':6} {'job well':8} {'beat ms':>9} {'HELLO ms':>9} {'threads':>8} "
         f"{'MiB above':>10}  data exact")


def room(target):
    """Whether the server has given back what the attacker's calls held: the job's own go on where there is room."""
    try:
        worker = target.member()
        code = worker.gather("room", timeout=0.01)[0]
        worker.close()
        return code != 8
    except Gone:
        return False


def attack(job, name, target):
    """One attack on a running job: what was seen meanwhile."""
    server = job.servers[0]
    target = replace(target, seconds=max(target.seconds, LEAST.get(name, 0)))
    seen = Outcome(name, target.stranger.folder is not None)
    fork = multiprocessing.get_context("fork")
    begins = fork.Event()
    attacker = fork.Process(target=lambda: begins.wait() and ATTACKS[name](target), daemon=True)
    attacker.start()  # before there are threads: one may hold a lock of OpenSSL's, and the attacker would wait for ever
    watch = Watch(server, target.worker)
    begins.set()
    attacker.join(target.seconds + 20)
    if attacker.is_alive():
        attacker.kill()
    watch.end()
    if server.process.running():
        await_true(lambda: room(target), 10)
    seen.alive = server.process.running() or server.process.popen.returncode == 0
    seen.heartbeat, seen.hello, seen.threads = watch.heartbeat, watch.hello, watch.threads
    seen.above = watch.peak - watch.idle
    return seen


def by_need():
    """All attacks, in groups that need the same job."""
    groups = {}
    for name in ATTACKS:
        groups.setdefault(NEEDS.get(name), []).append(name)
    return groups.values()


def tables_of(server):
    """The job's tables, as its log has them."""
    text = next(server.data_dir.glob("term-*/log/job-*.log")).read_bytes().decode("latin-1")
    begin = text.index('{"')
    return text[begin:begin + json.JSONDecoder().raw_decode(text[begin:])[1]]


def run(names, tls, seconds):
    """Attacks, one after the other, on a job of two ledgers, whose rows are counted at the end: each must have the value
    that it has in an undisturbed job."""
    with Ground() as ground:
        if tls:
            ground.make_credentials()
        creds = ground.folder / "creds" if tls else None
        mode, *more = NEEDS.get(names[0], ("async",))
        pause = () if "--pause" in more else ("--pause", 0.003)
        job = Job(ground, 1, 2, mode, ledger=(*pause, "--keys", 8, "--wait", 20, *more))
        server = job.servers[0]
        job.begins()
        target = Target(server.endpoint, Access(creds), Access(creds, "admin_token"), seconds, tables_of(server))
        outcomes = [attack(job, name, target) for name in names]
        try:
            job.stop()
            count = job.ends(60)
            exact, well, log = count["pushes"] > 0 and count["extra"] == 0, "yes", ""
        except Fault as fault:
            exact, well, log = False, "NO", str(fault)
        for outcome in outcomes:
            outcome.exact, outcome.well, outcome.log = exact, well, log
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="attack", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--bin", help="the programs' folder; build/bin otherwise")
    parser.add_argument("--tls", choices=["no", "yes", "both"], default="both")
    parser.add_argument("--log", action="store_true", help="why a job did not end well")
    args = parser.parse_args()
    if unknown := set(args.attacks) - set(ATTACKS):
        parser.error(f"no attack: {', '.join(sorted(unknown))}")
    print(TITLE, flush=True)
    bad = 0
    for name in args.attacks or ATTACKS:
        for tls in {"no": [False], "yes": [True], "both": [False, True]}[args.tls]:
            outcome = run([name], tls, args.seconds)[0]
            bad += not outcome.good()
            print(outcome.row(), flush=True)
            if args.log and outcome.log:
                print(outcome.log)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
