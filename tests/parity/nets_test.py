"""Nets that the zoo does not have, against plain PyTorch: lookups that share a table, and a sequence of rows with offsets."""

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
    """Slots 1 … 4 with none to three of 30 ids, the same in all of them; now and then one twice."""
    rng = random.Random(seed)
    for _ in range(count):
        words = [f"click:{int(rng.random() < 0.4)}"]
        for slot in range(1, 5):
            words += [f"{slot}:{rng.randrange(30)}" for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        yield " ".join(words)


class NetCase(unittest.TestCase):
    """A subclass says which slots each table sees, and computes the logits of a batch of samples from the weights."""

    net = None
    tables = {}  # name → (dim, slots)
    dense = {"bias": (1,)}

    def logit(self, samples, rows, w):
        """`rows(table, sample, slot)` gives the weights of a bag's ids: [ids, dim]."""
        raise NotImplementedError

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
            labels = torch.tensor([s.floats("click")[0] for s in samples], dtype=torch.double)
            loss = reference.cross_entropy(self.logit(samples, rows, w), labels).mean()
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


if __name__ == "__main__":
    unittest.main()
