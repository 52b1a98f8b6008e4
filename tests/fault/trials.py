"""Faults and what must hold under them. A trial makes `cycles` faults and gives back what it counted; rows that are lost,
doubled or wrong, a job that ends and should not, or a process that hangs raise Fault."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from ground import PATIENCE, SOURCE, TOOLS, Count, Fault, Ground, Ledger, Proxy, Server
from training_trials import disk_full_save, training, training_end, training_geo, training_workers


class Job:
    """Servers, and ledgers that push until they are told to stop."""

    def __init__(self, ground, servers=2, workers=2, mode="geo", ack="", proxies=None, ledger=(), failpoints="",
                 data_dir=None, log_limit=None, lease=None):
        self.ground, self.mode = ground, mode
        self.servers = [Server(ground, i, workers, data_dir, log_limit, lease).start(failpoints)
                        for i in range(servers)]
        self.proxies = [Proxy(ground, server.endpoint, *proxies(i)) for i, server in enumerate(self.servers)] \
            if proxies else []
        to = [end.endpoint for end in self.proxies or self.servers]
        more = ["--mode", mode, *(["--ack", ack] if ack else []), *ledger]
        self.ledgers = [Ledger(ground, rank, workers, to, *more) for rank in range(workers)]

    def begins(self):
        """Until everybody has been acknowledged something."""
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
            if "begins anew" in server.process.log():  # it was killed when the job had ended, and waits for another
                server.kill()
            elif (code := server.process.ends(30)) != 0:
                raise Fault(f"server {server.index} ended with {code}: {server.process.log()[-1500:]}")
        for proxy in self.proxies:
            count.add(proxy.end())
        if bad := {k: count[k] for k in ("lost", "doubled", "wrong") if count[k]}:
            raise Fault(f"rows: {bad} of {dict(count)}")
        return count


# What a ledger of a trial pushes: mostly small pushes, sometimes some that fill frames, sometimes slow ones.
# Where nobody is killed but servers, tables are dropped and loaded between, and frames come that are refused.
def draw_ledger(rng, mode="geo", loads=True):
    shapes = [("--keys", 8), ("--keys", 1), ("--keys", 200, "--pause", 0.001), ("--keys", 3000, "--pause", 0.01)]
    flight = ("--in_flight", rng.choice([1, 4, 32])) if mode != "sync" else ()
    refused = ("--refuse_every", rng.choice([7, 40]))
    load = ("--load_every", rng.choice([20, 60])) if loads else ()
    return (*rng.choice(shapes), *flight, *refused, *load, "--lanes", rng.choice([1, 2, 3]))


def kill(rng, cycles, mode="geo", ack="", ledger=None, pushes=50):
    """Servers are killed with -9 under load, at random moments, and started again."""
    with Ground() as ground:
        job = Job(ground, rng.choice([1, 2, 3]), rng.choice([1, 2]), mode, ack, ledger=ledger or draw_ledger(rng, mode),
                  log_limit=rng.choice([None, 1]))
        job.begins()
        made = Count(kills=0, sleeps=0)
        for cycle in range(cycles):
            if rng.random() < 0.8:
                job.moves(rng.randint(1, pushes))
            if cycle == cycles - 1 and cycles > 1:
                job.stop()  # the last one falls into what comes after the pushes
            time.sleep(rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.5)]))
            server = rng.choice(job.servers)
            if not server.process.running():
                continue  # the job is over
            if rng.random() < 0.1:
                server.sleep(rng.uniform(0, 3))
                made.add({"sleeps": 1})
                continue
            server.kill()
            made.add({"kills": 1})
            time.sleep(rng.choice([0, 0, rng.uniform(0, 0.5)]))
            server.start(wait=rng.random() < 0.8)
        job.stop()
        made.add(job.ends())
        return made


def connecting(rng, cycles):
    """Servers are killed, or crash at what they write of the job, while workers connect to them."""
    count = Count(kills=0)
    for _ in range(cycles):
        with Ground() as ground:
            crash_at = rng.choice([0, rng.randint(1, 5)])
            job = Job(ground, 2, 2, rng.choice(["async", "geo", "sync"]), ledger=("--count", 30, "--lanes", 2),
                      failpoints=f"journal.written=crash@{crash_at}" if crash_at else "")
            if not crash_at:
                time.sleep(rng.uniform(0, 0.3))
                rng.choice(job.servers).kill()
            end = time.monotonic() + PATIENCE
            going = True
            while going and time.monotonic() < end:
                going = any(ledger.running() for ledger in job.ledgers)  # before the look for who was killed, maybe late
                for server in job.servers:
                    if not server.process.running() and server.process.popen.returncode == -9:
                        count.add({"kills": 1})
                        time.sleep(rng.choice([0, rng.uniform(0, 1)]))
                        server.start()
                time.sleep(0.01)
            count.add(job.ends())
    return count


def kill_sync(rng, cycles):
    """The same; the workers push the same rows, step by step, and look at every step's rows."""
    return kill(rng, cycles, "sync")


