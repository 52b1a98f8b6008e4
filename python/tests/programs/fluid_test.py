"""Programs of the Fluid API: what they compute, against PyTorch; what they save; what is refused."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from docs_test import run_examples  # noqa: E402
from script import PYTHON, ScriptTest  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"

HEAD = """
import numpy as np, os, sys
import paddle
import paddle.fluid as fluid
import regattarec
layers = fluid.layers
exe = fluid.Executor(fluid.CPUPlace())

def refuses(kind, words, call):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words.split("|")), error
    else:
        raise AssertionError(f"not refused: {words}")

def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())
"""


class FluidTest(ScriptTest):
    def check(self, script, **how):
        return self.run_script(HEAD + script, **how)

    def test_fit_a_line(self):
        done = subprocess.run([*PYTHON, EXAMPLES / "fit_a_line" / "local.py"], cwd=self.folder, env=self.env, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"pass [0-9]+: a batch's cost is [0-9]\.[0-9]+\n$")
        self.assertEqual(sorted(file.name for file in (self.folder / "fit_a_line.model").iterdir()),
                         ["fc_0.b_0", "fc_0.w_0", "learning_rate_0"])

    def test_training_equals_pytorch(self):
        """A click model of two embeddings, with every optimizer, 60 steps from the same values."""
        optimizers = {"SGD(learning_rate=0.1)": "SGD(p, lr=0.1)",
                      "Momentum(0.05, momentum=0.9)": "SGD(p, lr=0.05, momentum=0.9)",
                      "Momentum(0.05, 0.9, use_nesterov=True)": "SGD(p, lr=0.05, momentum=0.9, nesterov=True)",
                      "Adagrad(0.1, epsilon=1e-6)": "Adagrad(p, lr=0.1, eps=1e-6)",
                      "Adam(0.01, epsilon=1e-12)": "Adam(p, lr=0.01, eps=1e-12)",  # Fluid adds it before the correction
                      "SGD(0.1, regularization=fluid.regularizer.L2Decay(0.01))": "SGD(p, lr=0.1, weight_decay=0.01)"}
        for ours, theirs in optimizers.items():
            with self.subTest(ours):
                self.check(f"""
import torch
rng = np.random.RandomState(0)
words = layers.data("words", shape=[1], dtype="int64")
other = layers.data("other", shape=[1], dtype="int64")
dense = layers.data("dense", shape=[3])
label = layers.data("label", shape=[1], dtype="int64")
a = layers.embedding(words, size=[20, 4], param_attr="a")
b = layers.embedding(other, size=[10, 4], param_attr=fluid.ParamAttr(name="b"))
hidden = layers.fc(layers.concat([a, b, dense], axis=1), size=8, act="relu")
out = layers.fc(hidden, size=2, act="softmax")
cost = layers.mean(layers.cross_entropy(out, label))
fluid.optimizer.{ours}.minimize(cost)
fluid.default_startup_program().random_seed = 5
exe.run(fluid.default_startup_program())

