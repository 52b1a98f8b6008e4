"""How tables behave in a loop: what creates rows, what a step without gradients does, what is refused."""
import unittest

from script import ScriptTest

HEAD = """
import torch, torch.nn.functional as F
import regattarec
import regattarec.torch as rt

def refuses(kind, words, call):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words.split("|")), error
    else:
        raise AssertionError(f"not refused: {words}")

def bag(**kw):
    return rt.EmbeddingBag(None, 2, **dict(dict(mode="sum", rule=rt.SGD(lr=1.0), init=rt.Constant(0.5)), **kw))

def values(e, *ids):
    with torch.no_grad():
        return e(torch.tensor(ids), torch.arange(len(ids)))[:, 0].tolist()

some = lambda: torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
"""


class TorchUseTest(ScriptTest):
    def check(self, script, **how):
        return self.run_script(HEAD + script, **how)

    def test_rows_come_into_being_at_their_first_update(self):
        self.check("""
e = bag()
o = rt.wrap(some(), e)
out = e(torch.tensor([1, 2]), torch.tensor([0, 1]))
assert out[:, 0].tolist() == [0.5, 0.5]          # what they will be born with
assert values(e, 1, 2) == [0, 0]                 # nothing was created
e.eval()
assert e(torch.tensor([1]), torch.tensor([0]))[0, 0] == 0
e.train()
out[0].sum().backward()
o.step()
assert values(e, 1, 2) == [-0.5, 0.5], values(e, 1, 2)
""")

    def test_a_step_without_a_gradient_changes_nothing(self):
        self.check("""
e = bag()
o = rt.wrap(some(), e)
look = lambda: e(torch.tensor([1]), torch.tensor([0])).sum()
o.step()                                         # before any lookup
look()
o.step()                                         # without backward
assert values(e, 1) == [0]
look().backward()
o.zero_grad()                                    # the gradient is cleared
o.step()
assert values(e, 1) == [0]
look().backward()
o.step()
assert values(e, 1) == [-0.5]
look().backward(); look().backward()             # two batches of one step
o.step()
assert values(e, 1) == [-2.5], values(e, 1)
o.zero_grad()
look().backward()
torch.nn.utils.clip_grad_norm_([p for g in o.param_groups for p in g["params"]], 0.1)
o.step()                                         # others see the rows' gradients, too
assert abs(values(e, 1)[0] + 2.5 + 0.1 / 2 ** 0.5) < 1e-6
""")

    def test_a_gradient_scaler_that_finds_inf_leaves_the_step_out(self):
        self.check("""
e, w = bag(), torch.nn.Parameter(torch.ones(1))
o = rt.wrap(torch.optim.SGD([w], lr=0.5), e)
class Scaler:  # what torch's gradient scalers do with an optimizer that supports them
    def step(self, optimizer, scale, found):
        assert optimizer._step_supports_amp_scaling
        optimizer.grad_scale, optimizer.found_inf = torch.tensor(scale), torch.tensor(found)
        optimizer.step()
        del optimizer.grad_scale, optimizer.found_inf
def step(found):
    o.zero_grad()
    (8 * (w * e(torch.tensor([1]), torch.tensor([0]))).sum()).backward()
    Scaler().step(o, 8.0, found)
step(1.0)
assert values(e, 1) == [0] and w.item() == 1
step(0.0)
assert values(e, 1) == [-0.5] and w.item() == 0.5, (values(e, 1), w)
""")

    def test_keys_of_any_integer_type_and_any_layout(self):
        self.check("""
e = bag()
o = rt.wrap(some(), e)
low = -2 ** 63
for dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
    e(torch.tensor([-3, 5], dtype=dtype), torch.tensor([0, 1], dtype=torch.int32)).sum().backward()
    o.step(); o.zero_grad()
assert values(e, -3, 5) == [0.5 - 4] * 2
e(torch.tensor([low, -1])[:, None].expand(2, 3), None).sum().backward()   # a bag of three each, not contiguous
o.step(); o.zero_grad()
assert values(e, low, -1, 2 ** 63 - 1) == [-2.5, -2.5, 0]
e(torch.tensor([[1, 9], [1, 9]])[:, 0].contiguous(), torch.tensor([0, 1])).sum().backward()
e(torch.tensor([[1, 9], [1, 9]])[:, 0], torch.tensor([0, 1, 2])[:2]).sum().backward()
o.step()
assert values(e, 1) == [0.5 - 4]
assert e(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)).shape == (0, 2)
assert e(torch.empty(0, dtype=torch.int64), torch.tensor([0, 0])).tolist() == [[0, 0], [0, 0]]
""")

    def test_bad_input_is_an_exception_that_says_what_to_do(self):
        self.check("""
ids, offsets = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
e = bag()
Bad = regattarec.InvalidArgumentError
refuses(Bad, "whole numbers|float32", lambda: e(ids.float(), offsets))
refuses(TypeError, "list", lambda: e([1], offsets))
refuses(Bad, "offsets decrease", lambda: e(ids, torch.tensor([0, 2, 1])))
refuses(Bad, "offsets[1] is 7|3 ids", lambda: e(ids, torch.tensor([0, 7])))
refuses(Bad, "offsets[0] must be 0", lambda: e(ids, torch.tensor([1, 2])))
refuses(Bad, "need offsets", lambda: e(ids))
refuses(Bad, "2-D", lambda: e(ids[None], offsets))
refuses(Bad, "mode 'max'", lambda: bag(mode="max"))
refuses(Bad, "per_sample_weights", lambda: e(ids, offsets, torch.ones(2)))
refuses(Bad, "mode 'sum'", lambda: bag(mode="mean")(ids, offsets, torch.ones(3)))
refuses(Bad, "declared twice|dim 2 and 3", lambda: rt.Embedding(
    None, 3, table="embedding", rule=rt.SGD(lr=1.0), init=rt.Constant(0.5)))
refuses(Bad, "declared twice|rule", lambda: bag(table="embedding", rule=rt.Adam()))
refuses(Bad, "no name for a table", lambda: bag(table="dense"))
refuses(Bad, "no name for a table", lambda: bag(table="a\\nb"))
refuses(Bad, "rule: 'adam'", lambda: bag(rule="adam", table="other"))
refuses(Bad, "embedding_dim: 0", lambda: rt.Embedding(None, 0, table="other"))
refuses(Bad, "num_embeddings: 0", lambda: rt.Embedding(0, 1, table="other"))
refuses(Bad, "lr is nan", lambda: bag(table="other", rule=rt.SGD(lr=float("nan"))))
refuses(Bad, "lr is '0.1'", lambda: bag(table="other", rule=rt.SGD(lr="0.1")))
refuses(Bad, "value is inf", lambda: bag(table="other", init=rt.Constant(float("inf"))))
refuses(Bad, "seed: None", lambda: bag(table="other", seed=None))
refuses(Bad, "padding_idx: 'a'", lambda: bag(table="other", padding_idx="a"))
refuses(regattarec.OutOfRangeError, "padding_idx: 9", lambda: rt.Embedding(5, 2, table="other", padding_idx=9))
refuses(Bad, "maximize", lambda: rt.wrap(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, maximize=True), e))
refuses(TypeError, "NoneType", lambda: rt.save(None))
refuses(Bad, "no Embedding", lambda: rt.wrap(some(), torch.nn.Linear(1, 1)))
refuses(Bad, "LBFGS", lambda: rt.wrap(torch.optim.LBFGS([torch.nn.Parameter(torch.zeros(1))]), e))
refuses(Bad, "RMSprop|SGD (with momentum), Adam and Adagrad|dense='local'",
        lambda: rt.wrap(torch.optim.RMSprop([torch.nn.Parameter(torch.zeros(1))]), e, dense="server"))
refuses(Bad, "amsgrad", lambda: rt.wrap(torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], amsgrad=True), e,
                                        dense="server"))
refuses(Bad, "mode 'fast'", lambda: rt.init(mode="fast"))
refuses(Bad, "nan_policy 'ignore'", lambda: rt.init(nan_policy="ignore"))
refuses(Bad, "n: 0", lambda: rt.step(n=0))
small = rt.Embedding(10, 2, table="small")
o = rt.wrap(some(), e, small)
refuses(regattarec.OutOfRangeError, "num_embeddings is 10|0 to 10", lambda: small(torch.tensor([0, 10])))
refuses(regattarec.FailedPreconditionError, "wrapped before", lambda: rt.wrap(o, e))
refuses(regattarec.FailedPreconditionError, "has an optimizer already", lambda: rt.wrap(some(), e))
refuses(regattarec.NotFoundError, "nowhere", lambda: rt.load("nowhere"))
e(ids, offsets)
refuses(regattarec.FailedPreconditionError, "before the first lookup", lambda: rt.load("nowhere"))
refuses(regattarec.FailedPreconditionError, "too late", lambda: rt.Embedding(None, 3, table="late"))
refuses(regattarec.FailedPreconditionError, "before wrap", lambda: rt.init(mode="sync"))
rt.stop()
refuses(regattarec.FailedPreconditionError, "over", lambda: e(ids, offsets))
""")

    def test_a_gradient_that_is_not_a_number_is_an_error_that_changes_nothing(self):
        self.check("""
ids, offsets = torch.tensor([-7, 2]), torch.tensor([0, 1])
e, w = bag(table="slots"), torch.nn.Parameter(torch.ones(1))
o = rt.wrap(torch.optim.SGD([w], lr=0.5), e)
for bad in (float("nan"), float("-inf")):
    out = e(ids, offsets)
    (w * out[0].sum() * bad + out[1].sum()).backward()
    refuses(regattarec.FailedPreconditionError, "step 0: gradients of 1 rows|key -7 of table 'slots'|nan_policy='skip'", o.step)
    assert values(e, -7, 2) == [0, 0] and w.item() == 1
    o.zero_grad()
(w * e(ids, offsets).sum()).backward()           # and the loop may go on
o.step()
assert values(e, -7, 2) == [-0.5, -0.5] and w.item() == 0
""")

    def test_gradients_that_are_not_numbers_may_be_left_out_or_clipped(self):
        for policy in ("skip", "clip"):
            with self.subTest(policy):
                self.check(f"""
import warnings
rt.init(nan_policy="{policy}")
e = bag()
o = rt.wrap(some(), e)
def step(factor):
    out = e(torch.tensor([1, 2]), torch.tensor([0, 1]))
    o.zero_grad()
    (out * torch.tensor([[1, factor], [1, 1]])).sum().backward()
    o.step()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    step(1); step(float("nan")); step(float("inf"))
assert [str(w.message).split(" (")[0] for w in caught] == ["step 1: gradients of 1 rows hold NaN or Inf; such "
    + {{"skip": "updates are left out", "clip": "elements count as 0"}}["{policy}"]], caught
rows = e(torch.tensor([1, 2]), torch.tensor([0, 1])).tolist()
assert rows == {{"skip": [[-0.5, -0.5], [-2.5, -2.5]], "clip": [[-2.5, -0.5], [-2.5, -2.5]]}}["{policy}"], rows
""")
                self.assertIn(f"2 gradients of rows, and those of the dense parameters in 0 steps, held NaN or Inf (nan_policy='{policy}')",
                              self.stderr)

    def test_a_dense_gradient_that_is_not_a_number_is_an_error_where_servers_have_it(self):
        self.check("""
e, w = bag(), torch.nn.Parameter(torch.ones(1))
o = rt.wrap(torch.optim.SGD([w], lr=0.5), e, dense="server")
(w * float("nan")).sum().backward()
refuses(regattarec.FailedPreconditionError, "of the dense parameters hold NaN", o.step)
assert w.item() == 1
""")

    def test_a_dense_gradient_in_the_process_that_is_not_a_number_is_an_error_that_changes_nothing(self):
        self.check("""
net, e = torch.nn.Linear(2, 1), bag(table="slots")
before = [p.tolist() for p in net.parameters()]
o = rt.wrap(torch.optim.Adam(net.parameters()), e, net)
loss = lambda: net(e(torch.tensor([1]), torch.tensor([0]))).sum()
for bad in (float("nan"), float("inf")):
    (loss() + (net.bias * bad).sum()).backward()         # rows and net.weight have good gradients
    refuses(regattarec.FailedPreconditionError, "step 0: gradients of the dense parameters hold NaN|'bias'|nan_policy='skip'", o.step)
    assert values(e, 1) == [0] and not o.state and [p.tolist() for p in net.parameters()] == before
    o.zero_grad()
loss().backward()
o.step()                                                 # the loop may go on
assert o.state and all(torch.isfinite(p).all() for p in net.parameters())
o.zero_grad()
with torch.no_grad():
    net.weight.fill_(3e38); net.bias.fill_(0)
(net.weight * 3e38).sum().backward()                     # large numbers whose sum is Inf are numbers
o.step()
""")
        self.check("""
w = torch.nn.Parameter(torch.ones(3))
e = bag()
o = rt.wrap(torch.optim.SGD([w], lr=0.5), e)             # its module is not named
(w * float("nan")).sum().backward()
refuses(regattarec.FailedPreconditionError, "param_groups[0]['params'][0], of the shape (3,)", o.step)
""")

    def test_dense_gradients_in_the_process_may_be_left_out_or_clipped(self):
        for policy in ("skip", "clip"):
            with self.subTest(policy):
                self.check(f"""
import warnings
rt.init(nan_policy="{policy}")
e, w = bag(), torch.nn.Parameter(torch.zeros(2))
o = rt.wrap(torch.optim.SGD([w], lr=1.0), e)
def step(factor):
    o.zero_grad()
    (e(torch.tensor([1]), torch.tensor([0])).sum() + (w * torch.tensor([1.0, factor])).sum()).backward()
    o.step()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    step(1); step(float("nan")); step(float("-inf"))
assert [str(w.message).split(" hold")[0] for w in caught] == ["step 1: gradients of the dense parameters"], caught
assert values(e, 1) == [-2.5]                            # the rows' gradients are good ones
assert w.tolist() == {{"skip": [-1, -1], "clip": [-3, -1]}}["{policy}"], w
""")
                self.assertIn("0 gradients of rows, and those of the dense parameters in 2 steps, held NaN", self.stderr)

    def test_modules_without_a_table_have_one_each(self):
        self.check("""
import numpy
users, items = rt.Embedding(100, 2, init=rt.Constant(1.0), rule=rt.SGD(lr=numpy.float32(1))), rt.Embedding(200, 2, rule=rt.SGD(lr=1.0))
assert (users.table.name, items.table.name) == ("embedding", "embedding_2")
o = rt.wrap(some(), users, items)
users(torch.tensor([5])).sum().backward()
o.step()
with torch.no_grad():
    assert users(torch.tensor([5])).tolist() == [[0, 0]]
    assert items(torch.tensor([5])).tolist() == [[0, 0]] and rt.to_embedding(items, [5]).weight.tolist() == [[0, 0]]
last = rt.Embedding(10, 2, table="embedding", init=rt.Constant(1.0), rule=rt.SGD(lr=numpy.float32(1)), padding_idx=-1)
assert last(torch.tensor([9])).tolist() == [[0, 0]] and last.padding_idx == 9
""")

    def test_a_step_that_is_refused_leaves_a_job_that_goes_on(self):
        self.check("""
e = bag()
o = rt.wrap(some(), e)
def step():
    o.zero_grad()
    e(torch.tensor([1]), torch.tensor([0])).sum().backward()
    o.step()
step()
for wrong in (-1.0, float("nan")):
    o.param_groups[1]["lr"] = wrong
    refuses(regattarec.InvalidArgumentError, "learning rate", step)
o.param_groups[1]["lr"] = 1.0
step()
assert values(e, 1) == [-1.5], values(e, 1)
""")

    def test_a_table_that_was_left_out_of_wrap(self):
        self.check("""
e, f = bag(), bag(table="other")
o = rt.wrap(some(), e)
refuses(regattarec.FailedPreconditionError, "'other' was left out of wrap|freeze",
        lambda: f(torch.tensor([1]), torch.tensor([0])).sum().backward())
rt.freeze(f)
(e(torch.tensor([1]), torch.tensor([0])) + f(torch.tensor([1]), torch.tensor([0]))).sum().backward()
o.step()
assert values(e, 1) == [-0.5]
""")

    def test_a_backward_without_wrap_says_what_to_do(self):
        self.check("""
e = bag(table="slots")
look = lambda: e(torch.tensor([1]), torch.tensor([0])).sum()
refuses(regattarec.FailedPreconditionError, "'slots' has no optimizer|regattarec.torch.wrap(optimizer, ...) before the loop|freeze",
        lambda: look().backward())
assert not e.table._parts
rt.freeze(e)
w = torch.nn.Parameter(torch.ones(1))
(look() + w).sum().backward()                    # frozen rows need no optimizer
rt.freeze(e, frozen=False)
o = rt.wrap(torch.optim.SGD([w], lr=0.1), e)
look().backward()
o.step()
assert values(e, 1) == [-0.5]
""")

    def test_a_second_backward_needs_retain_graph_as_in_pytorch(self):
        self.check("""
e = bag()
o = rt.wrap(some(), e)
loss = e(torch.tensor([1]), torch.tensor([0])).sum()
loss.backward()
refuses(RuntimeError, "backward through the graph a second time", loss.backward)
o.step()
assert values(e, 1) == [-0.5], values(e, 1)
loss = e(torch.tensor([1]), torch.tensor([0])).sum()
loss.backward(retain_graph=True)
loss.backward()
o.step()
assert values(e, 1) == [-2.5], values(e, 1)
""")

    def test_pretrained_padding_is_read_and_not_trained_as_in_pytorch(self):
        self.check("""
w, ids = torch.arange(8.0).reshape(4, 2) + 1, torch.tensor([[0, 3], [3, 1]])
padding = 3
p = torch.nn.Embedding.from_pretrained(w.clone(), freeze=False, padding_idx=padding)
e = rt.Embedding.from_pretrained(w, freeze=False, padding_idx=padding, rule=rt.SGD(lr=1.0))
q = torch.optim.SGD(p.parameters(), lr=1.0)
o = rt.wrap(some(), e)
for ahead in (False, True):
    if ahead:
        rt.prefetch((e, ids))
    assert torch.equal(p(ids), e(ids)), (p(ids), e(ids))
    for module, optimizer in ((p, q), (e, o)):
        (module(ids) * torch.tensor([1.0, 2.0])).sum().backward()
        optimizer.step(); optimizer.zero_grad()
assert torch.equal(p(ids), e(ids)), (p(ids), e(ids))
e.eval()
assert torch.equal(p(ids), e(ids)) and torch.equal(rt.to_embedding(e, range(4)).weight, p.weight)
""")
        self.check("""
w = torch.arange(8.0).reshape(4, 2) + 1
last = rt.Embedding.from_pretrained(w, padding_idx=-1)
frozen = rt.Embedding.from_pretrained(w, padding_idx=3)
bags = rt.EmbeddingBag.from_pretrained(w, padding_idx=3, mode="sum")
keyed = rt.Embedding.from_pretrained(w[:2], keys=[-1, 7], padding_idx=-1)
assert last.padding_idx == 3
ids = torch.tensor([[0, 3], [3, 3]])
expected = torch.nn.Embedding.from_pretrained(w, padding_idx=3)(ids)
assert torch.equal(frozen(ids), expected) and torch.equal(last(ids), expected)
assert torch.equal(bags(ids), torch.nn.EmbeddingBag.from_pretrained(w, padding_idx=3, mode="sum")(ids))
assert keyed(torch.tensor([-1, 7, 5])).tolist() == [[1, 2], [3, 4], [0, 0]]
refuses(regattarec.OutOfRangeError, "padding_idx: 4", lambda: rt.Embedding.from_pretrained(w, padding_idx=4))
refuses(TypeError, "freeze=False", lambda: rt.Embedding.from_pretrained(w, False))
""")

    def test_a_model_of_tables_only(self):
        script = """
import sys
rt.init(mode="sync")
u, v = (rt.Embedding(None, 2, table=name, rule=rt.SGD(lr=0.5), init=rt.Constant(1.0)) for name in "uv")
o = rt.wrap(None, u, v)
schedule = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)
assert isinstance(o, torch.optim.Optimizer) and [g["regatta_table"] for g in o.param_groups] == ["u", "v"]
for _ in range(2):
    o.zero_grad()
    (u(torch.tensor([1])) * v(torch.tensor([2]))).sum().backward()
    o.step(); schedule.step()
rt.save("saved", optimizer=o)
u.eval()
print(u(torch.tensor([1]))[0, 0].item())         # 1 - 0.5 * 1 - 0.25 * 0.5
"""
        self.assertEqual(self.check(script).strip(), "0.375")
        self.check(script, launch=("--server_num=1", "--worker_num=2"))
        self.assertEqual(self.log("workerlog.0").strip().splitlines()[-1], "0.375")
        self.check("""
e = bag()
refuses(regattarec.InvalidArgumentError, "dense='server'|no dense parameters", lambda: rt.wrap(None, e, dense="server"))
""")

    def test_ids_without_values_are_an_exception(self):
        self.check("""
e = rt.Embedding(None, 2)
refuses((regattarec.InvalidArgumentError, NotImplementedError), "meta", lambda: e(torch.zeros(3, dtype=torch.int64, device="meta")))
e(torch.tensor([1]))                             # the job goes on
""")

    def test_other_packages_of_like_names_do_no_harm(self):
        for name in ("regatta", "paddle"):
            (self.folder / f"{name}.py").write_text(f"raise ImportError('this is another {name}')")
        self.check("""
for name in ("regatta", "paddle"):
    try:
        __import__(name)
    except ImportError as error:
        assert f"another {name}" in str(error)
    else:
        raise AssertionError(name)
e = bag()
o = rt.wrap(some(), e)
e(torch.tensor([1]), torch.tensor([0])).sum().backward()
o.step()
assert values(e, 1) == [-0.5]
""")

    def test_a_forked_process_is_told_so(self):
        self.check("""
import os
e = bag()
e(torch.tensor([1]), torch.tensor([0]))
child = os.fork()
if child == 0:
    try:
        e(torch.tensor([1]), torch.tensor([0]))
    except regattarec.FailedPreconditionError as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")

    def test_threads_take_turns(self):
        self.check("""
import threading
e = bag()
o = rt.wrap(some(), e)
def look(k):
    with torch.no_grad():
        for _ in range(200):
            assert e(torch.tensor([k]), torch.tensor([0])).tolist() == [[0, 0]]
threads = [threading.Thread(target=look, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
""")

    def test_a_save_goes_on_to_the_bit(self):
        script = """
import sys
def data(k):
    g = torch.Generator().manual_seed(k)
    return torch.randint(0, 30, (8, 3), generator=g), torch.randint(0, 2, (8,), generator=g).float()
torch.manual_seed(0)
e = bag(rule=rt.Adam(lr=0.1), init=rt.Uniform(0.1))
net = torch.nn.Linear(2, 1)
o = rt.wrap(torch.optim.Adam(net.parameters(), lr=0.01), e, dense=sys.argv[1])
begin, end, source, target = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
if source != "-":
    assert rt.load(source, model=net, optimizer=o) == begin
for k in range(begin, end):
    x, y = data(k)
    loss = F.binary_cross_entropy_with_logits(net(e(x)).squeeze(1), y)
    o.zero_grad(); loss.backward(); o.step()
rt.save(target, model=net, optimizer=o, epoch=end)
print([p.tolist() for p in net.parameters()], values(e, *range(30)))
"""
        for dense in ("local", "server"):
            with self.subTest(dense):
                straight = self.run_script(
                    HEAD + script, dense, "0", "20", "-", f"{dense}/straight")
                self.run_script(HEAD + script, dense, "0", "10", "-", f"{dense}/half")
                rest = self.run_script(HEAD + script, dense, "10", "20", f"{dense}/half", f"{dense}/rest")
                self.assertEqual(rest, straight)

    def test_a_damaged_state_is_an_error(self):
        self.check("""
from regattarec.torch import tensors
tree = {"a": torch.arange(3), 4: [1.5, None, float("inf")], "b": (True, "x"), "e": torch.empty(0, 2)}
data = tensors.dump(tree)
back = tensors.load(data)
assert back["a"].tolist() == [0, 1, 2] and back[4] == [1.5, None, float("inf")] and back["b"] == (True, "x")
assert back["e"].shape == (0, 2)
for bad in (b"", data[:5], data[:-1], data + b"x", data.replace(b"tensor", b"tensow"), b"\\xff" * 40,
            data.replace(b"int64", b"int65")):
    refuses(regattarec.DataLossError, "damaged", lambda: tensors.load(bad))
refuses(regattarec.InvalidArgumentError, "state.f|function", lambda: tensors.dump({"f": print}))
""")


if __name__ == "__main__":
    unittest.main()