def kill_large(rng, cycles):
    """The same; a push takes several frames."""
    mode = rng.choice(["async", "geo", "sync"])
    return kill(rng, min(cycles, 5), mode, pushes=2,
                ledger=("--keys", 9000, "--dim", 512, "--lanes", 1, "--in_flight", 2, "--pause", 0.3))


def worker_kill(rng, cycles, mode=None, ledger=None):
    """Workers are killed with -9 under load, at random moments, and started again; servers, too."""
    mode = mode or rng.choice(["async", "sync"])
    with Ground() as ground:
        job = Job(ground, rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), mode, log_limit=rng.choice([None, 1]),
                  ledger=(*(ledger or draw_ledger(rng, mode, loads=False)), "--on_loss", "await", "--linger", 3))
        job.begins()
        made = Count(kills=0)
        for cycle in range(cycles):
            if rng.random() < 0.8:
                job.moves(rng.randint(1, 50))
            if cycle == cycles - 1 and cycles > 1:
                job.stop()  # the last one falls into what comes after the pushes
            time.sleep(rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.5)]))
            if cycle < cycles - 1 and rng.random() < 0.3:
                job.moves(1)  # a worker that connects does not wait for a server that goes away
                server = rng.choice(job.servers)
                server.kill()
                made.add({"kills": 1})
                server.start()
                continue
            for killed in rng.sample(job.ledgers, rng.randint(1, len(job.ledgers))):
                killed.kill()
                made.add({"kills": 1})
                time.sleep(rng.choice([0, 0, rng.uniform(0, 0.5)]))
                killed.start_again(ground)
        job.stop()
        made.add(job.ends())
        return made


def worker_half(rng, cycles, mode=None):
    """Workers end when some lanes have their push and others have not."""
    mode = mode or rng.choice(["async", "sync"])
    with Ground() as ground:
        job = Job(ground, rng.choice([1, 2, 3]), 2, mode,
                  ledger=("--keys", 20, "--lanes", 2, "--in_flight", 4, "--on_loss", "await"))
        job.begins()
        made = Count(crashes=0)
        for _ in range(cycles):
            ledger = rng.choice(job.ledgers)
            ledger.kill()
            ledger.start_again(ground, f"push.lane=crash@{rng.randint(2, 60)}")
            if ledger.ends() != -9:
                raise Fault(f"{ledger.name} ended otherwise: {ledger.log()[-1500:]}")
            made.add({"crashes": 1})
            time.sleep(rng.choice([0, 0.1]))  # in which the others' parts may come
            ledger.start_again(ground)
            job.moves(1)
        job.stop()
        made.add(job.ends())
        return made


# A failpoint that a running job passes: its most hits before the crash, and what of the job it needs.
SHORT_LOG = {"log_limit": 1, "ledger": ("--keys", 400)}  # checkpoints come often
FAILPOINTS = {
    "log.write": (2000, {}),
    "log.segment": (4, {}),  # a log's first record after a start begins a segment
    "log.fsync": (300, {"ack": "synced"}),
    "lane.logged": (1000, {}),
    "lane.applied": (1000, {}),
    "lane.reply": (1000, {}),
    "lane.replay": (500, {}),
    "step.complete": (200, {"mode": "sync"}),
    "compactor.snapshot": (3, SHORT_LOG),
    "compactor.written": (3, SHORT_LOG),
    "compactor.dropped": (2, SHORT_LOG),
    "log.drop": (10, SHORT_LOG),
    "save.data": (3, SHORT_LOG),
    "save.manifest": (3, SHORT_LOG),
    "save.switch": (3, SHORT_LOG),
    "file.fsync": (20, SHORT_LOG),
    "file.rename": (8, SHORT_LOG),
}