names = ["a", "b", "fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
p = [torch.nn.Parameter(torch.tensor(value(name))) for name in names]
optimizer = torch.optim.{theirs}
for step in range(60):
    feed = dict(words=rng.randint(0, 20, (16, 1)), other=rng.randint(0, 10, (16, 1)), dense=rng.rand(16, 3).astype("float32"),
                label=rng.randint(0, 2, (16, 1)))
    mine, = exe.run(feed=feed, fetch_list=[cost])
    t = {{key: torch.tensor(array) for key, array in feed.items()}}
    x = torch.cat([p[0][t["words"][:, 0]], p[1][t["other"][:, 0]], t["dense"]], 1)
    x = torch.relu(x @ p[2] + p[3]) @ p[4] + p[5]
    loss = torch.nn.functional.cross_entropy(x, t["label"][:, 0])
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    assert abs(mine[0] - loss.item()) < 1e-5, (step, mine, loss)
assert max(np.abs(value(name) - q.detach().numpy()).max() for name, q in zip(names, p)) < 1e-5
""")

    def test_gradients_and_values_can_be_fetched(self):
        self.check("""
x = layers.data("x", shape=[2])
x.stop_gradient = False
w = layers.fc(x, size=1, param_attr=fluid.initializer.Constant(3.0), bias_attr=False)
cost = layers.mean(layers.square(w))
pairs = fluid.append_backward(cost)
assert [(p.name, g.name) for p, g in pairs] == [("fc_0.w_0", "fc_0.w_0@GRAD")]
exe.run(fluid.default_startup_program())
feed = {"x": [[1, 2], [0, 1]]}
out, gx, gw = exe.run(feed=feed, fetch_list=[w, "x@GRAD", pairs[0][1]])
assert out.tolist() == [[9], [3]]
assert gx.tolist() == [[27, 27], [9, 9]] and gw.tolist() == [[9], [21]], (gx, gw)
assert exe.run(feed=feed, fetch_list=[cost], return_numpy=False)[0].shape() == [1]
""")

    def test_sequences_are_pooled_by_their_lod(self):
        self.check("""
words = layers.data("words", shape=[1], dtype="int64", lod_level=1)
rows = layers.embedding(words, size=[5, 2], param_attr=fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(
    np.arange(10).reshape(5, 2).astype("float32"))))
pooled = layers.sequence_pool(rows, "sum")
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([words])
fed = feeder.feed([([1, 2],), ([4],)])
assert fed["words"].lod() == [[0, 2, 3]] and fed["words"].recursive_sequence_lengths() == [[2, 1]]
assert exe.run(feed=fed, fetch_list=[pooled])[0].tolist() == [[6, 8], [8, 9]]
""")

    def test_programs_of_their_own_and_copies_for_tests(self):
        self.check("""
main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 7
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    x = layers.data("x", shape=[100])
    y = layers.dropout(layers.fc(x, 50, param_attr="w"), dropout_prob=0.5)
    cost = layers.mean(y)
    test = main.clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(cost)
assert len(fluid.default_main_program().global_block().ops) == 0
assert [op.type for op in test.global_block().ops] == ["mul", "elementwise_add", "dropout", "mean"]
assert [op.type for op in main.global_block().ops][-3:] == ["backward", "sgd", "sgd"]
feed = {"x": np.ones((4, 100), "float32")}
found = []
for _ in range(2):  # the same seed gives the same bits
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        found.append([exe.run(test, feed=feed, fetch_list=[cost])[0]] + [exe.run(main, feed=feed, fetch_list=[cost])[0] for _ in range(3)])
        found[-1].append(value("w"))
assert all(np.array_equal(a, b) for a, b in zip(*found)), found
assert fluid.global_scope().find_var("w") is None
""")

    def test_saves_are_exact_and_damage_is_refused(self):
        self.check("""
x = layers.data("x", shape=[3])
cost = layers.mean(layers.fc(x, 2))
fluid.optimizer.Adam(0.1).minimize(cost)
refuses(regattarec.FailedPreconditionError, "fc_0.w_0 has no value yet|startup", lambda: fluid.io.save_persistables(exe, "early"))
assert not os.path.exists("early")
exe.run(fluid.default_startup_program())
run = lambda: exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[cost])[0]
run(); run()
fluid.io.save_persistables(exe, "model")
expected = [run(), run()]
with fluid.scope_guard(fluid.Scope()):
    fluid.io.load_persistables(exe, "model")
    assert np.array_equal([run(), run()], expected)           # the moments of Adam are in it
    fluid.io.load_params(exe, "model")
before = value("fc_0.w_0")
bytes_ = open("model/fc_0.w_0", "rb").read()
load = lambda: fluid.io.load_persistables(exe, "model")
for damaged in (bytes_[:-1] + bytes([bytes_[-1] ^ 1]), bytes_[:20], b"", bytes_ + b"x", bytes_[:9] + b"zzzz" + bytes_[13:]):
    open("model/fc_0.w_0", "wb").write(damaged)
    refuses(regattarec.Error, "model/fc_0.w_0", load)
