"""Validation after each epoch: what is best and when to stop survive a kill or a signal at any moment."""
import os
import signal
import time

from program import SAMPLE, SLOWNESS, ProgramTest, main

PATIENCE = 60 * SLOWNESS  # seconds; a bound, not a pause


class ValidationTest(ProgramTest):
    def make_job(self, copies=5, validation_copies=1):
        super().make_job(copies=copies)
        self.write("test/part-0.txt", SAMPLE.read_text() * validation_copies)

    def args(self, name, *more):
        return ("train", "-m", "config.yaml", "-o", "runner.test_data_dir=test", "-o", "runner.epochs=3", "-o",
                f"runner.model_save_path={name}", *more)

    def files(self, name):
        """Every byte that a later run or reader goes by; RUN holds times and a pid, CURRENT a run's id."""
        root = self.folder / name
        return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*"))
                if p.is_file() and p.name not in ("RUN", "CURRENT", "LOCK")}

    def crash(self, args, failpoint):
        self.run_regatta(*args, code=-signal.SIGKILL, env={**os.environ, "REGATTA_FAILPOINTS": failpoint})

    def signal_in_validation(self, args, epoch, number):
        """The epoch's save is there, its validation is not reported yet."""
        name = next(a for a in args if a.startswith("runner.model_save_path=")).split("=")[1]
        process = self.start(*args)
        current = self.folder / name / "CURRENT"
        end = time.monotonic() + PATIENCE
        while not current.exists() or current.read_text().splitlines()[0] != str(epoch):
            self.assertLess(time.monotonic(), end, "waited in vain for a save")
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertNotIn(f"validation of epoch: {epoch}", out)
        return process.returncode, out + err

    def test_a_kill_between_save_and_validation_leaves_no_trace(self):
        self.make_job()
        self.run_regatta(*self.args("straight"))
        straight = self.files("straight")
        self.assertEqual([n for n in straight if n.endswith("MANIFEST")], ["0/MANIFEST", "1/MANIFEST", "2/MANIFEST"])
        self.assertIn("BEST", straight)
        for epoch in range(3):
            args = self.args(f"killed{epoch}")
            self.crash(args, f"save.prune=crash@{epoch + 1}")  # the save is made and CURRENT
            out, _ = self.run_regatta(*args, "--resume")
            self.assertIn(f"resuming after epoch {epoch}", out)
            self.assertEqual(straight, self.files(f"killed{epoch}"), f"killed after the save of epoch {epoch}")

    def test_more_epochs_after_a_finished_run_know_its_best(self):
        self.make_job()
        self.run_regatta(*self.args("straight"))
        self.run_regatta(*self.args("two", "-o", "runner.epochs=2"))
        self.run_regatta(*self.args("two"), "--resume")
        self.assertEqual(self.files("straight"), self.files("two"))

    def test_early_stop_counts_the_epoch_whose_validation_was_lost(self):
        self.make_job()
        # Nothing is learnt, so epoch 0 stays the best and the patience of 1 is over after epoch 1.
        more = ("-o", "runner.early_stop=1", "-o", "hyper_parameters.optimizer.learning_rate=0.0")
        out, _ = self.run_regatta(*self.args("straight", *more))
        self.assertIn("early stop", out)
        self.assertFalse((self.folder / "straight/2").exists())
        for epoch in (0, 1):
            args = self.args(f"killed{epoch}", *more)
            self.crash(args, f"save.prune=crash@{epoch + 1}")
            out, _ = self.run_regatta(*args, "--resume")
            self.assertIn("early stop", out)
            self.assertEqual(self.files("straight"), self.files(f"killed{epoch}"))

    def test_a_signal_in_any_validation_is_an_interruption(self):
        self.make_job(validation_copies=300)
        self.run_regatta(*self.args("straight"))
        for epoch, number in ((0, signal.SIGTERM), (2, signal.SIGINT)):
            args = self.args(f"signal{epoch}")
            code, said = self.signal_in_validation(args, epoch, number)
            self.assertEqual(code, 128 + number, said)
            self.assertIn(f"stopped while validating epoch {epoch}", said)
            self.assertIn('"interrupted"', (self.folder / f"signal{epoch}/RUN").read_text())
            out, _ = self.run_regatta(*args, "--resume")
            self.assertIn(f"validation of epoch: {epoch}", out)
            self.assertEqual(self.files("straight"), self.files(f"signal{epoch}"))
            self.assertIn('"finished"', (self.folder / f"signal{epoch}/RUN").read_text())


if __name__ == "__main__":
    main()