def crash(job, spec):
    """Whether the server has crashed where `spec` says; where not, it is killed: it must not do so later, when nobody
    starts it again."""
    server = job.servers[0]
    server.kill()
    server.start(spec, wait=False)
    end = time.monotonic() + PATIENCE / 8
    while server.process.running() and time.monotonic() < end:
        time.sleep(0.005)
    if not server.process.running() and server.process.popen.returncode != -9:
        raise Fault(f"{spec}: the server ended with {server.process.popen.returncode}: {server.process.log()[-1500:]}")
    crashed = not server.process.running()
    server.kill()
    return crashed


def failpoint(rng, cycles, names=None, most=None, **needs):
    """The server crashes at a named place before or after a write, an acknowledgement, an update, and within a
    checkpoint."""
    if names is None:
        name = rng.choice(list(FAILPOINTS))
        needs = FAILPOINTS[name][1]
        names = [name] * cycles
    with Ground() as ground:
        job = Job(ground, 1, 2, **{"ledger": draw_ledger(rng, needs.get("mode", "geo")), **needs})
        job.begins()
        count = Count(crashes=0)
        for name in names:
            if crash(job, f"{name}=crash@{rng.randint(1, most or FAILPOINTS[name][0])}"):
                count.add({"crashes": 1, name: 1})
            if rng.random() < 0.5:
                if not job.servers[0].process.running():
                    job.servers[0].start()
                job.moves(1)
        if not job.servers[0].process.running():
            job.servers[0].start()
        job.moves(3)
        job.stop()
        count.add(job.ends())
        return count


def end(rng, cycles):
    """The server crashes while a job ends and is forgotten; the next job on its folder finds nothing of it."""
    count = Count()
    for _ in range(cycles):
        with Ground() as ground:
            name, least, most = rng.choice([("log.drop", 1, 3), ("journal.written", 3, 6), ("log.segment", 5, 7)])
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
        mode = mode or rng.choice(["async", "geo", "sync"])
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
        job = Job(ground, 1, 2, rng.choice(["async", "geo", "sync"]), ledger=("--keys", 20),
                  proxies=lambda i: ("--calm", "--seed", rng.randrange(1 << 30), "--delay", 0.2, "--stall", 1, "--stall_every", 2))
        job.begins()
        job.proxies[0].say("begin")
        for _ in range(cycles):
            time.sleep(rng.uniform(3, 6))  # a worker that is not heard for 5 s after a cut is lost
            job.proxies[0].say("cut")
        job.stop()
        return job.ends()


# Where a server falls asleep, its most hits before, and what of the job it needs. Before a write, after it, before and
# after an acknowledgement, within a checkpoint, before what the log or a checkpoint had is removed.
SLEEPS = {name: FAILPOINTS[name] for name in FAILPOINTS if name not in ("lane.replay", "step.complete")}