open("model/fc_0.w_0", "wb").write(open("model/fc_0.b_0", "rb").read())
refuses(regattarec.InvalidArgumentError, "float32 [2]|fc_0.w_0 as|[3, 2]", load)
os.remove("model/fc_0.w_0")
refuses(regattarec.NotFoundError, "fc_0.w_0", load)
refuses(regattarec.NotFoundError, "nowhere", lambda: fluid.io.load_persistables(exe, "nowhere"))
assert np.array_equal(value("fc_0.w_0"), before)              # nothing was half loaded
""")

    def test_arithmetic_of_variables(self):
        self.check("""
x, y = fluid.data("x", [None, 2]), fluid.data("y", [-1, 2])
made = [x + y, x - y, x * y, x / y, x + 2, 2 + x, x - 2, 2 - x, x * 3, 3 * x, x / 4, 4 / x, -x, x ** 2, x ** y, (x + 1) * (y - 1)]
a, b = np.array([[1, 2], [3, 4]], "float32"), np.array([[2, 0.5], [1, 3]], "float32")
want = [a + b, a - b, a * b, a / b, a + 2, 2 + a, a - 2, 2 - a, a * 3, 3 * a, a / 4, 4 / a, -a, a ** 2, a ** b, (a + 1) * (b - 1)]
for mine, other in zip(exe.run(feed={"x": a, "y": b}, fetch_list=made), want):
    assert np.abs(mine - other).max() < 1e-5, (mine, other)
refuses(TypeError, "unsupported operand", lambda: x + "1")
""")

    def test_a_model_for_inference_is_a_folder(self):
        self.check("""
words = fluid.data("words", [None], dtype="int64")
label = fluid.data("label", [None, 1])
hidden = layers.dropout(fluid.embedding(words, [10, 4], is_sparse=True), 0.5)
out = layers.fc(hidden, 1)
cost = layers.mean(layers.square_error_cost(out, label))
fluid.optimizer.Adagrad(0.1).minimize(cost)
exe.run(fluid.default_startup_program())
feed = {"words": [1, 2, 3], "label": np.ones((3, 1), "float32")}
for _ in range(3):
    exe.run(feed=feed, fetch_list=[cost])
want = exe.run(fluid.default_main_program().clone(for_test=True), feed=feed, fetch_list=[out])[0]
assert fluid.io.save_inference_model("model", ["words"], [out], exe) == [out.name]
assert sorted(os.listdir("model")) == ["__model__", "embedding_0.w_0", "fc_0.b_0", "fc_0.w_0"], os.listdir("model")
with fluid.scope_guard(fluid.Scope()):
    program, feeds, targets = fluid.io.load_inference_model("model", exe)
    assert feeds == ["words"] and [t.name for t in targets] == [out.name]
    assert np.array_equal(exe.run(program, feed={"words": [1, 2, 3]}, fetch_list=targets)[0], want)
refuses(regattarec.Error, "label", lambda: fluid.io.save_inference_model("bad", ["words"], [cost], exe))
model = open("model/__model__", "rb").read()
for damaged in (model[:-1], model[:10], b"", model[:30] + b"zz" + model[32:]):
    open("model/__model__", "wb").write(damaged)
    refuses(regattarec.Error, "model/__model__", lambda: fluid.io.load_inference_model("model", exe))
""")

    def test_what_cannot_be_says_so(self):
        self.check("""
