"""The commands as the documentation shows them."""
import json

from program import SAMPLE, SOURCE, ProgramTest, main


class CommandTest(ProgramTest):
    def test_the_zoo_trains_and_infers_from_another_directory(self):
        for name in ("lr", "fm", "dnn", "wide_deep", "deepfm", "dcn"):
            config = SOURCE / "models" / "rank" / name / "config.yaml"
            saves = ("-o", f"runner.model_save_path={self.folder}/{name}", "-o",
                     f"runner.infer_load_path={self.folder}/{name}")
            out, _ = self.run_regatta("train", "-m", config, *saves, "-o", "runner.epochs=2")
            self.assertIn("epoch: 1 done, auc: ", out)
            out, _ = self.run_regatta("infer", "-m", config, *saves, "-o", "runner.infer_end_epoch=2")
            self.assertIn("infer epoch: 1 done, auc: ", out)

    def test_overrides_take_effect_and_config_says_where_values_come_from(self):
        self.make_job()
        out, _ = self.run_regatta("config", "-m", "config.yaml", "-o", "runner.epochs=7")
        self.assertRegex(out, r"runner.epochs = 7 +\(-o\)")
        self.assertRegex(out, r"runner.train_batch_size = 10 +\(.*config.yaml:\d+\)")
        self.assertRegex(out, r"runner.seed = 12345 +\(default\)")
        json.loads(self.run_regatta("config", "-m", "config.yaml", "--json")[0])

    def test_dry_run_trains_nothing(self):
        self.make_job()
        out, _ = self.run_regatta("train", "-m", "config.yaml", "--dry-run")
        self.assertIn("first batch", out)
        self.assertIn("embedding: dim 5", out)
        self.assertFalse((self.folder / "model").exists())

    def test_json_reports_and_predictions(self):
        self.make_job(files=1)
        out, _ = self.run_regatta("train", "-m", "config.yaml", "--json", "-o", "runner.test_data_dir=train")
        reports = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({r["report"] for r in reports}, {"interval", "epoch", "validation of epoch"})
        for threads in (1, 3):
            out, _ = self.run_regatta("infer", "-m", "config.yaml", "--json", "-o", "runner.test_data_dir=train",
                                      "-o", "runner.infer_start_epoch=1", "-o", f"runner.thread_num={threads}",
                                      "--predictions", f"predictions{threads}.txt")
        lines = (self.folder / "predictions1.txt").read_text().splitlines()
        self.assertEqual(len(lines), json.loads(out.splitlines()[-1])["samples"])
        self.assertEqual(lines, (self.folder / "predictions3.txt").read_text().splitlines())

    def test_data_without_labels_is_scored(self):
        self.make_job(files=1)
        self.run_regatta("train", "-m", "config.yaml", "-o", "runner.test_data_dir=")
        lines = SAMPLE.read_text().splitlines()
        self.write("labelled/a.txt", "\n".join(lines) + "\n")
        self.write("bare/a.txt", "\n".join(line.split(" ", 1)[1] for line in lines) + "\n")
        self.assertNotIn("click", (self.folder / "bare/a.txt").read_text())
        infer = ("infer", "-m", "config.yaml", "-o", "runner.infer_start_epoch=1", "-o", "runner.infer_end_epoch=2")
        self.run_regatta(*infer, "-o", "runner.test_data_dir=labelled", "--predictions", "want.txt")
        want = [line.split()[0] for line in (self.folder / "want.txt").read_text().splitlines()]
        # A label that is there, and slots of weights and users that are not, change nothing.
        for data, options in (("bare", ()), ("labelled", ()),
                              ("bare", ("-o", "runner.sample_weight_slot=w", "-o", "runner.user_slot=u"))):
            out, _ = self.run_regatta(*infer, "-o", f"runner.test_data_dir={data}", "--predictions", "got.txt",
                                      "--no_labels", *options)
            self.assertEqual((self.folder / "got.txt").read_text().splitlines(), want)
            self.assertRegex(out, r"infer epoch: 1 done, epoch time: .* samples: 80, ips: ")
            self.assertNotRegex(out, "auc|loss")
        out, _ = self.run_regatta(*infer, "-o", "runner.test_data_dir=bare", "--predictions", "got.txt", "--no_labels",
                                  "--json")
        self.assertEqual(json.loads(out.splitlines()[-1])["samples"], 80)
        self.assertNotRegex(out, "auc|loss")
        _, err = self.run_regatta(*infer, "-o", "runner.test_data_dir=bare", code=1)
        self.assertIn("expected 1 value of the label slot 'click', found 0", err)
        _, err = self.run_regatta(*infer, "-o", "runner.test_data_dir=bare", "--no_labels", code=2)
        self.assertIn("--predictions", err)

    def test_a_trace_is_written(self):
        self.make_job(files=1)
        self.run_regatta("train", "-m", "config.yaml", "--trace", "out.json")
        names = {e["name"] for e in json.loads((self.folder / "out.json").read_text())["traceEvents"]}
        self.assertLessEqual({"plan", "pull", "gather", "forward", "backward", "merge", "commit"}, names)

    def test_dataset_debug_prints_a_profile(self):
        self.make_job(files=1)
        out, _ = self.run_regatta("train", "-m", "config.yaml", "-o", "runner.dataset_debug=True")
        self.assertRegex(out, r"dataset profile of epoch 1 .*read .* parse ")

    def test_validation_marks_the_best_epoch_and_stops_early(self):
        self.make_job()
        out, _ = self.run_regatta("train", "-m", "config.yaml", "-o", "runner.test_data_dir=train", "-o",
                                  "runner.epochs=30", "-o", "runner.early_stop=2", "-o",
                                  "hyper_parameters.optimizer.learning_rate=0.5")
        self.assertIn("early stop", out)
        out, _ = self.run_regatta("checkpoint", "ls", "model")
        self.assertIn("best", out)

    def test_limits_of_time_and_memory(self):
        self.make_job(copies=30)
        train = ("train", "-m", "config.yaml", "-o", "runner.epochs=100000")
        out, _ = self.run_regatta(*train, "-o", "runner.max_minutes=0.005")
        self.assertIn("--resume", out)
        _, err = self.run_regatta(*train, "--resume", "-o", "runner.max_memory=1M", code=1)
        self.assertIn("max_memory", err)

    def test_help_teaches(self):
        for words in ([], ["--help"], ["train", "--help"], ["data", "gen", "--help"], ["checkpoint", "--help"]):
            out, _ = self.run_regatta(*words)
            self.assertIn("regatta", out)
        out, _ = self.run_regatta("version")
        self.assertRegex(out, r"^Regatta \d+\.\d+\.\d+, compiled with\n")


if __name__ == "__main__":
    main()
