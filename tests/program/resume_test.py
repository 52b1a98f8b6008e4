"""A run that was killed or stopped and resumed equals one that never was, bit for bit with one thread.

The jobs print more than a pipe holds, so that a run whose output is no longer read cannot end before its signal.
"""
import shlex
import signal

from program import ProgramTest, main


class ResumeTest(ProgramTest):
    def straight(self, readers):
        self.run_regatta("train", "-m", "config.yaml", "-o", f"runner.reader_threads={readers}",
                         "-o", "runner.model_save_path=straight")
        return self.dump("straight")

    def interrupted(self, name, readers, at, signal_number, code, *more):
        args = ("train", "-m", "config.yaml", "-o", f"runner.reader_threads={readers}",
                "-o", f"runner.model_save_path={name}", *more)
        self.assertEqual(self.kill_at_line(self.start(*args), at, signal_number), code)
        out, _ = self.run_regatta(*args, "--resume")
        self.assertIn("resuming", out)
        return self.dump(name)

    def test_kill_between_epochs_checkpoints_and_in_the_middle(self):
        self.make_job(copies=20)
        want = self.straight(1)
        self.assertEqual(want, self.straight_again(4), "the number of readers changes nothing")
        for readers in (1, 4):
            # Epoch 0 is saved, the kill falls into epoch 1.
            self.assertEqual(want, self.interrupted(f"epoch{readers}", readers, "epoch: 1, batch_id: 50",
                                                    signal.SIGKILL, -signal.SIGKILL))
            # Before the first epoch's end, with checkpoints every 50 steps.
            self.assertEqual(want, self.interrupted(f"steps{readers}", readers, "epoch: 0, batch_id: 160",
                                                    signal.SIGKILL, -signal.SIGKILL, "-o",
                                                    "runner.checkpoint_steps=50"))

    def straight_again(self, readers):
        self.run_regatta("train", "-m", "config.yaml", "-o", f"runner.reader_threads={readers}",
                         "-o", "runner.model_save_path=again")
        return self.dump("again")

    def test_a_signal_saves_and_the_run_goes_on_from_there(self):
        self.make_job(copies=20)
        want = self.straight(1)
        for number in (signal.SIGINT, signal.SIGTERM):
            got = self.interrupted(f"signal{int(number)}", 1, "epoch: 0, batch_id: 30", number, 128 + number)
            self.assertEqual(want, got)

    def test_in_memory_shuffled_data_resumes_too(self):
        self.make_job(copies=20)
        more = ("-o", "runner.reader_type=InmemoryDataset", "-o", "runner.checkpoint_steps=50")
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.model_save_path=straight", *more)
        got = self.interrupted("killed", 2, "epoch: 1, batch_id: 20", signal.SIGKILL, -signal.SIGKILL, *more)
        self.assertEqual(self.dump("straight"), got)

    def test_an_interrupted_run_is_not_overwritten_by_accident(self):
        self.make_job(copies=20)
        args = ("train", "-m", "config.yaml")
        self.kill_at_line(self.start(*args), "epoch: 1, batch_id: 10")
        _, err = self.run_regatta(*args, code=1)
        self.assertIn("--resume", err)
        self.assertIn("--overwrite", err)
        self.run_regatta(*args, "--overwrite")
        self.run_regatta(*args)  # a finished run's saves are replaced

    def test_the_printed_command_continues_the_run(self):
        self.make_job(copies=20)
        process = self.start("train", "-m", "config.yaml", "-o", "runner.model_save_path=a model", "-o",
                             "hyper_parameters.fc_sizes=[8, 4]")
        for line in process.stdout:
            if "epoch: 0, batch_id: 10" in line:
                process.send_signal(signal.SIGINT)
                break
        out, _ = process.communicate(timeout=120)
        command = shlex.split(out[out.index("continue with: ") + len("continue with: "):].splitlines()[0])
        self.assertEqual(command[0], "regatta")
        _, err = self.run_regatta(*command[1:])
        self.assertNotIn("configuration", err)
        self.assertIn("dense", self.dump("a model"))

    def test_a_resume_with_another_configuration_says_what_changed(self):
        self.make_job(copies=20)
        args = ("train", "-m", "config.yaml")
        self.kill_at_line(self.start(*args), "epoch: 1, batch_id: 10")
        _, err = self.run_regatta(*args, "--resume", "-o", "hyper_parameters.optimizer.learning_rate=0.5", "-o",
                                  "runner.epochs=2")
        self.assertIn("hyper_parameters.optimizer.learning_rate is 0.5, was 0.001", err)
        self.assertNotIn("runner.epochs", err)  # the same value, from another place

    def test_a_resume_without_a_run_begins_one(self):
        self.make_job()
        out, _ = self.run_regatta("train", "-m", "config.yaml", "--resume")
        self.assertIn("begins anew", out)
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.model_save_path=straight")
        self.assertEqual(self.dump("straight"), self.dump("model"))

    def test_epochs_of_an_earlier_run_are_told_apart_and_go_in_the_end(self):
        self.make_job(copies=20)
        args = ("train", "-m", "config.yaml")
        self.run_regatta(*args, "-o", "runner.epochs=3")
        self.kill_at_line(self.start(*args), "epoch: 1, batch_id: 10")
        out, _ = self.run_regatta("checkpoint", "ls", "model")
        marked = [line.split()[0] for line in out.splitlines() if "of an earlier run" in line]
        self.assertEqual(marked, ["1", "2"])
        _, err = self.run_regatta("infer", "-m", "config.yaml", "-o", "runner.test_data_dir=train", "-o",
                                  "runner.infer_end_epoch=2")
        self.assertIn("model/1 is of an earlier run", err)
        self.assertNotIn("model/0 is of an earlier run", err)
        self.run_regatta(*args, "--resume")
        self.assertEqual(sorted(p.name for p in (self.folder / "model").iterdir() if p.name.isdigit()), ["0", "1"])

    def test_changed_data_is_noticed_in_the_middle_of_an_epoch(self):
        self.make_job(copies=20)
        args = ("train", "-m", "config.yaml", "-o", "runner.checkpoint_steps=5")
        self.kill_at_line(self.start(*args), "epoch: 0, batch_id: 30")
        _, err = self.run_regatta(*args, "--resume", "-o", "runner.train_batch_size=11", code=1)
        self.assertIn("batch", err)

    def test_a_save_path_in_use_is_refused(self):
        self.make_job(copies=40)
        first = self.start("train", "-m", "config.yaml")
        first.stdout.readline()
        _, err = self.run_regatta("train", "-m", "config.yaml", "--overwrite", code=1)
        self.assertIn("model", err)
        first.kill()
        first.communicate()

    def test_warm_start_takes_weights_and_optimizer_state(self):
        self.make_job(copies=20)
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1")
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1", "-o", "runner.model_save_path=two",
                         "-o", "runner.model_init_path=model/0")
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=2", "-o", "runner.model_save_path=both")
        self.assertEqual(self.dump("two"), self.dump("both"))


if __name__ == "__main__":
    main()
