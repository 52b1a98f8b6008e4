"""Runs Regatta and the reference from the same weights over the same lines, and compares them.

A model's test is a subclass of ModelCase that says what the model's parameters are and how its loss is computed
(docs/howto/add-a-model.md). Regatta's gradients come out of one step of SGD with learning rate 1: the weights before
minus the weights after. REGATTA_BIN is the folder of the built programs."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import numpy as np

import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGATTA = str(pathlib.Path(os.environ.get("REGATTA_BIN", ROOT / "build/bin")) / "regatta")
GRADIENT_TOLERANCE = 1e-5  # also of losses and predictions from equal weights
TRAINED_TOLERANCE = 1e-4  # after 20 steps
AUC_TOLERANCE = 1e-3


def environment():
    """Names OpenBLAS its kernels, so that regatta-train need not start itself a second time to do that."""
    lines = re.findall(r"^flags.*", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    flags = set(lines[0].split()) if lines else set()
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return {"OPENBLAS_CORETYPE": "SkylakeX", **os.environ}
    if {"avx2", "fma"} <= flags:
        return {"OPENBLAS_CORETYPE": "Haswell", **os.environ}
    return dict(os.environ)


ENVIRONMENT = environment()


def regatta(*args):
    """Standard output of a command that must succeed."""
    command = [REGATTA, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    if done.returncode != 0:
        raise AssertionError(f"regatta {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
    return done.stdout


def reports(output, kind):
    return [r for r in map(json.loads, output.splitlines()) if r["report"] == kind]


def ragged_lines(count, seed):
    """Lines whose slots hold none, one or several of 500 ids, the same id twice too, and ids of other slots."""
    rng = random.Random(seed)
    for _ in range(count):
        words = [f"click:{int(rng.random() < 0.3)}"] + [f"dense_feature:{rng.random():.6f}" for _ in range(13)]
        for slot in range(1, 27):
            words += [f"{slot}:{rng.randrange(500)}" for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
        yield " ".join(words)


class ModelCase(unittest.TestCase):
    """A subclass sets the attributes below and defines loss() and predict(); it inherits the tests."""

    config = None  # the folder below models/, such as "rank/dnn"
    options = ()  # more -o key=value
    sample = ROOT / "tests/data/criteo_slots_80.txt"
    schema = reference.Schema()  # the fields of a line of it
    tables = {}  # name → dim
    dense = {}  # name → shape
    l2 = 0.0  # of rows that a step touches
    clip_by_norm = 0.0
    spread = 0.2  # deviation of the random weights

    def loss(self, batch, w):
        """The loss of every sample; `w` gives tables and dense parameters by name."""
        raise NotImplementedError

    def predict(self, batch, w):
        """The prediction for every sample."""
        raise NotImplementedError

    # What the tests are made of.

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="parity-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        cls.likes = {}  # rule options → a save of them
        cls.yaml = ROOT / "models" / cls.config / "config.yaml"

    def new_path(self, name):
        return self.dir / f"{len(list(self.dir.iterdir()))}-{name}"

    def run_verb(self, verb, data, options, *flags):
        given = [f"runner.train_data_dir={data}", f"runner.test_data_dir={data if verb == 'infer' else ''}"]
        given += ["runner.thread_num=1", "runner.print_interval=1", *self.options, *options]
        return regatta(verb, "-m", self.yaml, "--json", *flags, *(word for o in given for word in ("-o", o)))

    def like(self, options):
        """A save of Regatta's own, of the sample's ids. It gives the new ones their tables."""
        key = " ".join(options)
        if key not in self.likes:
            folder = self.new_path("like")
            given = [f"runner.model_save_path={folder}", "runner.train_batch_size=1024", "runner.epochs=1"]
            self.run_verb("train", self.sample, [*options, *given])
            keys, weights = self.export(folder)
            ids = self.schema.ids(reference.read_samples(self.sample))
            self.assertEqual({name: w.shape for name, w in weights.items()}, self.shapes(ids))
            for table in self.tables:
                np.testing.assert_array_equal(keys[table], ids)
            self.likes[key] = folder
        return self.likes[key]

    def shapes(self, ids):
        return {**{table: (len(ids), dim) for table, dim in self.tables.items()}, **self.dense}

    def start(self, data, options):
        """Makes a save of random weights for every id of `data`; returns its folder, the weights and id → row."""
        npz, folder = self.new_path("start.npz"), self.new_path("start")
        ids = self.schema.ids(reference.read_samples(data))
        rng = np.random.default_rng(7)
        weights = {n: rng.normal(0, self.spread, s).astype(np.float32) for n, s in self.shapes(ids).items()}
        arrays = {(n + ".w" if n in self.tables else "dense." + n): w for n, w in weights.items()}
        arrays.update({table + ".keys": np.array(ids, np.uint64) for table in self.tables})
        np.savez(npz, **arrays)
        regatta("checkpoint", "import", npz, "--like", self.like(options), "--out", folder)
        return folder, weights, {i: row for row, i in enumerate(ids)}

    def export(self, save):
        """(table → keys, name → weights) of a save."""
        npz = self.new_path("export.npz")
        regatta("checkpoint", "export", save, npz)
        with np.load(npz) as file:
            weights = {table: file[table + ".w"] for table in self.tables}
            for name in file.files:
                if name.startswith("dense.") and ".state" not in name:
                    weights[name[len("dense.") :]] = file[name]
            return {table: file[table + ".keys"] for table in self.tables}, weights

    def train(self, data, options, batch_size, epochs, sparse_rule, dense_rule):
        """Trains both from the same weights. Returns these, then the losses of every step and the weights of each."""
        init, before, row_of = self.start(data, options)
        out = self.new_path("trained")
        given = [f"runner.model_init_path={init}", f"runner.model_save_path={out}"]
        given += [f"runner.train_batch_size={batch_size}", f"runner.epochs={epochs}"]
        printed = self.run_verb("train", data, [*options, *given])
        ours = [r["loss"] for r in reports(printed, "interval")], self.export(out)[1]
        trainer = reference.Trainer(
            before, self.tables, self.loss, sparse_rule, dense_rule, l2=self.l2, clip_by_norm=self.clip_by_norm
        )
        samples = reference.read_samples(data)
        batches = [
            reference.Batch(samples[i : i + batch_size], self.schema, row_of)
            for i in range(0, len(samples), batch_size)
        ] * epochs
        losses = [trainer.step(number, batch) for number, batch in enumerate(batches)]
        return before, ours, (losses, trainer.weights)

    def assert_close(self, what, got, want, tolerance):
        self.assertEqual(np.shape(got), np.shape(want), what)
        worst = float(np.max(np.abs(np.asarray(got, np.float64) - want)))
        if os.environ.get("PARITY_VERBOSE"):
            print(f"{self.id().split('.', 1)[1]}: {what}: {worst:.2e}")
        self.assertLessEqual(worst, tolerance, f"{what} differs by {worst:.3g}")

    def assert_moves(self, name, before, after, tolerance):
        moved = float(np.max(np.abs(after - before)))
        self.assertGreater(moved, 10 * tolerance, f"{name} hardly moves: the comparison says nothing")

    def assert_trains_alike(self, data, options, sparse_rule, dense_rule):
        """20 steps: 75 lines by 8, twice."""
        before, ours, theirs = self.train(data, options, 8, 2, sparse_rule, dense_rule)
        self.assertEqual(len(theirs[0]), 20)
        self.assert_close("the first loss", ours[0][0], theirs[0][0], GRADIENT_TOLERANCE)
        self.assert_close("losses", ours[0], theirs[0], TRAINED_TOLERANCE)
        for name, want in theirs[1].items():
            self.assert_moves(name, before[name], want, TRAINED_TOLERANCE)
            self.assert_close(name, ours[1][name], want, TRAINED_TOLERANCE)

    def data(self, count, seed):
        """`count` lines of the sample, for models with a value for each id, or of ragged bags."""
        path = self.new_path("data.txt")
        lines = self.sample.read_text().splitlines()[:count] if self.schema.values else ragged_lines(count, seed)
        path.write_text("\n".join(lines) + "\n")
        return path

    # The tests of every model.

    def test_loss_and_gradients(self):
        """Of one batch: the sample, then ragged bags."""
        data = self.data(75, seed=1)
        data.write_text(self.sample.read_text() + data.read_text())
        options = ["hyper_parameters.optimizer.class=SGD", "hyper_parameters.optimizer.learning_rate=1"]
        sgd = lambda: reference.Rule(reference.sgd, 1.0)
        before, ours, theirs = self.train(data, options, 1024, 1, sgd, sgd)
        self.assert_close("loss", ours[0], theirs[0], GRADIENT_TOLERANCE)
        for name, w in before.items():
            self.assert_moves(name, w, theirs[1][name], GRADIENT_TOLERANCE)
            self.assert_close("gradient of " + name, w - ours[1][name], w - theirs[1][name], GRADIENT_TOLERANCE)

    def test_twenty_steps_of_adam(self):
        lr = 0.003
        options = ["hyper_parameters.optimizer.class=Adam", f"hyper_parameters.optimizer.learning_rate={lr}"]
        adam = lambda: reference.Rule(reference.adam, lr)
        self.assert_trains_alike(self.data(75, seed=2), options, adam, adam)

    def test_predictions_and_auc(self):
        options = ["hyper_parameters.optimizer.class=SGD", "hyper_parameters.optimizer.learning_rate=1"]
        save, weights, row_of = self.start(self.data(10, seed=3), options)
        data = self.data(90, seed=4)  # with ids that are not in the save
        predictions = self.new_path("predictions.txt")
        given = [f"runner.infer_load_path={save}", "runner.infer_start_epoch=0", "runner.infer_end_epoch=1"]
        printed = self.run_verb("infer", data, [*options, *given], "--predictions", predictions)
        got = np.loadtxt(predictions)
        batch = reference.Batch(reference.read_samples(data), self.schema, row_of)
        tensors = {n: reference.torch.tensor(w, dtype=reference.torch.double) for n, w in weights.items()}
        labels, want = batch.labels.numpy(), self.predict(batch, tensors).numpy()
        np.testing.assert_array_equal(got[:, 1], labels)
        self.assert_close("predictions", got[:, 0], want, GRADIENT_TOLERANCE)
        (report,) = reports(printed, "infer epoch")
        self.assert_close("auc", report["auc"], reference.exact_auc(want, labels), AUC_TOLERANCE)
        self.assert_close("loss", report["loss"], self.loss(batch, tensors).mean().item(), GRADIENT_TOLERANCE)


class LogitCase(ModelCase):
    """A model of one logit per sample with cross-entropy as its loss: a subclass defines logit()."""

    def logit(self, batch, w):
        raise NotImplementedError

    def loss(self, batch, w):
        return reference.cross_entropy(self.logit(batch, w), batch.labels)

    def predict(self, batch, w):
        return reference.torch.sigmoid(self.logit(batch, w))
