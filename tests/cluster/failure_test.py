"""Processes that die, stop or talk nonsense: the others say who it was, and nobody hangs."""
import os
import random
import signal
import socket

from cluster import SLOW, FleetJob, main

LONG = ("-o", "runner.epochs=1000", "-o", "runner.sync_mode=sync")


class FailureTest(FleetJob):
    def running(self, *args):
        """A job of 1 server and 2 workers in the middle of its training."""
        self.make_job(files=2)
        self.prepare(1, 2, *args)
        server, workers = self.server(0), [self.worker(0), self.worker(1)]
        self.await_line("w0.log", "epoch: 2 done", workers[0])
        return server, workers

    def test_a_killed_worker_ends_the_job_with_its_name(self):
        server, workers = self.running(*LONG)
        workers[1].send_signal(signal.SIGKILL)
        self.ends(workers[0], 1, "w0.log", 20)
        self.ends(server, 1, "s0.log", 20)
        for log in ("w0.log", "s0.log"):
            self.assertRegex(self.log(log).splitlines()[-1], r"worker 1 \(.*pid \d+.*was lost")

    def test_a_killed_worker_is_done_without_when_the_job_may_shrink(self):
        server, workers = self.running("-o", "runner.epochs=12", "-o", "runner.sync_mode=sync", "-o",
                                       "runner.on_worker_loss=shrink")
        workers[1].send_signal(signal.SIGKILL)
        self.ends(workers[0], 0, "w0.log")
        self.ends(server, 0, "s0.log", 20)
        self.assertIn("the others go on", self.log("s0.log"))

    def test_a_worker_that_gives_up_is_waited_for_and_the_job_goes_on(self):
        """Its data is bad from the middle on; mended, all started again go on to the end."""
        self.make_job(files=2)
        self.env.update(REGATTA_DATA_DIR=str(self.folder / "data"))
        share = self.folder / "train" / "part-1.txt"
        good = share.read_text()
        lines = good.splitlines(keepends=True)
        share.write_text("".join(lines[:len(lines) // 2]) + "no sample\n" * (len(lines) // 2))
        self.prepare(1, 2, "-o", "runner.epochs=2", "-o", "runner.sync_mode=sync", "-o", "runner.on_worker_loss=await",
                     "-o", "runner.split_file_list=True", "-o", "runner.worker_wait_timeout=3", "-o",
                     "runner.max_bad_lines=5")
        server, workers = self.server(0), [self.worker(0), self.worker(1)]
        self.ends(workers[1], 1, "w1.log")
        self.ends(workers[0], 1, "w0.log")
        self.ends(server, 1, "s0.log", 20)
        self.assertIn("did not come back within 3 s", self.log("w0.log").splitlines()[-1])
        self.assertNotIn("epoch: 0 done", self.log("w0.log"))
        share.write_text(good)
        server, workers = self.server(0), [self.worker(0), self.worker(1)]
        for i in range(2):
            self.ends(workers[i], 0, f"w{i}.log")
        self.ends(server, 0, "s0.log", 20)
        self.assertIn("epoch: 1 done", self.log("w0.log"))

    def test_a_stopped_worker_is_lost_after_its_silence(self):
        server, workers = self.running(*LONG)
        workers[1].send_signal(signal.SIGSTOP)
        self.ends(workers[0], 1, "w0.log", 30)
        self.assertIn("no heartbeat", self.log("w0.log").splitlines()[-1])
        self.ends(server, 1, "s0.log", 20)

    def test_a_killed_server_is_named_by_every_worker(self):
        server, workers = self.running(*LONG)
        server.send_signal(signal.SIGKILL)
        for i in range(2):
            self.ends(workers[i], 1, f"w{i}.log", 20)
            self.assertIn(f"server 0 ({self.hosts[0]}:{self.port})", self.log(f"w{i}.log").splitlines()[-1])

    def test_a_signal_at_one_worker_stops_all_and_the_run_goes_on(self):
        server, workers = self.running(*LONG)
        workers[1].send_signal(signal.SIGTERM)
        self.ends(workers[1], 143, "w1.log", 30)
        self.ends(workers[0], 143, "w0.log", 30)
        self.ends(server, 0, "s0.log", 20)
        self.assertIn("--resume", self.log("w0.log"))
        # Who sent it, and whether the job has failed, is not known to it.
        self.assertIn("stopping after this step; worker 0 saves, unless the job has failed", self.log("w1.log"))
        done = self.log("w0.log").count(" done, auc") - self.log("w0.log").count("validation")
        more = ("-o", f"runner.epochs={done + 1}", "--resume")
        again = [self.server(0, *more), self.worker(0, *more), self.worker(1, *more)]
        self.ends(again[1], 0, "w0.log")
        self.assertRegex(self.log("w0.log"), rf"resuming epoch {done} from .*/checkpoint/{done}-")
        self.ends(again[0], 0, "s0.log", 20)

    def test_garbage_on_the_port_costs_the_server_nothing(self):
        self.env.update(SLOW)
        server, workers = self.running("-o", "runner.epochs=6", "-o", "runner.sync_mode=sync", "-o",
                                       "runner.split_file_list=True")
        rng = random.Random(7)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for round_number in range(60):
            noise = rng.randbytes(rng.choice([1, 9, 100, 5000, 200_000]))
            with socket.create_connection((self.hosts[0], self.port), timeout=5) as peer:
                try:
                    peer.sendall((preface if round_number % 2 else b"GET / HTTP/1.1\r\n\r\n") + noise)
                except OSError:
                    pass  # hung up on, as it should be
        idle = [socket.create_connection((self.hosts[0], self.port), timeout=5) for _ in range(20)]  # say nothing
        for i in range(2):
            self.ends(workers[i], 0, f"w{i}.log")
        for peer in idle:
            peer.close()
        self.ends(server, 0, "s0.log", 20)

    def test_a_worker_that_never_comes_is_named(self):
        self.make_job(files=2)
        self.prepare(1, 2, "-o", "runner.server_wait_timeout=3")
        server, first = self.server(0), self.worker(0)
        self.ends(first, 1, "w0.log", 20)
        self.assertIn("worker 1 (not here yet)", self.log("w0.log").splitlines()[-1])
        self.assertIsNone(server.poll(), "the server waits for the worker that has not come")

    def test_two_workers_with_one_rank(self):
        self.make_job(files=2)
        self.prepare(1, 2)
        server, first = self.server(0), self.worker(0)
        self.await_line("w0.log", "init rpc client", first)
        self.await_line("s0.log", "worker 0 of 2 is here", server)
        twin = self.role("twin.log", *self.args, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0")
        self.ends(twin, 1, "twin.log", 20)
        self.assertIn("there has been a worker 0 already", self.log("twin.log").splitlines()[-1])
        second = self.worker(1)
        self.ends(first, 0, "w0.log")
        self.ends(second, 0, "w1.log")
        self.ends(server, 0, "s0.log", 20)


if __name__ == "__main__":
    main()
