"""Bad input costs a clear error and nothing else: exit 2 for arguments and YAML, 1 for data, disk and saves."""
import gzip
import os

from program import CONFIG, MULTISLOT, SAMPLE, ProgramTest, main


class BadInputTest(ProgramTest):
    def train(self, *more, code):
        return self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1", *more, code=code)

    def test_arguments_and_yaml(self):
        self.make_job()
        for more, words in (
            (["-o", "runner.epoch=2"], ["runner.epoch", "runner.epochs"]),
            (["-o", "runner.epochs=many"], ["runner.epochs", "many"]),
            (["-o", "runner.train_batch_size=-3"], ["runner.train_batch_size"]),
            (["-o", "hyper_parameters.sparse_feature_dims=3"], ["sparse_feature_dim"]),
            (["-o", "hyper_parameters.optimizer.class=Adamm"], ["Adam"]),
            (["-o", "model=dnm"], ["dnm", "dnn"]),
            (["-o", "nonsense"], ["nonsense"]),
            (["--resumed"], ["--resume"]),
        ):
            _, err = self.train(*more, code=2)
            for word in words:
                self.assertIn(word, err)
        _, err = self.run_regatta("train", "-m", "nowhere.yaml", code=2)
        self.assertIn("nowhere.yaml", err)
        for text in ("runner: [1, 2", "runner:\n\t- x", "{" * 5000, "a: &x 1\nb: *x\n", "x" * 2_000_000,
                     "runner: 3\n", "runner:\n  epochs: 1\n  epochs: 2\n", "\x00\x01\x02"):
            self.write("bad.yaml", text)
            _, err = self.run_regatta("train", "-m", "bad.yaml", code=2)
            self.assertIn("bad.yaml", err)
        self.run_regatta("trian", code=2)

    def test_what_somebody_has_planted(self):
        self.make_job(files=1)
        os.mkfifo(self.folder / "fifo.yaml")
        for verb in ("train", "infer", "config"):
            _, err = self.run_regatta(verb, "-m", "fifo.yaml", code=2)
            self.assertIn("fifo.yaml is not a regular file (a FIFO)", err)
        precious = self.write("precious", "precious")
        (self.folder / "model").mkdir()
        lock = self.folder / "model" / "LOCK"
        lock.symlink_to(precious)
        _, err = self.train(code=1)
        self.assertIn("LOCK is not a regular file (a symbolic link)", err)
        lock.unlink()
        for name in ("bad_lines.txt", "RUN.tmp", "CURRENT.tmp", "0.saving"):
            (self.folder / "model" / name).symlink_to(precious)
        self.write("train/part-1.txt", "click:1 \x1b[2J\x07:5\n")
        _, err = self.train(code=0)
        self.assertNotIn("\x1b", err)
        self.assertIn("bad line skipped", err)
        self.assertIn("part-1.txt", (self.folder / "model" / "bad_lines.txt").read_text())
        self.assertEqual(precious.read_text(), "precious")

    def test_a_bad_line_costs_that_line(self):
        self.make_job(files=1)
        good = SAMPLE.read_text().splitlines()
        bad = ["garbage", "click:x 1:5", good[0].replace("1:737395", "1:-7"), "click:0 " + "1:5 " * 10,
               "click:1 dense_feature:nan 1:5"]
        legal = [good[0].replace("1:737395", "1:0"), good[1].replace("1:715353", "1:18446744073709551615")]
        self.write("train/part-1.txt", "\n".join(bad + ["", "  "] + legal) + "\n\n")
        out, err = self.train(code=0)
        self.assertRegex(out, r"epoch: 0 done.*samples: 402.*bad lines: 5\n")
        self.assertIn("part-1.txt", (self.folder / "model" / "bad_lines.txt").read_text())
        _, err = self.train("-o", "runner.max_bad_lines=2", code=1)
        self.assertIn("max_bad_lines", err)
        self.assertIn("part-1.txt", err)

    def test_a_line_of_ten_megabytes(self):
        self.make_job(files=1)
        self.write("train/part-1.txt", b"click:1 " + b"1:5 " * 2_600_000 + b"\n" + SAMPLE.read_bytes())
        out, _ = self.train(code=0)
        self.assertIn("samples: 480", out)

    def test_files_that_cannot_be_read(self):
        self.make_job(files=1)
        _, err = self.train("-o", "runner.train_data_dir=nowhere", code=1)
        self.assertIn("nowhere", err)
        whole = gzip.compress(SAMPLE.read_bytes() * 20)
        self.write("gz/whole.gz", whole)
        out, _ = self.train("-o", "runner.train_data_dir=gz", code=0)
        self.assertIn("samples: 1600", out)
        self.write("cut/cut.gz", whole[: len(whole) // 2])
        _, err = self.train("-o", "runner.train_data_dir=cut", code=1)
        self.assertIn("cut.gz", err)
        self.write("binary/x.txt", os.urandom(100_000))
        _, err = self.train("-o", "runner.train_data_dir=binary", "--overwrite", code=1)
        self.assertIn("x.txt", err)
        self.write("empty/x.txt", "")
        _, err = self.train("-o", "runner.train_data_dir=empty", "--overwrite", code=1)
        self.assertIn("x.txt", err)

    def test_pipe_commands(self):
        self.make_job(files=1)
        reader = self.write("reader.py", MULTISLOT)
        self.train("-o", "runner.model_save_path=parsed", code=0)
        self.train("-o", f"runner.pipe_command=/usr/bin/python3 {reader}", "-o", "runner.model_save_path=piped", code=0)
        self.assertEqual(self.dump("parsed"), self.dump("piped"))
        for command, word in (("false", "false"), ("no_such_command_here", "no_such_command_here"),
                              ("head -c 300 /dev/urandom", "part-0.txt"), ("sh -c 'cat >/dev/null; exit 3'", "3")):
            _, err = self.train("-o", f"runner.pipe_command={command}", "--overwrite", code=1)
            self.assertIn(word, err)

    def test_damaged_saves(self):
        self.make_job(files=1)
        self.train(code=0)
        save = self.folder / "model" / "0"
        data = max((p for p in save.iterdir() if p.name != "MANIFEST"), key=lambda p: p.stat().st_size)
        bytes_ = bytearray(data.read_bytes())
        bytes_[len(bytes_) // 2] ^= 1
        data.write_bytes(bytes_)
        _, err = self.run_regatta("checkpoint", "verify", "model/0", code=1)
        self.assertIn(data.name, err + _)
        infer = ("infer", "-m", "config.yaml", "-o", "runner.test_data_dir=train", "-o", "runner.epochs=1")
        _, err = self.run_regatta(*infer, code=1)
        self.assertIn(data.name, err)
        data.write_bytes(bytes_[:100])
        _, err = self.run_regatta(*infer, code=1)
        self.assertIn(data.name, err)

    def test_a_save_of_another_model_is_refused_by_its_name(self):
        self.make_job()
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1")
        out, _ = self.run_regatta("checkpoint", "ls", "model")
        self.assertIn("model: dnn (zoo), 26 sparse slots, 13 dense features", out)
        infer = ("infer", "-m", "config.yaml", "-o", "runner.test_data_dir=train", "-o", "runner.infer_end_epoch=1")
        for command in (infer, ("train", "-m", "config.yaml", "--resume")):
            _, err = self.run_regatta(*command, "-o", "model=deepfm", code=1)
            self.assertIn("the save holds the model 'dnn' (zoo), and the model 'deepfm' (zoo) is wanted", err)
        _, err = self.run_regatta(*infer)
        self.assertNotIn("other settings", err)

    def test_a_full_disk_while_saving_loses_nothing(self):
        self.make_job()
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1")
        before = self.dump("model")
        env = dict(os.environ, REGATTA_FAILPOINTS="file.write=enospc")
        _, err = self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1", code=1, env=env)
        self.assertIn("space", err)
        self.assertEqual(self.dump("model"), before)

    def test_a_save_path_without_permission(self):
        self.make_job()
        _, err = self.train("-o", "runner.model_save_path=/proc/nowhere/model", code=1)
        self.assertIn("/proc/nowhere", err)

    def make_huge(self, model, labels, value):
        """40 lines with `value` in every dense feature."""
        rest = f" dense_feature:{value}" * 13 + "".join(f" {i}:{i}" for i in range(1, 27)) + "\n"
        self.write("train/part-0.txt", "".join(f"click:{labels[i % len(labels)]}" + rest for i in range(40)))
        self.write("config.yaml", CONFIG.format(batch=10).replace("model: dnn", f"model: {model}"))

    def test_dense_gradients_that_overflow_are_reported(self):
        self.make_huge("lr", labels=[1], value="3e38")  # the gradients of 10 samples overflow, their loss does not
        out, err = self.train(code=0)
        self.assertIn("epoch 0, batch 0: 0 row gradients and the dense gradient hold NaN or Inf", err)
        self.assertIn("0 row gradients and 4 dense gradients of this process so far held NaN or Inf", err)
        self.assertIn("skip leaves such updates out", err)

    def test_a_loss_that_a_huge_input_spoils_names_the_input(self):
        self.make_huge("dnn", labels=[0, 1], value="1e30")  # the second batch meets weights as huge as the features
        sgd = ("-o", "hyper_parameters.optimizer.class=SGD", "-o", "hyper_parameters.optimizer.learning_rate=1")
        _, err = self.train(*sgd, code=1)
        self.assertRegex(err, r"Sample \d+ has 1e\+30 in dense_feature, value \d+ of 13: scale or clip")
        self.assertNotIn("lower learning rate", err.splitlines()[-1])

    def test_a_rate_that_piecewise_overrides_is_told(self):
        self.make_job(files=1)
        schedule = ("-o", "hyper_parameters.optimizer.lr_schedule={name: piecewise, boundaries: [5], values: [0.1, 0.01]}")
        rate = "table_parameters.embedding.embedx_sgd_param.learning_rate"
        _, err = self.train(*schedule, "-o", f"{rate}=0.5", code=0)
        self.assertIn(f"{rate} has no effect: lr_schedule piecewise", err)
        _, err = self.train(*schedule, code=0)
        self.assertNotIn("piecewise", err)

    def test_a_table_is_named_once(self):
        self.make_job(files=1)
        _, err = self.train("-o", "table_parameters.embedding.embedx_sgd_param.beta1_decay_rate=1", code=2)
        self.assertEqual(err.count("table embedding"), 1, err)

    def test_a_loss_that_is_not_a_number_keeps_the_batch(self):
        self.make_job()
        _, err = self.train("-o", "hyper_parameters.optimizer.class=SGD", "-o",
                            "hyper_parameters.optimizer.learning_rate=1e6", "-o", "runner.nan_policy=clip", code=1)
        self.assertIn("bad_batch", err)
        self.assertTrue(list((self.folder / "model").glob("bad_batch-*.txt")))


if __name__ == "__main__":
    main()
