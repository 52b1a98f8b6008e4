"""Tables under PyTorch modules, against plain PyTorch on the same data from the same values."""
import unittest

from script import ScriptTest

# Trains plain PyTorch and ours, and prints both losses of every step.
HEAD = """
import torch, torch.nn.functional as F
import regattarec.torch as rt
torch.set_num_threads(1)
STEPS, B, IDS, DIM = 200, 16, 50, 4

def batches():
    g = torch.Generator().manual_seed(7)
    for _ in range(STEPS):
        counts = torch.randint(0, 5, (B,), generator=g)
        counts[0] += 1
        ids = torch.randint(0, IDS, (int(counts.sum()),), generator=g)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)[:-1]])
        yield ids, offsets, torch.rand(ids.numel(), generator=g), torch.randint(0, 2, (B,), generator=g).float()

def net(width=DIM):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(width, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))

def table(weight=None, **kw):
    e = torch.nn.EmbeddingBag(IDS, DIM, **kw)
    torch.nn.init.constant_(e.weight, 0.1)
    return e

class Both:
    def __init__(self, *optimizers): self.all = optimizers
    def zero_grad(self): [o.zero_grad() for o in self.all]
    def step(self): [o.step() for o in self.all]

def train(emb, opt, mlp, look=lambda emb, ids, offsets, w: emb(ids, offsets)):
    losses = []
    for ids, offsets, w, y in batches():
        loss = F.binary_cross_entropy_with_logits(mlp(look(emb, ids, offsets, w)).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses

SAME = dict(init=rt.Constant(0.1))
"""
TAIL = """
for a, b in zip(theirs, ours):
    print(a, b)
"""