def asleep(rng, cycles, where=None, mode=None):
    """A server sleeps past its lease, at a random moment or a named place; another is started on its data_dir; the sleeper
    wakes with requests in its connections, acknowledges none of them, and ends."""
    lease = 0.4
    with Ground() as ground:
        mode = mode or rng.choice(["async", "geo", "sync"])
        needs = {"ledger": draw_ledger(rng, mode), "log_limit": rng.choice([None, 1])}
        if where or rng.random() < 0.6:
            where = where or [rng.choice(list(SLEEPS)) for _ in range(cycles)]
            needs.update({k: v for name in where for k, v in SLEEPS[name][1].items()})
        job = Job(ground, 1, 2, mode, proxies=lambda i: (), lease=lease, **needs)
        server, proxy = job.servers[0], job.proxies[0]
        job.begins()
        made = Count(sleeps=0)
        for cycle in range(cycles):
            if where:  # one that is armed follows in its place
                server.kill()
                server.start(f"{where[cycle]}=stop@{rng.randint(1, SLEEPS[where[cycle]][0])}", wait=False)
                if not await_stop(server.process, 10):
                    server.process.popen.send_signal(signal.SIGSTOP)
            else:
                job.moves(rng.randint(1, 30))
                time.sleep(rng.choice([0, rng.uniform(0, 0.1)]))
                server.process.popen.send_signal(signal.SIGSTOP)
            sleeper = server.process
            server.move()
            if rng.random() < 0.2:  # the first that takes its place is killed while it does
                server.start(rng.choice(["lease.renamed=crash", f"log.seal=crash@{rng.randint(1, 5)}"]), wait=False)
                if server.listens():
                    server.kill()
            server.start()
            made.add({"sleeps": 1})
            proxy.say(f"to {server.endpoint}")
            draw = rng.random()
            if draw < 0.3:  # everybody has gone to the successor when it wakes
                proxy.say("cut")
                job.moves(rng.randint(1, 10))
            elif draw < 0.5:  # the successor is killed: what it finds of the sleeper's, it finds again
                server.kill()
                server.start()
            sleeper.popen.send_signal(signal.SIGCONT)
            if rng.random() < 0.5:
                job.moves(1)  # before the sleeper is gone for good
            code = sleeper.ends(30)
            ended = {1: "has been taken over by process"}
            if where and where[cycle] == "file.fsync":  # one is passed before the lease is the server's own
                ended[2] = "is in use by process"
            if code not in ended or ended[code] not in sleeper.log():
                raise Fault(f"the sleeper ended with {code}: {sleeper.log()[-1500:]}")
            job.moves(2)
            if rng.random() < 0.3:
                server.kill()
                server.start()
        job.stop()
        made.add(job.ends())
        made["cuts"] = 0  # not what is counted here
        return made


def await_stop(process, seconds):
    """Whether it has put itself to sleep; one that ended is a fault."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = pathlib.Path(f"/proc/{process.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state in "TZ":
            if state == "Z":
                raise Fault(f"{process.name} ended: {process.log()[-1500:]}")
            return True
        time.sleep(0.005)
    return False


def damage(rng, cycles):
    """A byte, a page, a file of a killed server's data_dir is not what it was: the server says so and does not start, or
    it has every acknowledged row."""
    count = Count()
    with Ground() as ground:
        job = Job(ground, 1, 1, ledger=("--keys", 100, "--pause", 0.002), log_limit=rng.choice([None, 1]))
        job.moves(rng.randint(300, 1500))
        server, ledger = job.servers[0], job.ledgers[0]
        server.kill()
        ledger.kill()
        whole = ground.folder / "whole"
        shutil.copytree(server.data_dir, whole)
        for _ in range(cycles):
            shutil.rmtree(server.data_dir)
            shutil.copytree(whole, server.data_dir)
            what = spoil(rng, server.data_dir)
            server.start(wait=False)
            if not server.listens():
                code, said = server.process.popen.returncode, server.process.log().splitlines()[-1]
                if code not in (1, 2) or not said.startswith("regatta: error:"):
                    raise Fault(f"{what}: the server ended with {code}: {server.process.log()[-1500:]}")
                count.add({"detected": 1})
                continue
            check = Ledger(ground, 0, 1, [server.endpoint], "--mode", "geo", "--keys", 100, "--check", name="check")
            try:
                seen = check.count()
            except Fault as fault:
                raise Fault(f"{what}: {fault}") from None
            if seen["lost"] + seen["doubled"] + seen["wrong"]:
                raise Fault(f"{what}: undetected, and the rows are {seen}")
            server.kill()
            count.add({"harmless": 1, "rows": seen["rows"]})
    return count


def spoil(rng, folder):
    """Does one bad thing to one of the folder's files, and says which."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "OWNER")
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    how = rng.choice(["flip", "flip", "truncate", "zero", "swap", "remove", "extend"])
    at = rng.randrange(len(data)) if data else 0
    if how == "flip" and data:
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif how == "truncate":
        path.write_bytes(data[:at])
    elif how == "zero":
        data[at:at + 4096] = bytes(len(data[at:at + 4096]))
        path.write_bytes(data)
    elif how == "swap":
        other = rng.choice(files)
        data, bytes_of_other = path.read_bytes(), other.read_bytes()
        path.write_bytes(bytes_of_other)
        other.write_bytes(data)
        how = f"swap with {other.relative_to(folder)}"
    elif how == "remove":
        path.unlink()
    elif how == "extend":
        path.write_bytes(data + rng.randbytes(rng.choice([1, 8, 32, 5000])))
    return f"{how} {path.relative_to(folder)} at {at} of {len(data)}"


