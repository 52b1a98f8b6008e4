"""Nets that the zoo does not have, against plain PyTorch: lookups that share a table, a sequence of rows with offsets, two
labels, and a regression."""

import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import numpy as np
import torch

import parity
import reference

NETS = pathlib.Path(parity.REGATTA).parents[1] / "tests/parity_nets"
BATCH, RATE = 8, 0.5


def lines(count, seed):
    """Slots 1 … 4 with none to three of 30 ids, the same in all of them; now and then one twice. Three labels."""
    rng = random.Random(seed)
    for _ in range(count):
        words = [f"click:{int(rng.random() < 0.4)}", f"price:{rng.uniform(-8, 12):.4f}", f"buy:{int(rng.random() < 0.3)}"]
        for slot in range(1, 5):
            words += [f"{slot}:{rng.randrange(30)}" for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        yield " ".join(words)


def labels(samples, name):
    return torch.tensor([s.floats(name)[0] for s in samples], dtype=torch.double)


class NetCase(unittest.TestCase):
    """A subclass says which slots each table sees, and computes the logits of a batch of samples from the weights."""

    net = None
    tables = {}  # name → (dim, slots)
    dense = {"bias": (1,)}

    def logit(self, samples, rows, w):
        """`rows(table, sample, slot)` gives the weights of a bag's ids: [ids, dim]."""
        raise NotImplementedError

    def loss(self, samples, rows, w):
        """The loss of each sample."""
        return reference.cross_entropy(self.logit(samples, rows, w), labels(samples, "click"))

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="parity-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.data = self.dir / "data.txt"
        self.data.write_text("\n".join(lines(83, seed=3)) + "\n")
        self.samples = reference.read_samples(self.data)

    def train(self, save, *init):
        done = subprocess.run([NETS, self.net, self.data, self.dir / save, *init], capture_output=True, text=True,
                              timeout=120, env=parity.ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.printed = done.stdout
        return [float(loss) for loss in re.findall(r"batch_id: .* loss: ([0-9.]+)", done.stdout)]

    def export(self, save):
        parity.regatta("checkpoint", "export", self.dir / save, self.dir / f"{save}.npz")
        with np.load(self.dir / f"{save}.npz") as file:
            return {name: file[name] for name in file.files}

    def ids(self, table):
        return sorted({i for s in self.samples for slot in self.tables[table][1] for i in s.ids(slot)})

    def start(self):
        """Random weights for all ids, as a save named start."""
        self.train("like")
        like = self.export("like")
        rng = np.random.default_rng(7)
        weights, arrays = {}, {}
        for table, (dim, _) in self.tables.items():
            ids = self.ids(table)
            np.testing.assert_array_equal(like[table + ".keys"], ids, "a table holds the ids of its own slots")
            weights[table] = arrays[table + ".w"] = rng.normal(0, 0.5, (len(ids), dim)).astype(np.float32)
            arrays[table + ".keys"] = np.array(ids, np.uint64)
        for name, shape in self.dense.items():
            weights[name] = arrays["dense." + name] = rng.normal(0, 0.5, shape).astype(np.float32)
        np.savez(self.dir / "start.npz", **arrays)
        parity.regatta("checkpoint", "import", self.dir / "start.npz", "--like", self.dir / "like", "--out",
                       self.dir / "start")
        return weights

    def reference(self, weights):
        """The same epoch in PyTorch: plain gradient descent on the mean loss of each batch."""
        w = {name: torch.tensor(value, dtype=torch.double, requires_grad=True) for name, value in weights.items()}
        row_of = {table: {i: row for row, i in enumerate(self.ids(table))} for table in self.tables}

        def rows(table, sample, slot):
            return w[table][[row_of[table][i] for i in sample.ids(slot)]]

        losses = []
        for first in range(0, len(self.samples), BATCH):
            samples = self.samples[first : first + BATCH]
            loss = self.loss(samples, rows, w).mean()
            losses.append(loss.item())
            grads = torch.autograd.grad(loss, list(w.values()))
            with torch.no_grad():
                for value, grad in zip(w.values(), grads):
                    value -= RATE * grad
        return losses, {name: value.detach().numpy() for name, value in w.items()}


class NetTests:
    def test_an_epoch_of_gradient_descent(self):
        before = self.start()
        losses = self.train("trained", self.dir / "start")
        got = self.export("trained")
        want_losses, want = self.reference(before)
        np.testing.assert_allclose(losses, want_losses, atol=1e-5)
        for name, w in want.items():
            have = got[name + ".w"] if name in self.tables else got["dense." + name]
            self.assertGreater(np.max(np.abs(w - before[name])), 1e-2, f"{name} hardly moves")
            np.testing.assert_allclose(have, w, atol=1e-5, err_msg=name)
        self.check_report()

    def check_report(self):
        """What the last line says of the epoch, against what the reference saw in it."""

    def reported(self, figure):
        return float(re.search(r"epoch: 0 done.*[ ,]" + figure + r": ([0-9.]+)", self.printed)[1])


class TwoLookups(NetTests, NetCase):
    """(1, 2 summed) · (3, 2 averaged) + the sum of (4, 1 divided by √n)."""

    net = "two_lookups"
    tables = {"item": (4, ["1", "2", "3"]), "other": (2, ["4", "1"])}

    def logit(self, samples, rows, w):
        out = []
        for s in samples:
            left = torch.cat([rows("item", s, slot).sum(0) for slot in ("1", "2")])
            right = torch.cat([rows("item", s, slot).sum(0) / max(len(s.ids(slot)), 1) for slot in ("3", "2")])
            other = sum(rows("other", s, slot).sum() / max(len(s.ids(slot)), 1) ** 0.5 for slot in ("4", "1"))
            out.append((left * right).sum() + other)
        return torch.stack(out) + w["bias"]


class Sequence(NetTests, NetCase):
    """An item times the mean of a history, in one table."""

    net = "sequence"
    tables = {"item": (4, ["1", "2"])}

    def logit(self, samples, rows, w):
        dots = [rows("item", s, "1").sum(0) @ (rows("item", s, "2").sum(0) / max(len(s.ids("2")), 1)) for s in samples]
        return torch.stack(dots) + w["bias"]


class TwoLabels(NetTests, NetCase):
    """A click from (1, 2 summed), and a purchase from (3 averaged) and the click's logit, at half the weight."""

    net = "two_labels"
    tables = {"item": (3, ["1", "2"]), "other": (2, ["3"])}
    dense = {"click.w": (6, 1), "buy.w": (2, 1), "bias": (2,)}

    def setUp(self):
        super().setUp()
        self.seen = {"click": [], "buy": []}

    def loss(self, samples, rows, w):
        items = torch.stack([torch.cat([rows("item", s, slot).sum(0) for slot in ("1", "2")]) for s in samples])
        others = torch.stack([rows("other", s, "3").sum(0) / max(len(s.ids("3")), 1) for s in samples])
        click = items @ w["click.w"][:, 0] + w["bias"][0]
        buy = others @ w["buy.w"][:, 0] + click + w["bias"][1]
        self.seen["click"] += torch.sigmoid(click).tolist()
        self.seen["buy"] += torch.sigmoid(buy).tolist()
        return reference.cross_entropy(click, labels(samples, "click")) + 0.5 * reference.cross_entropy(
            buy, labels(samples, "buy"))

    def check_report(self):
        for figure, label in (("click_auc", "click"), ("purchase_auc", "buy")):
            want = reference.exact_auc(np.array(self.seen[label]), labels(self.samples, label).numpy())
            self.assertAlmostEqual(self.reported(figure), want, delta=parity.AUC_TOLERANCE)
        self.assertNotEqual(self.reported("click_auc"), self.reported("purchase_auc"))


class Regression(NetTests, NetCase):
    """A price, linear in (1, 2 summed): a twentieth of the squared error."""

    net = "regression"
    tables = {"item": (3, ["1", "2"])}
    dense = {"w": (6, 1), "bias": (1,)}

    def setUp(self):
        super().setUp()
        self.errors = []

    def loss(self, samples, rows, w):
        items = torch.stack([torch.cat([rows("item", s, slot).sum(0) for slot in ("1", "2")]) for s in samples])
        errors = items @ w["w"][:, 0] + w["bias"] - labels(samples, "price")
        self.errors += errors.tolist()
        return errors**2 / 20

    def check_report(self):
        errors = np.array(self.errors)
        self.assertAlmostEqual(self.reported("mse"), np.mean(errors**2), delta=1e-3)
        self.assertAlmostEqual(self.reported("mae"), np.mean(np.abs(errors)), delta=1e-4)
        self.assertAlmostEqual(self.reported("rmse"), np.mean(errors**2) ** 0.5, delta=1e-4)
        self.assertNotIn("auc", self.printed)


if __name__ == "__main__":
    unittest.main()
