"""Workers in sync: the same as one process that adds up the same micro-batches in the order of ranks, to the bit, and
as one process with one large batch, to rounding."""

import pathlib
import tempfile
import unittest

import numpy as np

import parity

WORKERS, BATCH, STEPS = 3, 8, 10
RELATIVE = 1e-5


class Sync(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="parity-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        parts = [list(parity.ragged_lines(BATCH * STEPS, seed=rank)) for rank in range(WORKERS)]
        (cls.dir / "parts").mkdir()
        for rank, lines in enumerate(parts):
            (cls.dir / "parts" / f"part-{rank}.txt").write_text("\n".join(lines) + "\n")
        # Step after step: worker 0's batch, worker 1's, worker 2's.
        dealt = [line for step in range(STEPS) for part in parts for line in part[step * BATCH : (step + 1) * BATCH]]
        (cls.dir / "dealt.txt").write_text("\n".join(dealt) + "\n")

    def train(self, name, data, batch, *options, launch=()):
        given = [f"runner.train_data_dir={data}", "runner.test_data_dir=", f"runner.train_batch_size={batch}",
                 f"runner.model_save_path={self.dir / name}", "runner.epochs=2", "hyper_parameters.fc_sizes=[37,19]",
                 "hyper_parameters.optimizer.class=Adagrad", "hyper_parameters.optimizer.learning_rate=0.1", *options]
        words = [word for option in given for word in ("-o", option)]
        parity.regatta(*launch, "train", "-m", parity.ROOT / "models/rank/dnn/config.yaml", *words)
        return self.dir / name / "1"

    def launch(self, name, data, servers, workers, *options):
        return self.train(name, data, BATCH, "runner.sync_mode=sync", *options,
                          launch=("launch", f"--server_num={servers}", f"--worker_num={workers}", "--log_dir",
                                  self.dir / f"{name}.log", "--"))

    def arrays(self, save):
        npz = save.with_suffix(".npz")
        parity.regatta("checkpoint", "export", save, npz)
        with np.load(npz) as file:
            return {name: file[name] for name in file.files}

    def test_workers_equal_one_that_adds_up(self):
        together = self.launch("workers", self.dir / "parts", 2, WORKERS, "runner.thread_num=1",
                               "runner.split_file_list=True")
        added = self.launch("threads", self.dir / "dealt.txt", 1, 1, f"runner.thread_num={WORKERS}")
        self.assertEqual(parity.regatta("checkpoint", "dump", together), parity.regatta("checkpoint", "dump", added))

    # By a rule that is linear in the gradient: one that divides by its size turns rounding into steps of full length.
    def test_workers_equal_one_large_batch(self):
        sgd = ("hyper_parameters.optimizer.class=SGD", "runner.thread_num=1")
        large = self.arrays(self.train("large", self.dir / "dealt.txt", BATCH * WORKERS, *sgd))
        small = self.arrays(self.launch("small", self.dir / "parts", 2, WORKERS, "runner.split_file_list=True", *sgd))
        self.assertEqual(sorted(small), sorted(large))
        for name, want in large.items():
            if want.dtype.kind != "f":
                np.testing.assert_array_equal(small[name], want, name)
                continue
            worst = float(np.max(np.abs(small[name] - want)) / np.max(np.abs(want)))
            self.assertLessEqual(worst, RELATIVE, f"{name} differs by {worst:.3g} of its largest")


if __name__ == "__main__":
    unittest.main()