x = layers.data("x", shape=[3])
y = layers.fc(x, 2)
run = lambda **how: exe.run(**how)
ok = {"x": np.ones((2, 3), "float32")}
refuses(regattarec.FailedPreconditionError, "fc_0.w_0|startup program", lambda: run(feed=ok, fetch_list=[y]))
exe.run(fluid.default_startup_program())
Bad = regattarec.InvalidArgumentError
refuses(regattarec.Error, "x", lambda: run(fetch_list=[y]))
refuses(regattarec.NotFoundError, "nothing", lambda: run(feed=ok, fetch_list=["nothing"]))
refuses(regattarec.NotFoundError, "z", lambda: run(feed=ok | {"z": ok["x"]}, fetch_list=[y]))
refuses(Bad, "x|float64|float32", lambda: run(feed={"x": np.ones((2, 3))}, fetch_list=[y]))
refuses(Bad, "x|[2, 4]|3", lambda: run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[y]))
refuses(ValueError, "feed 'x'", lambda: run(feed={"x": np.array([[1], [1, 2]], dtype=object)}, fetch_list=[y]))
refuses(TypeError, "feed is a dict", lambda: run(feed=[ok]))
refuses(TypeError, "fluid.Program", lambda: run(program="main"))
refuses(Bad, "layers.fc (|script.py:", lambda: layers.fc(y, size=0))
refuses(Bad, "layers.matmul (|[2, 3]|[2, 3]", lambda: layers.matmul(*[layers.fill_constant([2, 3], "float32", 1)] * 2))
refuses(TypeError, "not int", lambda: layers.relu(3))
refuses(AttributeError, "did you mean relu", lambda: layers.relux)
refuses(AttributeError, "fluid.md", lambda: fluid.DistributeTranspiler)
refuses(NotImplementedError, "CPUPlace", lambda: fluid.CUDAPlace(0))
refuses(NotImplementedError, "is_distributed", lambda: layers.embedding(layers.data("i", [1], dtype="int64"), [9, 2], is_distributed=True))
refuses(Bad, "the extents from 1 on|must be known", lambda: layers.fc(layers.data("u", shape=[-1, -1], append_batch_size=False), 2))
refuses(ValueError, "sample 0 has 1 values", lambda: fluid.DataFeeder([x, "x"]).feed([(1,)]))
refuses(TypeError, "no argument momentun", lambda: fluid.optimizer.Momentum(0.1, momentun=0.9))
refuses(TypeError, "needs momentum", lambda: fluid.optimizer.Momentum(0.1))
refuses(ValueError, "batch_size", lambda: paddle.batch(lambda: iter([]), 0))
refuses(Bad, "x: level 0 of the LoD ends at 5", lambda: run(feed={"x": fluid.LoDTensor(ok["x"], [[0, 5]])}, fetch_list=[y]))
assert run(feed=ok, fetch_list=[y])[0].shape == (2, 2)        # and all goes on
""")

    def test_another_libtorch_is_refused_whichever_comes_first(self):
        fake = self.folder / "torch"
        (fake / "lib").mkdir(parents=True)
        maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
        library = pathlib.Path(next(line.split()[-1] for line in maps if "/libc.so" in line))
        (fake / "lib" / "libtorch_cpu.so").write_bytes(library.read_bytes())
        (fake / "__init__.py").write_text("import ctypes, pathlib\n"
                                          "ctypes.CDLL(str(pathlib.Path(__file__).parent / 'lib' / 'libtorch_cpu.so'))\n")
        run = "import paddle.fluid as fluid\nfluid.Scope()\n"
        for script in (f"import torch\n{run}", f"{run}import torch\n"):
            with self.subTest(script):
                self.run_script(script, code=1)
                self.assertIn("ImportError", self.stderr)
                self.assertEqual(self.stderr.count("libtorch_cpu.so"), 2, self.stderr)
                self.assertIn(str(fake), self.stderr)

    def test_importing_paddle_loads_no_libtorch(self):
        self.run_script("import paddle, paddle.fluid, sys\nassert 'regattarec._exec' not in sys.modules\n"
                        "assert 'libtorch' not in open('/proc/self/maps').read()\n")

    def test_examples_in_docstrings(self):
        self.assertGreater(run_examples(self, "paddle"), 5)

    def test_the_page_names_all_there_is(self):
        page = (EXAMPLES.parent / "docs" / "howto" / "fluid.md").read_text()
        out = self.check("""
import paddle.reader, paddle.dataset.uci_housing
for module in (paddle, paddle.reader, paddle.dataset, fluid, fluid.layers, fluid.optimizer, fluid.initializer, fluid.regularizer,
               fluid.clip, fluid.io, fluid.core, fluid.unique_name):
    for name in module.__all__:
        getattr(module, name)
        print(name)
""")
        missing = sorted({name for name in out.split() if f"`{name}`" not in page})
        self.assertEqual(missing, [])


if __name__ == "__main__":
    if sys.flags.optimize:
        sys.exit("these tests use assert")
    unittest.main()
