"""What the parity tests compare Regatta with: slot text, pooled lookups, losses and update rules in plain NumPy and
PyTorch, in double. Written from the formulas of docs/rules.md; nothing here is shared with the C++ and no optimizer
of torch is used."""

import numpy as np
import torch

torch.set_num_threads(1)


class Sample:
    """One line of slot text: `click:0 dense_feature:0.05 1:737395 2:42 …`; a repeated slot has several values."""

    def __init__(self, line):
        self.fields = {}
        for word in line.split():
            name, value = word.split(":")
            self.fields.setdefault(name, []).append(value)

    def floats(self, name):
        return [float(v) for v in self.fields.get(name, [])]

    def ids(self, name):
        return [int(v) for v in self.fields.get(name, [])]


def read_samples(path):
    with open(path) as lines:
        return [Sample(line) for line in lines if line.strip()]


class Schema:
    """The fields that a model reads of a line."""

    def __init__(self, slots=tuple(str(i) for i in range(1, 27)), label="click", dense="dense_feature", values=None):
        self.slots, self.label, self.dense, self.values = slots, label, dense, values

    def ids(self, samples):
        """All distinct ids, ascending."""
        return sorted({i for s in samples for slot in self.slots for i in s.ids(slot)})


class Batch:
    """Samples as tensors. `row_of` gives an id's row in the weight matrices; an id without a row pools as zeros."""

    def __init__(self, samples, schema, row_of):
        self.size, self.slots = len(samples), len(schema.slots)
        self.labels = torch.tensor([s.floats(schema.label)[0] for s in samples], dtype=torch.double)
        self.dense = torch.tensor([s.floats(schema.dense) for s in samples], dtype=torch.double)
        rows, bags, values = [], [], []
        self.counts = torch.zeros(self.size * self.slots, dtype=torch.double)  # ids of each bag, unknown ones too
        for n, sample in enumerate(samples):
            for k, slot in enumerate(schema.slots):
                ids = sample.ids(slot)
                self.counts[n * self.slots + k] = len(ids)
                weights = sample.floats(schema.values) if schema.values else [1.0] * len(ids)
                for i, weight in zip(ids, weights, strict=True):
                    if i in row_of:
                        rows.append(row_of[i]), bags.append(n * self.slots + k), values.append(weight)
        self.rows, self.bags = torch.tensor(rows), torch.tensor(bags)
        self.values = torch.tensor(values, dtype=torch.double)
        self.touched = np.unique(rows)

    def pooled(self, table, mean=False):
        """[samples, slots · dim]: the sum or mean of the ids' rows in each slot, slots side by side."""
        out = torch.zeros(self.size * self.slots, table.shape[1], dtype=torch.double)
        out = out.index_add(0, self.bags, table[self.rows] * self.values[:, None])
        if mean:
            out = out / torch.clamp(self.counts, min=1)[:, None]
        return out.reshape(self.size, -1)


def mlp(x, w, name, layers, last_relu=False):
    for i in range(layers):
        x = x @ w[f"{name}_{i}.w"] + w[f"{name}_{i}.b"]
        if i + 1 < layers or last_relu:
            x = torch.relu(x)
    return x


def cross_entropy(logit, label):
    """−y·log σ(z) − (1−y)·log(1 − σ(z)), in the form that does not overflow."""
    return torch.clamp(logit, min=0) - logit * label + torch.log1p(torch.exp(-torch.abs(logit)))


def exact_auc(scores, labels):
    """Share of (click, no click) pairs in the right order; a tie counts half."""
    positive, negative = scores[labels > 0.5], scores[labels <= 0.5]
    right = (positive[:, None] > negative[None, :]).sum() + 0.5 * (positive[:, None] == negative[None, :]).sum()
    return right / (len(positive) * len(negative))


# Rules. Each takes the learning rate, weights, mean gradient and state, and returns the new weights; state is a dict
# of arrays that starts as `zeros` says and is changed in place. `w` is [rows, dim]; a dense parameter is one row.


def sgd(lr, w, g, s, bound=0.0):
    w = w - lr * g
    return np.clip(w, -bound, bound) if bound > 0 else w


def adam(lr, w, g, s, beta1=0.9, beta2=0.999, epsilon=1e-8):
    t = s["t"] = s.get("t", np.zeros((len(w), 1))) + 1
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    return w - lr * (s["m"] / (1 - beta1**t)) / (np.sqrt(s["v"] / (1 - beta2**t)) + epsilon)


