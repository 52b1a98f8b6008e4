"""Checkpoints of a whole job while it trains: every mode takes them, and a job that was killed goes on from the last."""
import re
import signal
import time

from cluster import PATIENCE, FleetJob, main

SYNC = ("-o", "runner.sync_mode=sync")


def steps(n):
    return ("-o", f"runner.checkpoint_steps={n}")


class CheckpointTest(FleetJob):
    def launch(self, save, *more, servers=2, workers=2, code=0, failpoints="", restarts=0):
        """`regatta launch`, and the log of its first worker."""
        log_dir = f"log_{save}"
        self.run_regatta("launch", f"--server_num={servers}", f"--worker_num={workers}", "--log_dir", log_dir,
                         "--max_restarts", restarts, "--", "train", "-m", "config.yaml", "-o",
                         "runner.split_file_list=True", "-o", f"runner.model_save_path={save}", *more, code=code,
                         env={**self.env, "REGATTA_FAILPOINTS": failpoints})
        return (self.folder / log_dir / "workerlog.0").read_text()

    def checkpoints(self, save):
        folder = self.folder / save / "checkpoint"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])

    def test_every_mode_takes_checkpoints_and_ends_with_the_model_that_it_has_without(self):
        self.make_job(files=2)
        for mode in ("sync", "async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", "-o", "runner.half_async_merge=3")
            log = self.launch(mode, *args, *steps(9))
            self.assertGreater(log.count("checkpoint: cut"), 4, log)
            self.assertIn("epoch: 1 done", log)
            kept = self.checkpoints(mode)
            self.assertEqual(len(kept), 2, kept)
            for name in kept:
                out, _ = self.run_regatta("checkpoint", "verify", f"{mode}/checkpoint/{name}")
            if mode == "sync":
                self.launch("straight", *args)
                self.assertEqual(self.dump("straight"), self.dump("sync"))

    def test_several_threads_a_worker(self):
        self.make_job(files=2)
        for mode in ("sync", "async", "half_async"):
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", "-o", "runner.thread_num=2", *steps(7))
            self.assertGreater(log.count("checkpoint: cut"), 2, log)

    def test_the_checkpoint_of_a_step_is_the_model_of_a_job_that_ends_there(self):
        self.make_job(files=2, batch=10)
        self.launch("long", *SYNC, *steps(21), "-o", "runner.epochs=1")
        self.assertEqual(self.checkpoints("long"), ["0-42"])
        for path in (self.folder / "train").iterdir():
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:210]))
        self.launch("short", *SYNC, "-o", "runner.epochs=1")
        self.assertEqual(self.dump("short/0"), self.dump("long/checkpoint/0-42"))

    def test_workers_whose_data_ends_early_come_to_the_meetings(self):
        self.make_job(files=2)
        part = self.folder / "train" / "part-0.txt"  # the first worker's, which decides and saves
        part.write_text("".join(part.read_text().splitlines(keepends=True)[:70]))
        for mode in ("sync", "async", "half_async", "geo"):
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", *steps(5))
            self.assertGreater(log.count("checkpoint: cut"), 8, log)
            self.assertIn("epoch: 1 done", log)
            self.assertEqual(len(self.checkpoints(mode)), 2)

    def test_minutes(self):
        self.make_job(files=2, copies=60)
        for mode in ("sync", "async"):
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", "-o", "runner.checkpoint_minutes=0.01", "-o",
                              "runner.epochs=4")
            self.assertGreater(log.count("checkpoint: cut"), 1, log)
            self.assertIn("epoch: 3 done", log)

    def kill_everything(self, save, *more, servers=2, after=1):
        """Starts a job, and kills all of its processes when it has so many checkpoints."""
        self.prepare(servers, 2, "-o", "runner.split_file_list=True", "-o", f"runner.model_save_path={save}", *more)
        processes = [self.server(i) for i in range(servers)] + [self.worker(i) for i in range(2)]
        end = time.monotonic() + PATIENCE
        while self.log("w0.log").count("checkpoint: cut") < after + 1 or not self.checkpoints(save):
            self.assertLess(time.monotonic(), end, self.log("w0.log")[-2000:])
            self.assertIsNone(processes[-1].poll(), self.log("w0.log")[-2000:])
            time.sleep(0.005)
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            process.wait()

    def test_a_killed_job_goes_on_in_the_middle_of_the_epoch_with_any_number_of_servers(self):
        self.make_job(files=2, copies=20)
        self.launch("straight", *SYNC)
        for servers in (2, 1):
            save = f"killed{servers}"
            self.kill_everything(save, *SYNC, *steps(10))
            log = self.launch(save, *SYNC, *steps(10), "--resume", servers=servers)
            self.assertRegex(log, r"resuming epoch 0 from .*checkpoint/0-\d+, \d+ batches of 2 workers into it")
            self.assertEqual(self.dump("straight"), self.dump(save))
            said = re.findall(r"(?m)^.*epoch: 0 done.*auc: *([0-9.]+)", log)
            straight = (self.folder / "log_straight" / "workerlog.0").read_text()
            self.assertEqual(said, re.findall(r"(?m)^.*epoch: 0 done.*auc: *([0-9.]+)", straight))

    def test_the_other_modes_go_on_too(self):
        self.make_job(files=2, copies=20)
        for mode in ("async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", *steps(10))
            self.kill_everything(mode, *args)
            log = self.launch(mode, *args, "--resume")
            self.assertIn("resuming epoch 0", log)
            self.assertIn("epoch: 1 done", log)

    def test_another_number_of_workers_is_refused(self):
        self.make_job(files=2, copies=20)
        self.kill_everything("killed", *SYNC, *steps(10))
        log = self.launch("killed", *SYNC, "--resume", workers=1, code=1)
        self.assertIn("was saved by 2 workers in the middle of epoch 0", log)
        self.assertIn("--worker_num=2", log)
        _, err = self.run_regatta("train", "-m", "config.yaml", "-o", "runner.model_save_path=killed", "--resume", code=1)
        self.assertIn("here is one process without servers", err)

    def test_a_crash_at_any_point_of_a_cut_leaves_the_checkpoint_before(self):
        self.make_job(files=2)
        self.launch("straight", *SYNC)
        want = self.dump("straight")
        points = ("checkpoint.met=crash@2", "checkpoint.begun=crash@2", "save.data=crash@2", "save.manifest=crash@2",
                  "save.switch=crash@2", "save.current=crash@2", "cut.begin=crash@2", "cut.read=crash@900")
        for point in points:
            save = point.partition("=")[0]
            self.launch(save, *SYNC, *steps(9), code=137, failpoints=point, servers=1)
            log = self.launch(save, *SYNC, *steps(9), "--resume", servers=1)
            self.assertIn("resuming epoch 0 from", log, point)
            self.assertEqual(self.dump(save), want, point)

    def test_a_server_that_is_killed_while_it_is_read_costs_a_checkpoint_and_nothing_else(self):
        self.make_job(files=2)
        self.launch("straight", *SYNC)
        for point in ("cut.begin=crash@2", "cut.read=crash@900"):
            save = point.partition("=")[0]
            log = self.launch(save, *SYNC, *steps(9), failpoints=point, restarts=100)
            self.assertEqual(self.dump("straight"), self.dump(save))
            if point.startswith("cut.read"):
                self.assertIn("checkpoint skipped, training goes on: ", log)

    def test_a_stopped_job_goes_on_where_it_was(self):
        self.make_job(files=2, copies=20)
        for mode in ("sync", "async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", "-o", "runner.split_file_list=True",
                    "-o", f"runner.model_save_path={mode}")
            self.prepare(1, 2, *args)
            server, workers = self.server(0), [self.worker(0), self.worker(1)]
            self.await_line("w0.log", "batch_id: 20", workers[0])
            workers[1].send_signal(signal.SIGTERM)
            self.ends(workers[1], 143, "w1.log", 30)
            self.ends(workers[0], 1, "w0.log", 30)
            self.ends(server, 0, "s0.log", 20)
            self.assertRegex(self.log("w0.log"), r"stopped in epoch \d, \d+ batches of 2 workers into it; saved")
            log = self.launch(mode, *args, "--resume")
            self.assertRegex(log, r"resuming epoch \d from .*batches of 2 workers into it")
            self.assertIn("epoch: 1 done", log)


if __name__ == "__main__":
    main()
