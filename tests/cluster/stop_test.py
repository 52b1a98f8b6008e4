"""Ctrl+C and SIGTERM in sync: all workers stop before the same step, so that a job that goes on ends as if it had not
been stopped."""
import re
import signal
import time

from checkpoint_job import MULTISLOT, SYNC, CheckpointJob, main

# Gives a file's lines, and does not end where the file is the second worker's.
HANGS = "import time\n" + MULTISLOT + """sys.stdout.flush()
if len(lines) % 2:
    time.sleep(1000)
"""


class StopTest(CheckpointJob):
    def begin(self, save, *more):
        """2 servers and 2 workers, role by role, some batches into their training."""
        self.prepare(2, 2, "-o", "runner.split_file_list=True", "-o", f"runner.model_save_path={save}", *SYNC, *more)
        servers, workers = [self.server(i) for i in range(2)], [self.worker(i) for i in range(2)]
        self.await_line("w0.log", "batch_id: 20", workers[0])
        return servers, workers

    def stopped_at(self, log):
        """The epoch, and the batches of all workers."""
        return [int(n) for n in re.search(r"stopped in epoch (\d), (\d+) batches of 2 workers into it; saved", log).groups()]

    def stop(self, save, rank):
        """By a signal at one worker; the others learn it."""
        servers, workers = self.begin(save)
        workers[rank].send_signal(signal.SIGTERM)
        self.ends(workers[rank], 143, f"w{rank}.log", 30)
        self.ends(workers[1 - rank], 143, f"w{1 - rank}.log", 30)
        self.assertNotIn("error:", self.log(f"w{1 - rank}.log"))
        for i in range(2):
            self.ends(servers[i], 0, f"s{i}.log", 20)
        return self.stopped_at(self.log("w0.log"))

    def test_a_job_that_was_stopped_ends_with_the_bytes_of_one_that_was_not(self):
        self.make_job(files=2, copies=20)
        self.launch("straight", *SYNC)
        _, batches = self.stop("stopped", 1)
        self.assertEqual(batches % 2, 0, "both had made the same steps")
        # And once more, by Ctrl+C at the launcher.
        job = self.start("launch", "--server_num=2", "--worker_num=2", "--log_dir", "log_again", "--", "train", "-m",
                         "config.yaml", "-o", "runner.split_file_list=True", "-o", "runner.model_save_path=stopped",
                         *SYNC, "--resume", env=self.env)
        log = self.folder / "log_again" / "workerlog.0"
        end = time.monotonic() + 60
        while not log.exists() or "batch_id" not in log.read_text():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 130, log.read_text()[-2000:])
        self.assertEqual(self.stopped_at(log.read_text())[1] % 2, 0)
        self.launch("stopped", *SYNC, "--resume")
        self.assertEqual(self.dump("straight"), self.dump("stopped"))

    def test_a_worker_whose_data_has_ended_stops_the_others_too(self):
        self.make_job(files=2, copies=20)
        part = self.folder / "train" / "part-1.txt"
        part.write_text("".join(part.read_text().splitlines(keepends=True)[:70]))
        self.launch("straight", *SYNC)
        self.stop("stopped", 1)
        self.launch("stopped", *SYNC, "--resume")
        self.assertEqual(self.dump("straight"), self.dump("stopped"))

    def test_a_worker_that_waits_for_data_keeps_nobody_for_long(self):
        self.make_job(files=2, copies=20)  # the second worker's file has a line less
        self.write("hangs.py", HANGS)
        servers, workers = self.begin("hung", "-o", "runner.pipe_command=/usr/bin/python3 hangs.py")
        said = ""
        while said != self.log("w0.log"):
            said = self.log("w0.log")
            time.sleep(1)
        self.assertNotIn("epoch: 0 done", said)
        workers[0].send_signal(signal.SIGTERM)
        self.ends(workers[0], 143, "w0.log", 30)
        self.ends(workers[1], 143, "w1.log", 30)
        self.assertIn("stops without having met the others", self.log("w1.log"))
        for i in range(2):
            self.ends(servers[i], 0, f"s{i}.log", 20)
        self.stopped_at(self.log("w0.log"))

    def test_a_second_signal_does_not_wait_for_the_others(self):
        self.make_job(files=2, copies=20)
        _, workers = self.begin("left")
        workers[1].send_signal(signal.SIGSTOP)
        workers[0].send_signal(signal.SIGTERM)
        self.await_line("w0.log", "once more to leave at once", workers[0])
        workers[0].send_signal(signal.SIGTERM)
        self.ends(workers[0], 143, "w0.log", 5)


if __name__ == "__main__":
    main()
