"""Checkpoints of a whole job while it trains: every mode takes them, and they are of one moment."""
from checkpoint_job import SLOW, SYNC, CheckpointJob, main, steps


class CheckpointTest(CheckpointJob):
    def test_every_mode_takes_checkpoints_and_ends_with_the_model_that_it_has_without(self):
        self.make_job(files=2)
        for mode in ("sync", "async", "half_async", "geo"):
            args = ("-o", f"runner.sync_mode={mode}", "-o", "runner.geo_step=5", "-o", "runner.half_async_merge=3")
            full = mode == "sync"  # the disk, when its second one is written
            log = self.launch(mode, *args, *steps(15), failpoints="file.write=enospc@7" if full else "")
            self.assertGreater(log.count("checkpoint: snapshot"), 2, log)
            self.assertEqual("checkpoint skipped, training goes on: " in log, full, log)
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
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", "-o", "runner.thread_num=2", *steps(12))
            self.assertGreater(log.count("checkpoint: snapshot"), 2, log)

    def test_the_checkpoint_of_a_step_is_the_model_of_a_job_that_ends_there(self):
        self.make_job(files=2, batch=10)
        self.launch("long", *SYNC, *steps(21), "-o", "runner.epochs=1")
        self.assertEqual(self.checkpoints("long"), ["0-42"])
        for path in (self.folder / "train").iterdir():
            path.write_text("".join(path.read_text().splitlines(keepends=True)[:210]))
        self.launch("short", *SYNC, "-o", "runner.epochs=1")
        self.assertEqual(self.dump("short/0"), self.dump("long/checkpoint/0-42"))

    def test_workers_whose_data_ends_early_come_to_the_barriers(self):
        self.make_job(files=2)
        part = self.folder / "train" / "part-0.txt"  # the first worker's, which decides and saves
        part.write_text("".join(part.read_text().splitlines(keepends=True)[:70]))
        for mode in ("sync", "async", "half_async", "geo"):
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", *steps(10))
            self.assertGreater(log.count("checkpoint: snapshot"), 4, log)
            self.assertIn("epoch: 1 done", log)
            self.assertEqual(len(self.checkpoints(mode)), 2)

    def test_minutes(self):
        self.make_job(files=2, copies=10)
        for mode in ("sync", "async"):
            log = self.launch(mode, "-o", f"runner.sync_mode={mode}", "-o", "runner.checkpoint_minutes=0.01",
                              failpoints=SLOW["REGATTA_FAILPOINTS"])
            self.assertGreater(log.count("checkpoint: snapshot"), 1, log)
            self.assertIn("epoch: 1 done", log)

    def test_a_server_that_is_killed_while_it_is_read_costs_a_checkpoint_and_nothing_else(self):
        self.make_job(files=2)
        self.launch("straight", *SYNC)
        for point in ("snapshot.begin=crash@2", "snapshot.read=crash@900"):
            save = point.partition("=")[0]
            log = self.launch(save, *SYNC, *steps(9), failpoints=point, restarts=100)
            self.assertEqual(self.dump("straight"), self.dump(save))
            if point.startswith("snapshot.read"):
                self.assertIn("checkpoint skipped, training goes on: ", log)


if __name__ == "__main__":
    main()