def disk_full(rng, cycles):
    """The disk of the data_dir fills up: the job ends with an error that names the folder, and with more room the server
    has every row that it acknowledged."""
    count = Count()
    for _ in range(cycles):
        with Ground() as ground:
            disk = ground.small_disk("6m")
            job = Job(ground, 1, 1, ledger=("--keys", rng.choice([20, 200])), data_dir=disk / "data",
                      log_limit=rng.choice([None, 1]))
            server, ledger = job.servers[0], job.ledgers[0]
            code = ledger.ends()
            server.kill()  # before it gives up the job
            last = ledger.log().splitlines()[-1]
            if code != 3 or "No space left" not in last or str(disk) not in last:
                raise Fault(f"the worker ended with {code} and no clear word: {last}")
            if rng.random() < 0.5:  # as long as it is full: it starts and serves, or says why not
                server.start(wait=False)
                if not server.listens() and "No space left" not in server.process.log():
                    raise Fault(f"on a full disk: {server.process.log()[-1500:]}")
                server.kill()
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            server.start()
            check = Ledger(ground, 0, 1, [server.endpoint], "--mode", "geo", *ledger.args[-2:], "--check", name="check")
            seen = check.count()
            if seen["lost"] + seen["doubled"] + seen["wrong"]:
                raise Fault(f"rows: {seen}")
            count.add({k: v for k, v in seen.items() if k != "rank"})
            server.kill()
    return count


def garble(rng, cycles, tls=None):
    """A network that flips bits and repeats bytes behind TCP's checksum, under TLS or without: connections break and come
    back."""
    count = Count()
    with Ground() as ground:
        tls = rng.random() < 0.5 if tls is None else tls
        if tls:
            ground.make_credentials()
        mode = rng.choice(["async", "sync"])
        how = rng.choice(["--flip_bytes", "--duplicate_bytes"])
        job = Job(ground, 1, 2, mode, ledger=("--keys", rng.choice([8, 500])),
                  proxies=lambda i: ("--calm", "--seed", rng.randrange(1 << 30), how, 300_000))
        job.begins()
        job.proxies[0].say("begin")
        time.sleep(0.5 * cycles)
        if not tls:
            job.proxies[0].say("calm")  # calls other than the lanes' have no checksum
            job.proxies[0].say("cut")
        job.stop()
        count.add(job.ends())
        count["cuts"] = 0  # not what is counted here
    return count


def spoiled(rng, cycles):
    """A push log and a save are spoiled in every way, a thousand times as often, and opened in one process."""
    count = Count()
    for more in ([], ["--save", SOURCE / "tests" / "data" / "checkpoint_v1"]):
        command = [TOOLS / "spoiler", "--cycles", 1000 * cycles, "--seed", rng.randrange(1 << 30), *more]
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                              env={**os.environ, "TMPDIR": memory})
        if done.returncode != 0:
            raise Fault(f"{' '.join(map(str, command))}: {done.stdout[-1500:]}{done.stderr[-500:]}")
        words = done.stdout.split()
        count.add({"detected": int(words[1]), "harmless": int(words[3])})
    return count


TRIALS = {trial.__name__: trial
          for trial in (kill, connecting, kill_sync, kill_large, worker_kill, worker_half, failpoint, end, asleep, cut, delay, garble,
                        training, training_workers, training_geo, training_end, damage, spoiled, disk_full,
                        disk_full_save)}
