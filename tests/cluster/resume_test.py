"""A job that was killed or stopped in the middle of an epoch goes on there; in sync as if it had not been."""
import re
import signal

from checkpoint_job import SYNC, CheckpointJob, main, steps


class ResumeTest(CheckpointJob):
    def test_a_killed_job_goes_on_in_the_middle_of_the_epoch_with_any_number_of_servers(self):
        self.make_job(files=2, copies=10)
        self.launch("straight", *SYNC)
        for servers in (2, 1):
            save = f"killed{servers}"
            self.kill_everything(save, *SYNC, *steps(10))
            log = self.launch(save, *SYNC, "--resume", servers=servers)
            self.assertRegex(log, r"resuming epoch 0 from .*checkpoint/0-\d+, \d+ batches of 2 workers into it")
            self.assertEqual(self.dump("straight"), self.dump(save))
            said = re.findall(r"(?m)^.*epoch: 0 done.*auc: *([0-9.]+)", log)
            straight = (self.folder / "log_straight" / "workerlog.0").read_text()
            self.assertEqual(said, re.findall(r"(?m)^.*epoch: 0 done.*auc: *([0-9.]+)", straight))

    def test_the_other_modes_go_on_too(self):
        self.make_job(files=2, copies=10)
        for mode in ("async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5")
            self.kill_everything(mode, *args, *steps(10))
            log = self.launch(mode, *args, "--resume")
            self.assertIn("resuming epoch 0", log)
            self.assertIn("epoch: 1 done", log)

    def test_another_number_of_workers_is_refused(self):
        self.make_job(files=2, copies=10)
        self.kill_everything("killed", *SYNC, *steps(10))
        log = self.launch("killed", *SYNC, "--resume", workers=1, code=1)
        self.assertIn("was saved by 2 workers in the middle of epoch 0", log)
        self.assertIn("--worker_num=2", log)
        _, err = self.run_regatta("train", "-m", "config.yaml", "-o", "runner.model_save_path=killed", "--resume", code=1)
        self.assertIn("here is one process without servers", err)

    def test_a_crash_at_any_point_of_a_snapshot_leaves_the_checkpoint_before(self):
        self.make_job(files=2)
        want = {}
        for workers in (1, 2):
            self.launch(f"straight{workers}", *SYNC, workers=workers)
            want[workers] = self.dump(f"straight{workers}")
        points = ("checkpoint.gathered=crash@2", "checkpoint.begun=crash@2", "save.data=crash@2", "save.manifest=crash@2",
                  "save.switch=crash@2", "save.current=crash@2", "snapshot.begin=crash@2", "snapshot.read=crash@900")
        for point in points:
            save = point.partition("=")[0]
            workers = 2 if point.startswith("checkpoint.") else 1
            self.launch(save, *SYNC, *steps(9), code=137, failpoints=point, servers=1, workers=workers)
            log = self.launch(save, *SYNC, "--resume", servers=1, workers=workers)
            self.assertIn("resuming epoch 0 from", log, point)
            self.assertEqual(self.dump(save), want[workers], point)

    def test_a_stopped_job_goes_on_where_it_was(self):
        self.make_job(files=2, copies=10)
        for mode in ("sync", "async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", "-o", "runner.split_file_list=True",
                    "-o", f"runner.model_save_path={mode}")
            self.prepare(1, 2, *args)
            server, workers = self.server(0), [self.worker(0), self.worker(1)]
            self.await_line("w0.log", "batch_id: 20", workers[0])
            workers[1].send_signal(signal.SIGTERM)
            self.ends(workers[1], 143, "w1.log", 30)
            self.ends(workers[0], 143, "w0.log", 30)
            self.ends(server, 0, "s0.log", 20)
            self.assertRegex(self.log("w0.log"), r"stopped in epoch \d, \d+ batches of 2 workers into it; saved")
            log = self.launch(mode, *args, "--resume")
            self.assertRegex(log, r"resuming epoch \d from .*batches of 2 workers into it")
            self.assertIn("epoch: 1 done", log)


if __name__ == "__main__":
    main()
