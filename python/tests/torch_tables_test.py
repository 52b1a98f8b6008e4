"""Lookups that are announced, rows that are frozen, filled and taken out."""
import unittest

from script import ScriptTest

AHEAD = """
import sys, torch, regattarec.torch as rt
from regattarec import job
announces, mode = sys.argv[1] == "ahead", sys.argv[2]
rt.init(mode=mode)
how = dict(rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.1))
users = rt.Embedding(None, 4, table="users", **how)
items = rt.EmbeddingBag(None, 4, mode="sum", table="items", **how)
again = rt.Embedding(None, 4, table="items", **how)
torch.manual_seed(0)
net = torch.nn.Linear(12, 1)
o = rt.wrap(torch.optim.SGD(net.parameters(), lr=0.1), users, items, again, dense=sys.argv[3])
class Spy:
    def __init__(self, steps): self.steps, self.pulls, self.asked = steps, 0, 0
    def __getattr__(self, name): return getattr(self.steps, name)
    def pull(self, lookups): self.pulls += 1; self.steps.pull(lookups)
    def prefetch(self, *a): self.asked += 1; self.steps.prefetch(*a)
j = job.current(); j.join(); j.start(0); spy = j.steps = Spy(j.steps)
g = torch.Generator().manual_seed(1)
batches = [(torch.randint(-20, 20, (8,), generator=g), torch.randint(0, 30, (8, 3), generator=g)) for _ in range(20)]
def announce(k):
    if announces and k < len(batches):
        u, i = batches[k]
        rt.prefetch((users, u), (items, i), (again, u))
for k, (u, i) in enumerate(batches):
    if k == 0:
        announce(0)
    x = torch.cat([users(u), items(i), again(u)], 1)
    announce(k + 1)
    loss = torch.nn.functional.softplus(-net(x)).mean()
    o.zero_grad(); loss.backward(); o.step()
pulls = spy.pulls
for e in (users, items, again): e.eval()
with torch.no_grad():
    print("rows", users(torch.arange(-20, 20)).tolist(), again(torch.arange(30)).tolist(), net.weight.tolist())
print("pulls", pulls, "asked", spy.asked)
"""