class TorchParityTest(ScriptTest):
    def check(self, script, steps=200):
        pairs = [tuple(map(float, line.split())) for line in self.run_script(HEAD + script + TAIL).splitlines()]
        self.assertEqual(len(pairs), steps)
        self.assertLess(max(abs(a - b) for a, b in pairs), 1e-5)
        self.assertGreater(max(abs(a - pairs[0][0]) for a, _ in pairs), 0.01)  # it learns

    def test_sgd_and_means(self):
        self.check("""
e, n = table(mode="mean"), net()
theirs = train(e, Both(torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.5)), n)
e, n = rt.EmbeddingBag(None, DIM, mode="mean", rule=rt.SGD(lr=0.5), **SAME), net()
ours = train(e, rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), e), n)
""")

    def test_adagrad_and_sums(self):
        self.check("""
e, n = table(mode="sum"), net()
theirs = train(e, Both(torch.optim.Adam(n.parameters(), lr=0.01), torch.optim.Adagrad(e.parameters(), lr=0.1)), n)
e, n = rt.EmbeddingBag(IDS, DIM, mode="sum", rule=rt.Adagrad(lr=0.1), **SAME), net()
ours = train(e, rt.wrap(torch.optim.Adam(n.parameters(), lr=0.01), e), n)
""")

    def test_momentum_of_rows_that_every_step_touches(self):
        self.check("""
def look(emb, ids, offsets, w):
    return emb(torch.arange(IDS).repeat(B, 1))
e, n = table(mode="sum"), net()
theirs = train(e, Both(torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.01, momentum=0.8)), n, look)
e, n = rt.EmbeddingBag(IDS, DIM, mode="sum", rule=rt.Momentum(lr=0.01, momentum=0.8), **SAME), net()
ours = train(e, rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), e), n, look)
""")

    def test_weights_of_samples_have_gradients(self):
        self.check("""
def look(emb, ids, offsets, w):
    return emb(ids, offsets, per_sample_weights=w * scale)
scale = torch.nn.Parameter(torch.ones(()))
e, n = table(mode="sum"), net()
theirs = train(e, torch.optim.SGD([*n.parameters(), scale, *e.parameters()], lr=0.1), n, look)
moved = float(scale)
assert abs(moved - 1) > 1e-3
scale = torch.nn.Parameter(torch.ones(()))
e, n = rt.EmbeddingBag(None, DIM, mode="sum", rule=rt.SGD(lr=0.1), **SAME), net()
ours = train(e, rt.wrap(torch.optim.SGD([*n.parameters(), scale], lr=0.1), e), n, look)
assert abs(moved - float(scale)) < 1e-5, (moved, float(scale))
""")

    def test_mixed_precision(self):
        self.check("""
scales = hasattr(torch.amp, "GradScaler")        # from PyTorch 2.3 on there is one for CPUs
def train(emb, optimizers, mlp):
    losses, scaler = [], torch.amp.GradScaler("cpu", init_scale=1024.0) if scales else None
    for k, (ids, offsets, w, y) in enumerate(batches()):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = mlp(emb(ids, offsets)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits.float(), y)
        losses.append(loss.item())
        for o in optimizers: o.zero_grad()
        if not scales:
            loss.backward()
            for o in optimizers: o.step()
            continue
        scaler.scale(loss * (float("inf") if k == 50 else 1)).backward()    # a step that is left out
        for o in optimizers: scaler.step(o)
        scaler.update()
    return losses
e, n = table(mode="sum"), net()
theirs = train(e, [torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.1)], n)
e, n = rt.EmbeddingBag(None, DIM, mode="sum", rule=rt.SGD(lr=0.1), **SAME), net()
ours = train(e, [rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), e)], n)
""")

    def test_padding(self):
        self.check("""
e, n = table(mode="mean", padding_idx=3), net()
theirs = train(e, Both(torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.5)), n)
e, n = rt.EmbeddingBag(IDS, DIM, mode="mean", padding_idx=3, rule=rt.SGD(lr=0.5), **SAME), net()
ours = train(e, rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), e), n)
""")

    def test_an_embedding_with_padding_and_shared_with_a_bag(self):
        self.check("""
def look(emb, ids, offsets, w):
    first = emb[0](torch.stack([ids[:B], (ids[:B] * 7) % IDS], 1))  # [B, 2, DIM], and some of it padding
    return torch.cat([first.flatten(1), emb[1](ids, offsets)], 1)
def shared(e):
    bag = torch.nn.EmbeddingBag(IDS, DIM, mode="sum")
    bag.weight = e.weight
    return e, bag
def make():
    e = torch.nn.Embedding(IDS, DIM, padding_idx=3)
    torch.nn.init.constant_(e.weight, 0.1)
    e.weight.data[3] = 0
    return e
def batches(inner=batches):
    for ids, offsets, w, y in inner():
        if ids.numel() >= B:
            keep = ids != 3  # the bag does not know of padding
            ids = torch.where(keep, ids, torch.full_like(ids, 4))
            ids[0] = 4
            yield ids, offsets, w, y
        else:
            yield torch.arange(4, 4 + B), torch.arange(B), torch.ones(B), y
e, n = make(), net(3 * DIM)
theirs = train(shared(e), Both(torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.5)), n, look)
how = dict(table="shared", rule=rt.SGD(lr=0.5), **SAME)
pair, n = (rt.Embedding(IDS, DIM, padding_idx=3, **how), rt.EmbeddingBag(IDS, DIM, mode="sum", **how)), net(3 * DIM)
ours = train(pair, rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), *pair), n, look)
""")

    def test_gradient_accumulation_and_a_schedule(self):
        self.check("""
def train(emb, opt, schedulers, mlp):
    losses = []
    for k, (ids, offsets, w, y) in enumerate(batches()):
        loss = F.binary_cross_entropy_with_logits(mlp(emb(ids, offsets)).squeeze(1), y) / 2
        loss.backward()
        if k % 2 == 1:
            opt.step()
            opt.zero_grad()
            [s.step() for s in schedulers]
        losses.append(loss.item())
    return losses
decay = lambda step: 0.97 ** step
e, n = table(mode="sum"), net()
a, b = torch.optim.SGD(n.parameters(), lr=0.1), torch.optim.SGD(e.parameters(), lr=0.5)
theirs = train(e, Both(a, b), [torch.optim.lr_scheduler.LambdaLR(a, decay), torch.optim.lr_scheduler.LambdaLR(b, decay)], n)
e, n = rt.EmbeddingBag(IDS, DIM, mode="sum", rule=rt.SGD(lr=0.5), **SAME), net()
o = rt.wrap(torch.optim.SGD(n.parameters(), lr=0.1), e)
ours = train(e, o, [torch.optim.lr_scheduler.LambdaLR(o, decay)], n)
""")

    def test_the_norm_of_a_step_of_several_lookups(self):
        self.check("""
def look(emb, ids, offsets, w):                  # a key has gradients of up to six lookups: two batches of three
    return emb(ids, offsets) + emb(ids.flip(0), offsets) + emb(torch.arange(B) % 5, torch.arange(B))
norms = []
def train(emb, opt, mlp, parameters):
    losses = []
    for k, (ids, offsets, w, y) in enumerate(batches()):
        loss = F.binary_cross_entropy_with_logits(mlp(look(emb, ids, offsets, w)).squeeze(1), y) / 2
        loss.backward()
        if k % 2 == 1:
            norms.append(float(torch.nn.utils.clip_grad_norm_(parameters(), 0.05)))
            opt.step()
            opt.zero_grad()
        losses.append(loss.item())
    return losses
e, n = table(mode="sum"), net()
theirs = train(e, Both(torch.optim.SGD(n.parameters(), lr=0.5), torch.optim.SGD(e.parameters(), lr=0.5)), n,
               lambda: [*n.parameters(), *e.parameters()])
e, n = rt.EmbeddingBag(None, DIM, mode="sum", rule=rt.SGD(lr=0.5), **SAME), net()
o = rt.wrap(torch.optim.SGD(n.parameters(), lr=0.5), e)
ours = train(e, o, n, lambda: [p for group in o.param_groups for p in group["params"]])
half = len(norms) // 2
assert sum(norm > 0.05 for norm in norms[:half]) > half / 2, "little was clipped"
assert max(abs(a - b) for a, b in zip(norms[:half], norms[half:])) < 1e-5
""")

    def test_dense_parameters_with_the_tables(self):
        for optimizer in ("SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9, nesterov=True)", "SGD(p, lr=0.1, weight_decay=0.01)",
                          "Adam(p, lr=0.01)", "Adagrad(p, lr=0.05)"):
            with self.subTest(optimizer):
                self.check(f"""
make = lambda p: torch.optim.{optimizer}
e, n = table(mode="sum"), net()
theirs = train(e, Both(make(n.parameters()), torch.optim.SGD(e.parameters(), lr=0.1)), n)
e, n = rt.EmbeddingBag(IDS, DIM, mode="sum", rule=rt.SGD(lr=0.1), **SAME), net()
ours = train(e, rt.wrap(make(n.parameters()), e, dense="server"), n)
""")


if __name__ == "__main__":
    unittest.main()
