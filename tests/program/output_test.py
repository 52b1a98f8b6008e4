"""What the programs write: devices, FIFOs and symlinks stay what they are, and lost output is a failure."""
import os
import resource
import stat
import threading

import program


class OutputTest(program.ProgramTest):
    def node_like_dev_full(self):
        """A device of our own, in our folder."""
        path = self.folder / "full"
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))
            with open(path, "wb"):
                pass
        except OSError as error:
            self.skipTest(f"may not make device nodes: {error}")
        return path

    def trained(self):
        config = self.make_job(copies=1)
        self.run_regatta("train", "-m", config, "-o", "runner.epochs=1")
        return config

    def infer(self, config, *args, **kwargs):
        return self.run_regatta("infer", "-m", config, "-o", "runner.test_data_dir=train", "-o",
                                "runner.infer_end_epoch=1", *args, **kwargs)

    def through_fifo(self, run):
        """The bytes that `run` writes to the FIFO it is given."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
        reader.start()
        run(fifo)
        reader.join(60)
        self.assertTrue(fifo.is_fifo())
        fifo.unlink()
        return read[0]

    def test_fifos_and_symlinks_are_written_through(self):
        config = self.trained()
        self.infer(config, "--predictions", "p.txt", "--trace", "t.json")
        predictions = (self.folder / "p.txt").read_bytes()
        self.assertGreater(predictions.count(b"\n"), 100)
        self.assertEqual(self.through_fifo(lambda to: self.infer(config, "--predictions", to)), predictions)
        self.assertIn(b"traceEvents", self.through_fifo(lambda to: self.infer(config, "--trace", to)))
        self.run_regatta("checkpoint", "export", "model", "w.npz")
        self.assertEqual(self.through_fifo(lambda to: self.run_regatta("checkpoint", "export", "model", to)),
                         (self.folder / "w.npz").read_bytes())

        link = self.folder / "link"
        link.symlink_to("behind.txt")
        for _ in range(2):
            self.infer(config, "--predictions", link)
            self.assertTrue(link.is_symlink())
            self.assertEqual((self.folder / "behind.txt").read_bytes(), predictions)

    def test_a_device_stays_one_and_its_error_is_reported(self):
        config, full = self.trained(), self.node_like_dev_full()
        for run in (lambda: self.infer(config, "--predictions", full, code=1),
                    lambda: self.infer(config, "--trace", full, code=1),
                    lambda: self.run_regatta("checkpoint", "export", "model", full, code=1)):
            _, err = run()
            self.assertIn(f"{full}: No space left on device", err)
            self.assertTrue(full.is_char_device())

    def test_a_trace_that_cannot_be_written_is_found_before_the_training(self):
        config = self.make_job(copies=1)
        out, err = self.run_regatta("train", "-m", config, "--trace", "nowhere/t.json", code=1)
        self.assertIn("nowhere/t.json", err)
        self.assertNotIn("epoch", out)
        self.assertFalse((self.folder / "model").exists())

    def test_a_full_disk_leaves_no_predictions(self):
        config = self.trained()
        before = sorted(self.folder.iterdir())
        _, err = self.infer(config, "--predictions", "p.txt", code=1,
                            env={**os.environ, "REGATTA_FAILPOINTS": "file.write=enospc"})
        self.assertIn("No space left on device", err)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_lost_output_is_exit_1(self):
        config, full = self.trained(), self.node_like_dev_full()
        for args in (["infer", "-m", config, "--json", "-o", "runner.test_data_dir=train", "-o",
                      "runner.infer_end_epoch=1"],
                     ["train", "-m", config, "-o", "runner.epochs=1", "-o", "runner.model_save_path=other"],
                     ["train", "-m", config, "--dry-run"], ["train", "--help"], ["config", "-m", config]):
            with open(full, "wb") as out:
                done = program.subprocess.run([program.BIN / "regatta", *args], stdout=out, stderr=-1, text=True,
                                              cwd=self.folder, timeout=120)
            self.assertEqual(done.returncode, 1, f"{args}: {done.stderr}")
            self.assertIn("cannot write to standard output", done.stderr)

    def test_a_reader_that_leaves_is_no_error(self):
        config = self.trained()
        process = self.start("infer", "-m", config, "-o", "runner.test_data_dir=train", "-o",
                             "runner.infer_end_epoch=1", "-o", "runner.print_interval=1")
        process.stdout.close()
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        process.stderr.close()

    def test_a_missing_key_is_usage_and_a_missing_path_is_not(self):
        config = self.trained()
        _, err = self.run_regatta("train", "-m", config, "-o", "runner.train_data_dir=", code=2)
        self.assertIn("runner.train_data_dir is not set", err)
        _, err = self.run_regatta("infer", "-m", config, code=2)
        self.assertIn("runner.test_data_dir is not set", err)
        _, err = self.run_regatta("train", "-m", config, "-o", "runner.test_data_dir=nowhere", code=1)
        self.assertRegex(err, r"error: runner\.test_data_dir: no file matches '.*/nowhere'")
        self.run_regatta("config", "-m", config, "-o", "runner.train_data_dir=")

    def test_config_help_tells_its_own_options(self):
        out, _ = self.run_regatta("config", "--help")
        self.assertRegex(out, r"--json +print the configuration as JSON")
        self.assertIn("--keys", out.split("Examples")[0])
        keys, _ = self.run_regatta("config", "--keys", "-m", "nothing.yaml")
        self.assertIn("runner.train_data_dir", keys)

    def closed(self, *descriptors):
        """For preexec_fn: the program starts without these."""
        return lambda: [os.close(fd) for fd in descriptors]

    def test_a_closed_descriptor_does_not_lead_into_a_file(self):
        config = self.make_job(copies=1)
        bad = self.folder / "train" / "part-0.txt"
        bad.write_text(bad.read_text() + "no sample\n")
        for number, descriptors in enumerate(((2,), (1,), (0, 1, 2))):
            out, _ = self.run_regatta("train", "-m", config, "-o", f"runner.model_save_path=model{number}",
                                      code=1 if 1 in descriptors else 0, preexec_fn=self.closed(*descriptors))
            self.assertEqual("done" in out, 1 not in descriptors)
            for path in (self.folder / f"model{number}").rglob("*"):
                if path.is_file():
                    self.assertNotRegex(path.read_bytes(), rb"epoch: 0|[IWE]\d{4} \d\d:", path)

    def test_a_file_beyond_the_limit_is_an_error_that_names_it(self):
        config = self.make_job(copies=1)
        limit = 4096

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        _, err = self.run_regatta("train", "-m", config, code=1, preexec_fn=small_files)
        self.assertRegex(err, r"error: .*model/.*File too large")


if __name__ == "__main__":
    program.main()