class TorchTablesTest(ScriptTest):
    def rows(self, out):
        return next(line for line in out.splitlines() if line.startswith("rows"))

    def ahead(self, announces, mode, dense="local", launch=()):
        out = self.run_script(AHEAD, announces, mode, dense, launch=launch)
        return self.log("workerlog.0") if launch else out

    def test_announced_lookups_are_pulled_together_and_change_nothing(self):
        plain = self.ahead("plain", "sync")
        self.assertIn("pulls 60 asked 0", plain)
        told = self.ahead("ahead", "sync")
        self.assertIn("pulls 20 asked 0", told)
        self.assertEqual(self.rows(told), self.rows(plain))

    def test_announced_lookups_on_servers(self):
        servers = ("--server_num=2", "--worker_num=1")
        for dense, plain_pulls in (("local", 60), ("server", 80)):
            with self.subTest(dense):
                plain = self.ahead("plain", "sync", dense, servers)
                told = self.ahead("ahead", "sync", dense, servers)
                self.assertEqual(self.rows(told), self.rows(plain))
                self.assertIn(f"pulls {plain_pulls} asked 0", plain)
        fetched = self.ahead("ahead", "async", "local", servers)
        self.assertIn("pulls 20 asked 19", fetched)
        self.assertNotEqual(self.rows(fetched), self.rows(plain))  # they miss the updates of one step

    def test_announcing_something_else_than_what_is_looked_up(self):
        out = self.run_script("""
            import torch, regattarec.torch as rt
            e = rt.Embedding(None, 1, rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), e)
            a, b = torch.tensor([1]), torch.tensor([2])
            for k in range(4):
                rt.prefetch((e, a))
                x = e(b)                       # not what was announced
                if k == 2:
                    rt.prefetch((e, b))        # of the next step
                    x = x + e(b) - e(b)        # and of this one, too
                if k == 3:
                    a[0] = 5                   # another id than was announced
                    x = x + e(a)
                o.zero_grad(); x.sum().backward(); o.step()
            e.eval()
            print(e(torch.tensor([1, 2, 5])).flatten().tolist())
            rt.prefetch((e, b))
            for wrong in ((e, b), (e,), ("e", b)):
                try:
                    rt.prefetch(*wrong) if wrong[0] is e and len(wrong) == 2 else rt.prefetch(wrong)
                    print("NO ERROR")
                except TypeError as error:
                    print("TypeError", error)
            """)
        self.assertIn("[0.0, -4.0, -1.0]", out)
        self.assertEqual(out.count("TypeError prefetch takes"), 3)

    def test_frozen_rows_are_read_and_not_changed(self):
        out = self.run_script("""
            import torch, regattarec.torch as rt
            e = rt.Embedding(None, 2, table="fixed", rule=rt.SGD(lr=1.0), init=rt.Constant(1.0))
            f = rt.Embedding(None, 2, table="moving", rule=rt.SGD(lr=1.0), init=rt.Constant(1.0))
            model = torch.nn.ModuleList([e, f])
            o = rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), model)
            def step():
                o.zero_grad(); (e(torch.tensor([1, 2])) + f(torch.tensor([1, 2]))).sum().backward(); o.step()
            step()
            rt.freeze(e)
            step()
            print("new", e(torch.tensor([3])).tolist())     # no row, and none comes into being
            rt.freeze(model, frozen=False)
            step()
            model.eval()
            print(e(torch.tensor([1, 3])).tolist(), f(torch.tensor([1])).tolist())
            """)
        self.assertIn("new [[0.0, 0.0]]", out)
        self.assertIn("[[-1.0, -1.0], [0.0, 0.0]] [[-2.0, -2.0]]", out)  # 1 less a step, and one step was frozen

    PRETRAINED = """
        import torch, regattarec.torch as rt
        rt.init(mode="sync")
        keys = torch.arange(1000) * 7919 - 3_000_000
        vectors = torch.randn(1000, 8, generator=torch.Generator().manual_seed(5))
        e = rt.Embedding.from_pretrained(vectors, keys, table="words", rule=rt.Adagrad(lr=0.1), freeze=False)
        f = rt.EmbeddingBag.from_pretrained(vectors[:10], table="few", mode="sum")
        w = torch.nn.Parameter(torch.zeros(1))
        o = rt.wrap(torch.optim.SGD([w], lr=0.1), e, f)
        again = rt.to_embedding(e, keys)
        assert isinstance(again, torch.nn.Embedding) and not again.weight.requires_grad
        assert torch.equal(again.weight, vectors)
        assert torch.equal(rt.to_embedding("few", torch.tensor([9, 10])).weight, torch.stack([vectors[9], torch.zeros(8)]))
        x = e(keys[:2])
        (x.sum() + f(torch.tensor([[1, 2]])).sum()).backward(); o.step()
        plain = torch.nn.Embedding.from_pretrained(vectors.clone(), freeze=False)
        p = torch.optim.Adagrad(plain.parameters(), lr=0.1)
        plain(torch.arange(2)).sum().backward(); p.step()
        got = rt.to_embedding(e, keys, freeze=False)
        assert got.weight.requires_grad
        print("difference", float((got.weight - plain.weight).abs().max()))
        print("frozen", torch.equal(rt.to_embedding(f, torch.arange(10)).weight, vectors[:10]))
        """

    def test_pretrained_vectors(self):
        for launch in ((), ("--server_num=2", "--worker_num=2")):
            with self.subTest(launch):
                out = self.run_script(self.PRETRAINED, launch=launch)
                out = self.log("workerlog.1") if launch else out
                difference = float(next(line for line in out.splitlines() if line.startswith("difference")).split()[1])
                self.assertLess(difference, 1e-5)
                self.assertIn("frozen True", out)

    def test_what_cannot_be_filled_or_taken_out(self):
        out = self.run_script("""
            import torch, regattarec, regattarec.torch as rt
            e = rt.Embedding(100, 2)
            from refusals import fails
            fails(lambda: e.fill(torch.tensor([1, 2]), torch.zeros(2, 3)))
            fails(lambda: e.fill(torch.tensor([1.5]), torch.zeros(1, 2)))
            fails(lambda: e.fill(torch.tensor([100]), torch.zeros(1, 2)))
            fails(lambda: rt.Embedding.from_pretrained(torch.zeros(3)))
            fails(lambda: rt.to_embedding("nothing", torch.tensor([1])))
            fails(lambda: rt.to_embedding(e, torch.tensor([], dtype=torch.int64)))
            regattarec.job.current().join()
            fails(lambda: e.fill(torch.tensor([1, 1]), torch.zeros(2, 2)))
            fails(lambda: e.fill(torch.tensor([1]), torch.full((1, 2), float("nan"))))
            e(torch.tensor([1]))
            fails(lambda: e.fill(torch.tensor([1]), torch.zeros(1, 2)))
            """)
        self.assertNotIn("NO ERROR", out)
        for words in ("need vectors of the shape (2, 2), not (2, 3)", "keys are torch.float32", "ids from 100 to 100",
                      "a row each are 2", "there is no table 'nothing' in this program; there are: embedding", "no keys",
                      "key 1 comes twice", "the weights of key 1 hold NaN", "before the first lookup"):
            self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main()
