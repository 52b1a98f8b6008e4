"""Jobs of real processes, started by `regatta launch`: every mode ends well, sync is reproducible, saves go anywhere."""
import json
import os
import re

from cluster import CONFIG, SAMPLE, ProgramTest, main


class ModesTest(ProgramTest):
    def launch(self, servers, workers, *more, code=0, **kwargs):
        return self.run_regatta("launch", f"--server_num={servers}", f"--worker_num={workers}", "--", "train", "-m",
                                "config.yaml", "-o", "runner.split_file_list=True", *more, code=code, **kwargs)

    def logs(self):
        return {path.name: path.read_text() for path in (self.folder / "log").iterdir()}

    def test_every_mode_trains_and_ends_well(self):
        self.make_job(files=2)
        for mode in ("sync", "async", "half_async", "geo"):
            out, err = self.launch(2, 2, "-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", "-o",
                                   f"runner.model_save_path={mode}")
            self.assertIn("epoch: 1 done", out + err)
            logs = self.logs()
            # The mode that was asked for, as the communicator and the servers have it.
            for worker in range(2):
                self.assertIn(f"Communicator start: {mode}, worker {worker} of 2", logs[f"workerlog.{worker}"])
            for server in range(2):
                self.assertIn(f"job: {mode}, 2 workers, server {server} of 2", logs[f"serverlog.{server}"])
            self.assertIn("init rpc client with trainer_id 1", logs["workerlog.1"])
            self.assertRegex(logs["serverlog.1"], r"(?m)^I\d{4} .*\] Server listening on 127\.0\.0\.1:\d+ selected port: ")
            rows = [line for line in self.dump(mode).splitlines() if line.startswith("embedding")]
            self.assertGreater(len(rows), 100)

    def test_gradients_that_overflow_are_reported_in_every_mode(self):
        line = "click:1 " + "dense_feature:3e38 " * 13 + " ".join(f"{i}:{i}" for i in range(1, 27))
        self.write("train/part-0.txt", (line + "\n") * 40)
        self.write("config.yaml", CONFIG.format(batch=10).replace("model: dnn", "model: lr"))
        for mode in ("sync", "async", "half_async", "geo"):
            self.launch(1, 1, "-o", f"runner.sync_mode={mode}", "-o", f"runner.model_save_path={mode}", "-o",
                        "runner.epochs=1")
            self.assertIn("0 row gradients and 4 dense gradients of this process so far held NaN or Inf",
                          self.logs()["workerlog.0"])

    def test_threads_of_async_train_on_every_sample(self):
        self.make_job(files=2)
        lines = sum(len((self.folder / "train" / f"part-{i}.txt").read_text().splitlines()) for i in range(2))
        out, err = self.launch(1, 2, "-o", "runner.sync_mode=async", "-o", "runner.thread_num=3", "-o",
                               "runner.train_batch_size=20", "-o", "runner.epochs=4")
        self.assertEqual(re.findall(r"epoch: \d done.*samples: (\d+)", out + err), [str(lines)] * 4)

    def test_sync_gives_the_same_bytes_for_any_number_of_servers(self):
        self.make_job(files=3)
        dumps = []
        for servers in (1, 2, 3, 2):
            name = f"sync{len(dumps)}"
            self.launch(servers, 2, "-o", "runner.sync_mode=sync", "-o", f"runner.model_save_path={name}")
            dumps.append(self.dump(name))
        self.assertEqual([d == dumps[0] for d in dumps], [True] * 4)

    def test_the_report_is_the_clusters(self):
        """Of two workers in sync as of one process that reads their batches in turn, in batches of twice the size."""
        self.make_job(files=2, copies=3, batch=10)
        parts = [self.folder / "train" / f"part-{i}.txt" for i in range(2)]
        lines = [path.read_text().splitlines(keepends=True) for path in parts]
        lines = [part[:230] for part in lines]
        lines[1] = [line.replace("click:0", "click:1") for line in lines[1]]  # what worker 0 sees tells nothing of worker 1
        for path, part in zip(parts, lines):
            path.write_text("".join(part))
        self.write("both/part-0.txt", "".join("".join(part[i:i + 10]) for i in range(0, 230, 10) for part in lines))

        def report(out):
            reports = [json.loads(line[line.index("{"):]) for line in out.splitlines() if '"report":"epoch"' in line]
            self.assertEqual(len(reports), 1, out[-3000:])
            return reports[0]

        job = report(self.launch(1, 2, "-o", "runner.sync_mode=sync", "-o", "runner.epochs=1", "--json")[0])
        alone = report(self.run_regatta("train", "-m", "config.yaml", "-o", "runner.epochs=1", "-o",
                                        "runner.train_data_dir=both", "-o", "runner.train_batch_size=20", "-o",
                                        "runner.model_save_path=alone", "--json")[0])
        self.assertEqual(job["samples"], 460)
        self.assertEqual(alone["samples"], 460)
        for name in ("loss", "auc", "logloss", "actual_ctr", "predicted_ctr", "mae", "rmse"):
            self.assertAlmostEqual(job[name], alone[name], delta=1e-4, msg=name)

    def test_resume_and_warm_start_with_another_number_of_servers(self):
        self.make_job(files=2)
        args = ("-o", "runner.sync_mode=sync")
        self.launch(2, 2, *args, "-o", "runner.model_save_path=straight")
        self.launch(2, 2, *args, "-o", "runner.epochs=1", "-o", "runner.model_save_path=resumed")
        self.launch(3, 2, *args, "--resume", "-o", "runner.model_save_path=resumed")
        self.assertEqual(self.dump("straight"), self.dump("resumed"))
        self.launch(1, 2, *args, "-o", "runner.epochs=1", "-o", "runner.model_init_path=straight/0", "-o",
                    "runner.model_save_path=warm")
        # A warm start begins its schedule anew, but Adam's learning rate is constant here: the second epoch is the same.
        self.assertEqual(self.dump("straight"), self.dump("warm"))

    def test_a_kill_between_save_and_validation_leaves_no_trace(self):
        self.make_job(files=2)
        self.write("test/part-0.txt", SAMPLE.read_text())
        args = ("-o", "runner.sync_mode=sync", "-o", "runner.test_data_dir=test")
        self.launch(2, 1, *args, "-o", "runner.model_save_path=straight")
        for epoch in (0, 1):
            name = f"runner.model_save_path=killed{epoch}"
            self.launch(2, 1, *args, "-o", name, code=137,
                        env={**os.environ, "REGATTA_FAILPOINTS": f"save.prune=crash@{epoch + 1}"})
            out, _ = self.launch(2, 1, *args, "-o", name, "--resume")
            self.assertIn(f"validation of epoch: {epoch}", out)
            for file in ("BEST", "0/MANIFEST", "0/data-000", "1/MANIFEST", "1/data-000"):
                self.assertEqual((self.folder / "straight" / file).read_bytes(),
                                 (self.folder / f"killed{epoch}" / file).read_bytes(), file)

    def test_more_workers_than_files(self):
        self.make_job(files=1)
        out, err = self.launch(1, 3, "-o", "runner.sync_mode=sync")
        self.assertIn("trains nothing", self.logs()["workerlog.2"])
        self.write("train/part-1.txt", "")
        self.launch(1, 2, "-o", "runner.sync_mode=async")
        self.assertIn("the files of worker 1 are empty: it trains nothing", self.logs()["workerlog.1"])

    def test_a_worker_with_another_model_is_refused_field_by_field(self):
        self.make_job(files=2)
        self.write("train.sh", '#!/bin/sh\nexec regatta train -m config.yaml -o runner.split_file_list=True '
                   '-o hyper_parameters.sparse_feature_dim=$((5 + PADDLE_TRAINER_ID))\n').chmod(0o755)
        _, err = self.run_regatta("launch", "--server_num=1", "--worker_num=2", "--", "./train.sh", code=1,
                                  env={**os.environ, "PATH": os.environ["REGATTA_BIN"] + ":" + os.environ["PATH"]})
        logs = self.logs()
        self.assertRegex(logs["workerlog.0"] + logs["workerlog.1"], r"tables\.sparse\.0\.dim: \d here, \d there")


if __name__ == "__main__":
    main()
