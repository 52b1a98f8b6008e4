"""Wrong arguments of every kind: each is an exception whose text names the argument, and what could be taken is taken."""
import doctest
import os
import pathlib
import pickle
import tempfile
import unittest

import numpy as np

from regattarec import arguments
from regattarec.data import Dataset, generate
from script import ScriptTest

CLICKS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "criteo_slots_80.txt"

HEAD = """
import os, pathlib, sys
import numpy, torch, regattarec, regattarec.torch as rt
from regattarec import fleet
def refuses(words, *calls):
    for i, call in enumerate(calls):
        try:
            given = call()
        except (regattarec.Error, TypeError, ValueError) as error:
            assert all(word in str(error) for word in words.split("|")), (words, i, error)
            assert "incompatible function arguments" not in str(error), error
        else:
            raise AssertionError(f"not refused: {words}, call {i}: {given!r}")
some = lambda: torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
"""


def open_clicks(**how):
    return Dataset(**dict(dict(files=CLICKS, slots=26, dense_dim=13, batch_size=32, tensors=False), **how))


class DataArgumentsTest(unittest.TestCase):
    def refuses(self, words, **how):
        for value in how.pop("values", (None,)):
            name = next(iter(how))
            with self.subTest(name=name, value=value), self.assertRaisesRegex((ValueError, TypeError), words):
                next(iter(open_clicks(**{name: value})))

    def test_the_examples_of_the_checks(self):
        failed, tried = doctest.testmod(arguments, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
        self.assertEqual((failed, tried > 0), (0, True))

    def test_files_and_names(self):
        self.refuses("^files", files=0, values=(None, 5, [], [None], "", "a\0b", [1], "\udcff"))
        self.refuses("^slots: .* neither a number from 1 to 100000 nor a list of names", slots=0,
                     values=(None, "abc", b"a", 2.5, [], [None], np.array(["a"])[:0]))
        self.refuses("^labels: ", labels=0, values=("click", None, 5, [None]))
        self.refuses("^real_labels: ", real_labels=0, values=("rating", None, [3.5]))
        for name in ("format", "weight_slot", "value_slot", "dense_slot", "pipe_command"):
            self.refuses(f"^{name}: ", **{name: 0}, values=(None, 5, b"a", [], "\udcff", "a\0b"))
        self.refuses("^split .*: there are contiguous and mod", split=0, values=(None, ["mod"]))
        self.refuses("^id_space .*: there are shared and slot", id_space=0, values=(None, ["slot"]))

    def test_numbers_and_flags(self):
        for name in ("batch_size", "dense_dim", "readers", "seed", "index", "count", "skip", "epoch"):
            self.refuses(f"^{name}: .* is not a whole number", **{name: 0},
                         values=(None, "1", -1, 1.0, True, np.bool_(True), 2**64, [1], np.ones(2, dtype=int)))
        for name in ("in_memory", "shuffle", "tensors"):
            self.refuses(f"^{name}: .* is neither True nor False", **{name: 0}, values=("no", 2) + ((None,) if name != "tensors" else ()))
        for number, skip in ((-1, 0), (0, "a")):
            with self.assertRaisesRegex(ValueError, "is not a whole number from 0 on"):
                open_clicks().pass_from(number, skip)

    def test_numbers_of_numpy_and_iterators_are_taken(self):
        want = [batch.keys.copy() for batch in open_clicks()]
        found = open_clicks(files=iter([os.fsencode(CLICKS)]), slots=np.int64(26), dense_dim=np.int32(13),
                            batch_size=np.uint8(32), readers=np.int64(1), index=np.int64(0), count=np.int16(1),
                            in_memory=np.bool_(True), skip=np.int64(0), labels=iter(["click"]))
        self.assertTrue(all(np.array_equal(a, b.keys) for a, b in zip(want, found, strict=True)))
        self.assertEqual(found.slots, [str(i + 1) for i in range(26)])
        self.assertEqual(open_clicks(slots=np.arange(1, 27)).slots, found.slots)

    def test_generated_data(self):
        with tempfile.TemporaryDirectory() as folder:
            small = dict(out=folder, samples=20, slots=2, dense=0, ids=10)
            for name in ("samples", "test_samples", "files", "test_files", "threads", "seed", "slots", "dense", "ids", "ids_per_slot"):
                for value in (None, "1", -1, 1.5, True):
                    with self.subTest(name=name, value=value), self.assertRaisesRegex(ValueError, f"^{name}: .* is not a whole"):
                        generate(**{**small, name: value})
            for name in ("zipf", "missing", "click_rate", "signal", "dense_share", "cross_share"):
                for value in (None, "a", float("nan"), float("inf"), True):
                    with self.subTest(name=name, value=value), self.assertRaisesRegex(ValueError, f"^{name}: .* is not a finite"):
                        generate(**{**small, name: value})
            for out in (None, 5, "", "a\0b"):
                with self.subTest(out=out), self.assertRaisesRegex((ValueError, TypeError), "^out"):
                    generate(**{**small, "out": out})
            self.assertEqual(generate(**{**small, "samples": np.int64(20), "zipf": np.float32(1)})["train"]["samples"], 20)

    def test_a_copy_in_the_middle_of_a_pass(self):
        data = open_clicks()
        passing = iter(data)
        next(passing)
        self.assertEqual(len(list(pickle.loads(pickle.dumps(data)))), 3)
        self.assertEqual(len(list(passing)), 2)


class ArgumentsTest(ScriptTest):
    def check(self, script, **how):
        return self.run_script(HEAD + script, **how)

    def test_a_dataset_in_a_forked_process(self):
        self.check(f"""
import signal, time, regattarec.data
def child(call):  # exits as other programs do, with all that is left to end
    pid = os.fork()
    if pid == 0:
        call()
        sys.exit(0)
    end = time.monotonic() + 20
    while (left := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    assert left[1] == 0, left
def go_on():
    refuses("forked while the pass was under way", lambda: list(passing))
def anew():
    assert len(list(data)) == 10
for in_memory in (False, True):
    data = regattarec.data.Dataset({str(CLICKS)!r}, slots=26, dense_dim=13, batch_size=8, in_memory=in_memory, readers=2)
    passing = iter(data)
    next(passing)
    for call in (anew, go_on, lambda: None):
        child(call)
    assert len(list(passing)) == 9
""")

    def test_modules(self):
        self.check("""
number = lambda name: lambda v: lambda: rt.Embedding(**{**dict(num_embeddings=None, embedding_dim=2), name: v})
for name in ("num_embeddings", "embedding_dim", "seed", "padding_idx"):
    refuses(f"{name}: |is not a whole number", *map(number(name), ("a", 1.0, True, 2**64, -2**64)))
refuses("embedding_dim: None", number("embedding_dim")(None))
refuses("mode |: there are sum, mean and sqrtn", *(lambda v=v: rt.EmbeddingBag(None, 2, mode=v) for v in (None, 5, ["sum"])))
refuses("include_last_offset: |neither True nor False",
        *(lambda v=v: rt.EmbeddingBag(None, 2, include_last_offset=v) for v in (None, "no", 2)))
from regattarec.torch import table
assert not table.known(), "a module that was refused has a table"
e = rt.Embedding(numpy.int64(9), numpy.int32(2), seed=numpy.int64(3), padding_idx=numpy.int64(-1))
assert (e.num_embeddings, e.embedding_dim, e.padding_idx) == (9, 2, 8) and type(e.embedding_dim) is int
refuses("freeze takes torch.nn.Modules", lambda: rt.freeze(None), lambda: rt.freeze([e]))
refuses("frozen: 'no'", lambda: rt.freeze(e, frozen="no"))
refuses("requires_grad: 'no'", lambda: e.requires_grad_("no"))
refuses("n: |is not a whole number", *(lambda v=v: rt.step(n=v) for v in (None, "a", 0, 1.5, True, 2**32)))
rt.step(n=numpy.int64(2))
""")

    def test_rules_and_initial_values(self):
        self.check("""
for make, name, bad in ((rt.SGD, "lr", (-1, "0.1", None, float("nan"), 1e300, 10**400, True, torch.tensor(0.1))),
                        (rt.Adam, "beta1", (2.0, -0.5, 1)), (rt.Adam, "eps", (-1e-8,)), (rt.Momentum, "momentum", (-1, 1.5)),
                        (rt.Momentum, "nesterov", ("yes", 0.5, None)), (rt.RMSprop, "rho", (-1, 2)), (rt.Ftrl, "alpha", (0, -1)),
                        (rt.SharedAdagrad, "initial_g2sum", (0, -3)), (rt.Uniform, "bound", (-1, 1e300, "a")),
                        (rt.Normal, "std", (-1, float("inf"))), (rt.Constant, "value", (True, "a", float("nan")))):
    for value in bad:
        refuses(f"{make.__name__}: {name} is |it has to be", lambda: make(**{name: value}))
refuses("Rule is no formula itself", rt.Rule)
refuses("Init is none itself", rt.Init)
rule = rt.Adam(lr=numpy.float32(0.5), beta1=numpy.float64(0.5))
assert rule == rt.Adam(lr=0.5, beta1=0.5) and type(rule.lr) is float
assert rt.RMSprop(centered=numpy.bool_(True)).config()["centered"] is True and rt.Constant(-1).config()["a"] == -1.0
""")

    def test_lookups(self):
        self.check("""
T = torch.tensor
ids, offsets = T([1, 2, 3]), T([0, 2])
e, m = rt.Embedding(None, 2), rt.EmbeddingBag(None, 2, mode="sum", padding_idx=0, include_last_offset=True)
bag = rt.EmbeddingBag(None, 2, mode="sum")
meta = torch.zeros(3, dtype=torch.int64, device="meta")
for module in (lambda v: e(v), lambda v: bag(v, offsets), lambda v: m(v, offsets)):
    refuses("ids must be a tensor of whole numbers", *(lambda v=v: module(v) for v in (None, [1], "a", numpy.array([1]), iter([1]))))
    refuses("ids are torch.", *(lambda v=v: module(v) for v in (ids.float(), ids > 1, ids.to(torch.complex64))))
    refuses("ids are on the device 'meta'", lambda: module(meta), lambda: module(meta.int()))
    refuses("ids are a tensor of the layout torch.sparse_coo|to_dense()", lambda: module(ids.to_sparse()))
refuses("ids have |dimensions; there may be 1 or 2", lambda: bag(T(5)), lambda: bag(torch.ones(2, 2, 2, dtype=torch.int64)))
refuses("offsets must be a tensor of whole numbers", *(lambda v=v: bag(ids, v) for v in ([0, 2], "a", numpy.array([0]))))
refuses("offsets are torch.", lambda: bag(ids, offsets.float()), lambda: bag(ids, offsets > 0))
refuses("offsets are on the device 'meta'", lambda: bag(ids, meta[:1]))
refuses("offsets have |dimensions", lambda: bag(ids, T([[0, 2]])), lambda: bag(ids, T(0)))
refuses("offsets[0] must be 0, and is missing", lambda: m(ids, offsets[:0]))
refuses("offsets[0] must be 0, and is 1", lambda: m(T([0, 0, 3]), T([1, 3])))
refuses("offsets decrease", lambda: m(T([0, 0, 3]), T([0, 2, 1, 3])))      # between ids that are padding
refuses("per_sample_weights must be a tensor", lambda: bag(ids, offsets, [1.0, 1.0, 1.0]), lambda: bag(ids, offsets, "a"))
refuses("per_sample_weights are on the device 'meta'", lambda: bag(ids, offsets, torch.ones(3, device="meta")))
refuses("per_sample_weights are torch.complex64", lambda: bag(ids, offsets, torch.ones(3, dtype=torch.complex64)))
refuses("per_sample_weights are a tensor of the layout", lambda: bag(ids, offsets, torch.ones(3).to_sparse()))
assert m(T([0, 0, 3]), T([0, 1, 3])).shape == (2, 2) and e(torch.ones(2, 2, 2, dtype=torch.int64)).shape == (2, 2, 2, 2)
""")

    def test_keys_and_vectors(self):
        self.check("""
e = rt.Embedding(None, 2, table="some", init=rt.Constant(0.0))
zeros = torch.zeros(2, 2)
for take in (lambda keys: e.fill(keys, zeros), lambda keys: rt.to_embedding(e, keys)):
    refuses("keys: |cannot become a tensor", *(lambda v=v: take(v) for v in (None, "ab", [2**64, 1], [[1], [2, 3]], {"a": 1})))
    refuses("keys are torch.", lambda: take([0.5, 1]), lambda: take([True, False]), lambda: take([2**63, -1]))
    refuses("keys have 2 dimensions", lambda: take([[1], [2]]), lambda: take(torch.tensor([[1, 2]])))
    refuses("keys are on the device 'meta'", lambda: take(torch.zeros(2, dtype=torch.int64, device="meta")))
refuses("vectors: |cannot become a tensor", *(lambda v=v: e.fill([1, 2], v) for v in (None, "ab", [[1], [2, 3]])))
refuses("vectors are torch.complex64", lambda: e.fill([1, 2], torch.zeros(2, 2, dtype=torch.complex64)))
refuses("embeddings: |cannot become a tensor", *(lambda v=v: rt.Embedding.from_pretrained(v, table="x") for v in (None, "a")))
refuses("keys are torch.float64", lambda: rt.Embedding.from_pretrained(zeros, [0.5, 1], table="x"))
refuses("freeze: 'no'", lambda: rt.Embedding.from_pretrained(zeros, table="x", freeze="no"))
refuses("source: |neither an Embedding", *(lambda v=v: rt.to_embedding(v, [1]) for v in (None, 5, ["some"], torch.nn.Linear(1, 1))))
refuses("padding_idx: |is not a whole number", *(lambda v=v: rt.to_embedding(e, [1, 2], padding_idx=v) for v in ("a", 2, -3, True)))
from regattarec.torch import table
assert list(table.known()) == ["some"], table.known()
e.fill(numpy.array([2**63, 5], dtype="uint64"), [[1, 2], [3, 4]])       # keys are the bits of 64, with a sign or without
e.fill(iter([7, 8]), numpy.ones((2, 2)))
assert rt.to_embedding(e, [-2**63, 5, 8]).weight.tolist() == [[1, 2], [3, 4], [1, 1]]
assert rt.to_embedding(e, [2**63]).weight.tolist() == [[1, 2]] and rt.to_embedding(e, range(7, 9)).weight.shape == (2, 2)
assert rt.to_embedding(e, numpy.arange(8, 6, -1)[::-1], padding_idx=numpy.int64(1)).padding_idx == 1
""")

    def test_saves(self):
        self.check("""
e, net = rt.Embedding(None, 2), torch.nn.Linear(1, 1)
for take in (rt.save, rt.load):
    refuses("path", *(lambda v=v: take(v) for v in (None, 5, "", ["a"], "a\\0b", "\\udcff")))
    refuses("model: ", *(lambda v=v: take("a", model=v) for v in (5, {}, [net], some(), torch.nn.Linear)))
    refuses("optimizer: ", *(lambda v=v: take("a", optimizer=v) for v in (5, {}, net, torch.optim.SGD)))
    refuses("parameters: ", *(lambda v=v: take("a", parameters=v) for v in (5, None, "ab", [1], torch.ones(1))))
refuses("epoch: |is not a whole number", *(lambda v=v: rt.save("a", epoch=v) for v in (None, "a", -1, 1.5, True, 2**64)))
rt.save(pathlib.Path("here") / "a", model=net, epoch=numpy.int64(3), parameters=iter(net.parameters()))
assert rt.load(os.fsencode("here/a"), net, parameters=net.parameters()) == 3
refuses("backend ", *(lambda v=v: rt.init_process_group(v) for v in (None, "x", 5)))
refuses("timeout_minutes: ", *(lambda v=v: rt.init_process_group(timeout_minutes=v) for v in ("a", 0, -1, float("nan"), 1e12, True)))
""")

    def test_a_save_of_another_model(self):
        self.check("""
e = rt.Embedding(None, 2)
net, other = torch.nn.Linear(1, 1), torch.nn.Linear(2, 1)
o = rt.wrap(torch.optim.SGD(net.parameters(), lr=0.1), e)
rt.save("a", net, o)
refuses("a holds the state of another model|size mismatch", lambda: rt.load("a", other))
refuses("a holds the state of another optimizer", lambda: rt.load("a", optimizer=some()))
""")

    def test_copies_of_a_module_share_its_rows(self):
        self.check("""
import copy, pickle
e = rt.Embedding(None, 2, table="some", rule=rt.SGD(lr=1.0), init=rt.Constant(0.0))
o = rt.wrap(some(), e)
twin = copy.deepcopy(torch.nn.Sequential(e))
twin(torch.tensor([1])).sum().backward()
o.step()
e.eval()
assert e(torch.tensor([1])).tolist() == [[-1, -1]]
refuses("table 'some' cannot be pickled|to_embedding", lambda: pickle.dumps(e), lambda: torch.save(twin, "a"))
torch.save(rt.to_embedding(e, [1]), "a")
for rate in (None, "a", torch.ones(2)):
    o.param_groups[1]["lr"] = rate
    refuses("learning rate of table 'some' is |it has to be a number", o.step)
""")

    def test_sessions(self):
        self.check("""
e = rt.Embedding(None, 1)
o = rt.wrap(some(), e)
scheduler = torch.optim.lr_scheduler.StepLR(some(), 1)
for name, bad in dict(save=(5, "", ["a"], "a\\0b"), resume=("no", None, 2), checkpoint_minutes=("a", -1, float("nan"), None, True),
                      checkpoint_steps=(1.5, -1, "a", True, None, 2**64), keep_epochs=(float("inf"), 1.5, -1, None),
                      seed=("a", 1.5, True, 2**64, [1]), metric=(None, 5), progress=("no", 5), model=(5, [torch.nn.Linear(1, 1)]),
                      state=(5, None, scheduler, [3])).items():
    refuses(name, *(lambda v=v: rt.session(**{name: v}) for v in bad))
refuses("belongs in the loop over the batches", lambda: rt.session().observe(0.5))
numbers = iter(range(2))
with rt.session(seed=numpy.int64(5), progress=False, state=iter([scheduler])) as s:
    refuses("epochs: |is not a whole number", *(lambda v=v: next(s.epochs(v)) for v in (None, "a", 1.5, True, 2**64)))
    for epoch in s.epochs(numpy.int64(2)):
        refuses("data: |is a path", lambda: s.batches("clicks"), lambda: s.batches(pathlib.Path("clicks")))
        refuses("data: |gives no batches", lambda: s.batches(None), lambda: s.batches(5))
        refuses("accumulate: |is not a whole number", *(lambda v=v: s.batches([1], v) for v in (None, "a", 0, 1.5, True)))
        if epoch == 1:
            refuses("an epoch before has used up", lambda: s.batches(numbers))
        for batch in s.batches(numbers if epoch == 0 else [1]):
            refuses("observe: loss is one number", *(lambda v=v: s.observe(v) for v in ("a", torch.ones(2), 1j, {})))
            refuses("observe: predictions: ", *(lambda v=v: s.observe(predictions=v, labels=[1]) for v in (
                "a", [[1], [2, 3]], [1j], torch.ones(1, dtype=torch.complex64), torch.zeros(1, device="meta"))))
            s.observe(torch.tensor(0.5, requires_grad=True), torch.tensor([0.5], requires_grad=True), numpy.array([1]))
            o.zero_grad(); e(torch.tensor([1])).sum().backward(); o.step()
        refuses("belongs in the loop over the batches", lambda: s.observe(0.5))
assert [entry["samples"] for entry in s.history] == [2, 1], s.history
""")

    def test_a_session_that_leaves_random_numbers_alone(self):
        self.check("""
e = rt.Embedding(None, 1)
o = rt.wrap(some(), e)
loader = torch.utils.data.DataLoader(list(range(4)), batch_size=2, shuffle=True)
torch.manual_seed(3)
want = [batch.tolist() for batch in loader], torch.rand(1)
torch.manual_seed(3)
with rt.session(seed=None, progress=False) as s:
    for epoch in s.epochs(1):
        found = [batch.tolist() for batch in s.batches(loader)]
assert (found, torch.rand(1)) == want
""")

    def test_wrap_and_init(self):
        self.check("""
e = rt.Embedding(None, 2)
refuses("optimizer: wrap takes one of torch.optim first", *(lambda v=v: rt.wrap(v, e) for v in ("adam", 5, e, torch.nn.Linear(1, 1))))
refuses("dense |: there are local and server", *(lambda v=v: rt.wrap(some(), e, dense=v) for v in (True, 5, ["local"])))
refuses("geo_step: |is not a whole number", *(lambda v=v: rt.init(geo_step=v) for v in ("a", 0, -1, 1.5, True, 2**31)))
refuses("mode |: there are sync", *(lambda v=v: rt.init(mode=v) for v in (5, ["sync"], b"sync")))
refuses("nan_policy |: there are abort", *(lambda v=v: rt.init(nan_policy=v) for v in (5, ["skip"])))
rt.init(mode="geo", geo_step=numpy.int64(3))
rt.wrap(some(), e)
e(torch.tensor([1]))
""")

    def test_a_forked_process_is_told_so_by_what_workers_do_together(self):
        self.check("""
from regattarec.fleet import role_maker
fleet.init(role_maker.PaddleCloudRoleMaker())
e = rt.Embedding(None, 2)
o = rt.wrap(some(), e)
fleet.init_worker()
e(torch.tensor([1])).sum().backward()
o.step()
child = os.fork()
if child == 0:
    try:
        refuses("forked", fleet.barrier_worker, lambda: fleet.all_reduce_worker([1]), fleet.worker_num, o.step,
                lambda: rt.save("a"), lambda: rt.load("a"), lambda: fleet.save_persistables("a"), lambda: fleet.init_worker(),
                lambda: rt.session().__enter__(), lambda: rt.to_embedding(e, [1]), lambda: rt.init_process_group())
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
fleet.barrier_worker()
fleet.stop_worker()
refuses("the job is over", fleet.barrier_worker, lambda: fleet.all_reduce_worker([1]), fleet.init_worker)
""")

    def test_fleet(self):
        self.check("""
from regattarec.fleet import DistributedStrategy, DistributeTranspilerConfig, Strategy, StrategyFactory, role_maker
User = role_maker.UserDefinedRoleMaker
for name, bad in dict(current_id=(None, "a", -1, 1.5, True, 2**40), worker_num=(None, 0, True, 2**40),
                      role=(None, True, 1.0, 3), server_endpoints=(None, 5, "a:1", [5], [None], ["\\udcff:1"])).items():
    refuses(name, *(lambda v=v: User(**{name: v}) for v in bad))
refuses("server_endpoints", lambda: User(server_endpoints=iter(["a"])).make())     # not an empty list: training alone
refuses("mode ", *(lambda v=v: Strategy(v) for v in (None, "fast", 5, ["sync"])))
refuses("geo_step: ", *(lambda v=v: Strategy("geo", v) for v in ("a", 0, 1.5, True, 2**31)))
refuses("update_frequency: ", *(lambda v=v: StrategyFactory.create_geo_strategy(v) for v in (None, "a", 0, True, 2**31)))
def settings(kind, **values):
    made = kind()
    for name, value in values.items():
        setattr(made, name, value)
    return made.strategy()
refuses("a_sync: ", *(lambda v=v: settings(DistributedStrategy, a_sync=v) for v in ("no", None, 2)))
refuses("sync_mode: ", *(lambda v=v: settings(DistributeTranspilerConfig, sync_mode=v) for v in ("no", None, 2)))
refuses("a_sync_configs", *(lambda v=v: settings(DistributedStrategy, a_sync_configs=v) for v in (None, "a", {"k_steps": "a"}, {5: 1})))
refuses("has no 'strategy'", lambda: settings(DistributedStrategy, strategy=5))
DistributedStrategy().a_sync_configs["k_steps"] = 7                              # of this one alone
assert repr(DistributedStrategy().strategy()) == "Strategy('async')"
refuses("role: ", *(lambda v=v: fleet.init(v) for v in (5, "worker", role_maker.PaddleCloudRoleMaker)))
refuses("strategy: 'sync' is none", lambda: fleet.init(strategy="sync"))
refuses("is_collective: 'yes'", lambda: fleet.init(is_collective="yes"))
fleet.init(User(numpy.int64(0), worker_num=numpy.int64(1)), strategy=Strategy("geo", numpy.int64(5)))  # none of these began the job
e = rt.Embedding(None, 2)
refuses("to_string: 'no'", lambda: fleet.server_endpoints("no"))
refuses("model_dir: |is no path", lambda: fleet.init_server(5), lambda: fleet.init_server([]))
fleet.init_worker()
refuses("input: all_reduce_worker takes numbers", *(lambda v=v: fleet.all_reduce_worker(v) for v in (
    None, "a", [[1], [2, 3]], [1j], [2**64], iter([1]), torch.zeros(1, device="meta"))))
refuses("mode ", *(lambda v=v: fleet.all_reduce_worker([1], mode=v) for v in (None, 5, ["sum"])))
refuses("output", *(lambda v=v: fleet.all_reduce_worker([0.5, 1.5], v) for v in (
    [0, 0], torch.zeros(2), numpy.zeros(3), numpy.zeros(2, dtype=int), numpy.broadcast_to(0.0, (2,)))))
assert fleet.all_reduce_worker(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
refuses("files: ", *(lambda v=v: fleet.split_files(v) for v in (None, 5, "a", pathlib.Path("a"), [5], [None], ["\\udcff"])))
assert fleet.split_files(iter(["a", pathlib.Path("b")])) == ["a", "b"]
refuses("dirname", *(lambda v=v: fleet.save_persistables(v) for v in (None, 5, "", ["a"])))
refuses("dirname", *(lambda v=v: fleet.load_model(v) for v in (None, 5, "", ["a"])))
refuses("epoch: ", lambda: fleet.save_persistables("a", epoch=-1))
""")


if __name__ == "__main__":
    unittest.main()
