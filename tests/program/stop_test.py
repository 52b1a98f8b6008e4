"""The first signal stops a run, whatever it waits for; what can be saved is."""
import os
import signal
import subprocess
import time

import program

HANG = "sleep 1000"


class StopTest(program.ProgramTest):
    def wait_for(self, found, what):
        deadline = time.monotonic() + 60
        while not found():
            self.assertLess(time.monotonic(), deadline, f"no {what}")
            time.sleep(0.02)

    def commands(self, process):
        """Processes whose parent it is, by any of its threads."""
        found = []
        for task in os.listdir(f"/proc/{process.pid}/task"):
            try:
                with open(f"/proc/{process.pid}/task/{task}/children") as file:
                    found += file.read().split()
            except OSError:
                pass
        return found

    def end(self, process, number):
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail("one signal did not stop it")
        return process.returncode, out, err

    def test_a_command_that_hangs_is_left_at_the_first_signal(self):
        config = self.make_job()
        for reader in ("QueueDataset", "InMemoryDataset"):
            process = self.start("train", "-m", config, "-o", f"runner.pipe_command={HANG}", "--overwrite", "-o",
                                 f"runner.reader_type={reader}")
            self.wait_for(lambda: self.commands(process), "pipe_command")
            code, out, err = self.end(process, signal.SIGTERM)
            self.assertEqual(code, 128 + signal.SIGTERM, err)
            self.assertIn("saved, continue with", out + err)

    def test_a_stop_in_the_middle_of_the_data_is_resumable(self):
        config = self.make_job(copies=50, files=2, batch=100)
        whole = self.write("whole.py", program.MULTISLOT)
        # Gives a file's lines, more than a block of the reader, then hangs until there is a file `open`.
        self.write("filter.sh", f"/usr/bin/python3 {whole}; [ -e {self.folder}/open ] || exec sleep 1000\n")
        args = ["train", "-m", config, "-o", "runner.pipe_command=sh filter.sh", "-o", "runner.epochs=1"]
        process = self.start(*args, "--overwrite")
        line = "before the first"
        while line and "batch_id" not in line:
            line = process.stdout.readline()
        code, _, err = self.end(process, signal.SIGINT)
        self.assertEqual(code, 128 + signal.SIGINT, err)
        self.write("open", "")
        self.run_regatta(*args, "--resume")
        resumed = self.dump("model")
        self.run_regatta(*args, "-o", "runner.model_save_path=other")
        self.assertEqual(resumed, self.dump("other"))

    def test_a_fifo_among_the_data_is_refused(self):
        config = self.make_job()
        os.mkfifo(self.folder / "train" / "part-9.txt")
        _, err = self.run_regatta("train", "-m", config, code=1)
        self.assertRegex(err, r"train/part-9\.txt is a FIFO, not a regular file")

    def test_a_lost_terminal_saves_and_stops(self):
        config = self.make_job(copies=200)
        process = self.start("train", "-m", config, "-o", "runner.epochs=50")
        self.assertEqual(self.kill_at_line(process, "epoch", signal.SIGHUP), 128 + signal.SIGHUP)
        self.run_regatta("train", "-m", config, "--resume", "-o", "runner.epochs=1")

    def test_nohup_is_respected(self):
        config = self.make_job(copies=50)
        process = self.start("train", "-m", config, "-o", "runner.epochs=1",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(self.kill_at_line(process, "epoch", signal.SIGHUP), 0)

    def test_a_signal_before_the_work_says_so(self):
        config = self.make_job()
        for delay in (0, 0.02, 0.1):  # while it is loaded or while it starts
            process = self.start("train", "-m", config, "--overwrite", "-o", f"runner.pipe_command={HANG}",
                                 preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]))
            time.sleep(delay)
            code, _, err = self.end(process, signal.SIGTERM)
            self.assertEqual(code, 128 + signal.SIGTERM, err)
            self.assertRegex(err, "nothing to save|saving")


if __name__ == "__main__":
    program.main()