def shared_adam(lr, w, g, s, beta1=0.9, beta2=0.999, epsilon=1e-8):
    t = s["t"] = s.get("t", np.zeros((len(w), 1))) + 1
    m = beta1 * s.get("m", 0) + (1 - beta1) * g
    v = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    s["m"], s["v"] = m.mean(1, keepdims=True), v.mean(1, keepdims=True)
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)


def adagrad(lr, w, g, s, initial_g2sum=3.0):
    g2 = s.get("g2", 0)
    s["g2"] = g2 + (g * g).mean(1, keepdims=True)
    return w - lr * g * np.sqrt(initial_g2sum / (initial_g2sum + g2))


def std_adagrad(lr, w, g, s, initial_g2sum=3.0):
    g2 = s.get("g2", 0)
    s["g2"] = g2 + g * g
    return w - lr * g * np.sqrt(initial_g2sum / (initial_g2sum + g2))


def adagrad_v2(lr, w, g, s, epsilon=1e-6):
    s["g2"] = s.get("g2", 0) + g * g
    return w - lr * g / (np.sqrt(s["g2"]) + epsilon)


def momentum(lr, w, g, s, momentum=0.9, nesterov=False):
    s["v"] = momentum * s.get("v", 0) + g
    return w - lr * (g + momentum * s["v"] if nesterov else s["v"])


def rmsprop(lr, w, g, s, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
    s["r"] = rho * s.get("r", 0) + (1 - rho) * g * g
    variance = s["r"]
    if centered:
        s["a"] = rho * s.get("a", 0) + (1 - rho) * g
        variance = np.maximum(variance - s["a"] ** 2, 0)
    s["u"] = momentum * s.get("u", 0) + lr * g / np.sqrt(variance + epsilon)
    return w - s["u"]


def ftrl(lr, w, g, s, beta=1.0, lambda1=0.0, lambda2=0.0):
    n, z = s.get("n", np.zeros_like(w)), s.get("z", np.zeros_like(w))
    sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / lr
    s["z"], s["n"] = z + g - sigma * w, n + g * g
    z, n = s["z"], s["n"]
    return np.where(np.abs(z) <= lambda1, 0.0, -(z - np.sign(z) * lambda1) / ((beta + np.sqrt(n)) / lr + lambda2))


class Rule:
    """A rule with its settings and the state of all rows. Rows that a step does not touch keep weights and state."""

    def __init__(self, formula, lr, **settings):
        self.formula, self.settings = formula, settings
        self.rate = lr if callable(lr) else lambda step: lr
        self.state = {}

    def update(self, step, w, g, touched):
        state = {name: value[touched] for name, value in self.state.items()}
        w = w.copy()
        w[touched] = self.formula(self.rate(step), w[touched], g[touched], state, **self.settings)
        for name, value in state.items():
            self.state.setdefault(name, np.zeros((len(w), value.shape[1])))[touched] = value
        return w


class Trainer:
    """Weights (name → array) and the steps on them. Sparse tables are the names in `tables`."""

    def __init__(self, weights, tables, loss, sparse_rule, dense_rule, l2=0.0, clip_by_norm=0.0):
        self.weights = {name: value.astype(np.float64) for name, value in weights.items()}
        self.tables, self.loss, self.l2, self.clip_by_norm = tables, loss, l2, clip_by_norm
        self.rules = {name: (sparse_rule if name in tables else dense_rule)() for name in weights}

    def gradients(self, batch):
        """The mean loss and the gradient of it, name → array."""
        leaves = {name: torch.tensor(value, requires_grad=True) for name, value in self.weights.items()}
        loss = self.loss(batch, leaves)
        assert loss.shape == (batch.size,)
        loss.mean().backward()
        grads = {n: np.zeros(p.shape) if p.grad is None else p.grad.numpy() for n, p in leaves.items()}
        for name in self.tables:
            grads[name][batch.touched] += self.l2 * self.weights[name][batch.touched]
        if self.clip_by_norm > 0:
            norm = np.sqrt(sum((g * g).sum() for n, g in grads.items() if n not in self.tables))
            for name in grads.keys() - set(self.tables):
                grads[name] *= min(1.0, self.clip_by_norm / norm)
        return loss.mean().item(), grads

    def step(self, number, batch):
        loss, grads = self.gradients(batch)
        for name, w in self.weights.items():
            rows = batch.touched if name in self.tables else [0]
            flat = w.reshape(len(w) if name in self.tables else 1, -1)
            new = self.rules[name].update(number, flat, grads[name].reshape(flat.shape), rows)
            self.weights[name] = new.reshape(w.shape)
        return loss
