"""The operators of src/exec against formulas in NumPy: outputs, and gradients by finite differences, in float64."""
import json
import math
import pathlib
import subprocess
import unittest

import numpy as np

from parity import REGATTA

DRIVER = pathlib.Path(REGATTA).parent.parent / "tests" / "parity_operators"
TOLERANCE = 1e-5
STEP = 1e-6  # of the differences


class Rows:
    """Selected rows: rows[i] of a tensor of `height` rows is values[i]."""

    def __init__(self, rows, values, height):
        self.rows, self.values, self.height = rows, np.asarray(values, dtype=float), height

    def dense(self):
        out = np.zeros((self.height, *self.values.shape[1:]))
        np.add.at(out, self.rows, self.values)
        return out


class Lod:
    """A tensor with offsets."""

    def __init__(self, data, *levels):
        self.data, self.levels = np.asarray(data), [list(level) for level in levels]


def to_json(value):
    if isinstance(value, Rows):
        return {**to_json(value.values), "rows": list(value.rows), "height": value.height}
    if isinstance(value, Lod):
        return {**to_json(value.data), "lod": value.levels}
    value = np.asarray(value)
    return {"shape": list(value.shape), "dtype": str(value.dtype), "data": value.astype(float).ravel().tolist()}


def from_json(text):
    value = np.array([math.nan if x is None else x for x in text["data"]], dtype=float).reshape(text["shape"])
    return Rows([int(row) for row in text["rows"]], value, text["height"]) if "rows" in text else value


class Case:
    """One operator. `formula` takes the inputs by slot and gives the outputs by slot, or the one output."""

    def __init__(self, type, inputs, formula, out="Out", grad=None, outputs=None, lod=None, **attributes):
        self.type, self.formula, self.out, self.attributes, self.lod = type, formula, out, attributes, lod
        self.inputs = {slot: value if isinstance(value, list) else [value] for slot, value in inputs.items()}
        self.outputs = outputs or {out: 1}
        is_float = lambda value: np.asarray(getattr(value, "data", value)).dtype == np.float64
        self.grad = grad if grad is not None else [s for s, v in self.inputs.items() if is_float(v[0])]

    def expected(self, inputs):
        plain = {slot: [getattr(v, "data", v) if isinstance(v, Lod) else v for v in values]
                 for slot, values in inputs.items()}
        found = self.formula(**{slot: values[0] if len(values) == 1 and slot not in ("Xs",) else values
                                for slot, values in plain.items()})
        return found if isinstance(found, dict) else {self.out: found}

    def weights(self):
        shape = np.shape(np.asarray(self.expected(self.inputs)[self.out]))
        return np.random.default_rng(3).normal(size=shape)

    def to_json(self):
        text = {"type": self.type, "inputs": {s: [to_json(v) for v in values] for s, values in self.inputs.items()},
                "outputs": self.outputs, "attributes": self.attributes}
        if self.grad:
            text.update(gradient_of=self.out, weights=to_json(self.weights()), gradient_to=self.grad)
        return text

    def differences(self, slot, k):
        """The gradient of the weighted sum of the output to value k of the slot."""
        weights = self.weights()
        value = self.inputs[slot][k]
        data = value.data if isinstance(value, Lod) else value
        gradient = np.zeros_like(data)

        def loss(at, change):
            moved = data.copy()
            moved[at] += change
            values = list(self.inputs[slot])
            values[k] = Lod(moved, *value.levels) if isinstance(value, Lod) else moved
            return float((np.asarray(self.expected({**self.inputs, slot: values})[self.out]) * weights).sum())

        for at in np.ndindex(data.shape):
            gradient[at] = (loss(at, STEP) - loss(at, -STEP)) / (2 * STEP)
        return gradient

    def check(self, test, result):
        test.assertNotIn("error", result, result.get("error"))
        for slot, want in self.expected(self.inputs).items():
            want = want if isinstance(want, list) else [want]
            for got, each in zip(result["outputs"][slot], want, strict=True):
                got = from_json(got)
                if isinstance(each, Rows):
                    test.assertIsInstance(got, Rows)
                    test.assertEqual(got.height, each.height)
                    got, each = got.dense(), each.dense()
                each = np.asarray(each, dtype=float)
                test.assertEqual(got.shape, each.shape or (1,), slot)
                np.testing.assert_allclose(got.reshape(each.shape), each, TOLERANCE, TOLERANCE, err_msg=slot)
        if self.lod is not None:
            test.assertEqual(result["outputs"][self.out][0].get("lod", []), [list(level) for level in self.lod])
        for slot in self.grad:
            for k, got in enumerate(result["gradients"][slot]):
                np.testing.assert_allclose(from_json(got), self.differences(slot, k), 1e-4, TOLERANCE,
                                           err_msg=f"gradient to {slot}")


def random(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, size=shape)


def run(cases):
    lines = "".join(json.dumps(case if isinstance(case, dict) else case.to_json()) + "\n" for case in cases)
    done = subprocess.run([DRIVER], input=lines, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


class OperatorsTest(unittest.TestCase):
    def check(self, cases):
        results = run(cases)
        self.assertEqual(len(results), len(cases))
        for case, result in zip(cases, results, strict=True):
            with self.subTest(type=case.type, attributes=case.attributes):
                case.check(self, result)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


erf = np.vectorize(math.erf)
X = random(3, 4)
POSITIVE = random(3, 4, low=0.2)


class ActivationTest(OperatorsTest):
    def test_functions_of_an_element(self):
        formulas = {
            "sigmoid": sigmoid, "logsigmoid": lambda X: np.log(sigmoid(X)), "relu": lambda X: np.maximum(X, 0),
            "tanh": np.tanh, "tanh_shrink": lambda X: X - np.tanh(X), "exp": np.exp, "square": lambda X: X**2,
            "abs": np.abs, "sin": np.sin, "cos": np.cos, "atan": np.arctan, "erf": erf, "sign": np.sign,
            "ceil": np.ceil, "floor": np.floor, "round": lambda X: np.sign(X) * np.floor(np.abs(X) + 0.5),
            "softplus": lambda X: np.log1p(np.exp(X)), "softsign": lambda X: X / (1 + np.abs(X)),
        }
        flat = {"sign", "ceil", "floor", "round"}
        self.check([Case(type, {"X": X}, lambda X, f=formula: f(X), grad=[] if type in flat else None)
                    for type, formula in formulas.items()])
        positive = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda X: X**-0.5,
                    "reciprocal": lambda X: 1 / X}
        self.check([Case(type, {"X": POSITIVE}, lambda X, f=formula: f(X)) for type, formula in positive.items()])
        self.check([Case(type, {"X": X / 2.5}, lambda X, f=formula: f(X))
                    for type, formula in {"asin": np.arcsin, "acos": np.arccos}.items()])
        halves = np.array([-2.5, -0.5, 0.5, 1.5, 2.5])
        self.check([Case("round", {"X": halves}, lambda X: np.array([-3, -1, 1, 2, 3.0]), grad=[])])

    def test_functions_with_attributes(self):
        self.check([
            Case("scale", {"X": X}, lambda X: X * 3 + 2, scale=3.0, bias=2.0),
            Case("scale", {"X": X}, lambda X: (X + 2) * 3, scale=3.0, bias=2.0, bias_after_scale=False),
            Case("scale", {"X": np.array([5, -3])}, lambda X: np.array([15, -9]), scale=3.0),
            Case("scale", {"X": X, "ScaleTensor": np.array([4.0])}, lambda X, ScaleTensor: X * 4, grad=["X"]),
            Case("pow", {"X": POSITIVE}, lambda X: X**2.5, factor=2.5),
            Case("clip", {"X": X}, lambda X: np.clip(X, -1, 0.5), min=-1.0, max=0.5),
            Case("clip_by_norm", {"X": X}, lambda X: X / np.sqrt((X**2).sum()), max_norm=1.0),
            Case("clip_by_norm", {"X": X}, lambda X: X, max_norm=100.0),
            Case("increment", {"X": np.array([3.0])}, lambda X: X + 2, step=2.0, grad=[]),
            Case("relu6", {"X": 4 * X}, lambda X: np.clip(X, 0, 6)),
            Case("brelu", {"X": X}, lambda X: np.clip(X, -1, 1), t_min=-1.0, t_max=1.0),
            Case("leaky_relu", {"X": X}, lambda X: np.where(X > 0, X, 0.1 * X), alpha=0.1),
            Case("soft_relu", {"X": X}, lambda X: np.log1p(np.exp(np.clip(X, -1.5, 1.5))), threshold=1.5),
            Case("thresholded_relu", {"X": X}, lambda X: np.where(X > 0.7, X, 0), threshold=0.7),
            Case("elu", {"X": X}, lambda X: np.where(X > 0, X, 0.5 * np.expm1(X)), alpha=0.5),
            Case("selu", {"X": X}, lambda X: 1.0507009873554804 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
            Case("gelu", {"X": X}, lambda X: X * 0.5 * (1 + erf(X / math.sqrt(2)))),
            Case("gelu", {"X": X}, lambda X: 0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
                 approximate=True),
            Case("swish", {"X": X}, lambda X: X * sigmoid(2 * X), beta=2.0),
            Case("stanh", {"X": X}, lambda X: 1.7159 * np.tanh(0.67 * X)),
            Case("hard_sigmoid", {"X": 2 * X}, lambda X: np.clip(0.2 * X + 0.5, 0, 1)),
            Case("hard_swish", {"X": 2 * X}, lambda X: X * np.clip(X + 3, 0, 6) / 6),
            Case("hard_shrink", {"X": X}, lambda X: np.where(np.abs(X) > 0.5, X, 0)),
            Case("softshrink", {"X": X}, lambda X: np.sign(X) * np.maximum(np.abs(X) - 0.5, 0)),
            Case("softmax", {"X": X}, lambda X: softmax(X)),
            Case("softmax", {"X": X}, lambda X: softmax(X, 0), axis=0),
            Case("cumsum", {"X": X}, lambda X: X.cumsum(-1)),
            Case("cumsum", {"X": X}, lambda X: X[::-1].cumsum(0)[::-1] - X, axis=0, exclusive=True, reverse=True),
            Case("label_smooth", {"X": X}, lambda X: 0.9 * X + 0.1 / 4, epsilon=0.1),
            Case("label_smooth", {"X": X, "PriorDist": random(1, 4, seed=1)},
                 lambda X, PriorDist: 0.9 * X + 0.1 * PriorDist, epsilon=0.1, grad=["X"]),
            Case("maxout", {"X": random(2, 6, 2, 2)}, lambda X: X.reshape(2, 3, 2, 2, 2).max(2), groups=2),
            Case("prelu", {"X": X, "Alpha": np.array([0.3])}, lambda X, Alpha: np.where(X > 0, X, Alpha * X), mode="all"),
            Case("prelu", {"X": random(2, 3, 2), "Alpha": random(3, seed=2)},
                 lambda X, Alpha: np.where(X > 0, X, Alpha.reshape(1, 3, 1) * X), mode="channel"),
            Case("prelu", {"X": X, "Alpha": random(1, 4, seed=2)}, lambda X, Alpha: np.where(X > 0, X, Alpha * X),
                 mode="element"),
        ])

    def test_selected_rows_stay_rows(self):
        rows = Rows([2, 0, 2], random(3, 2), 4)
        self.check([
            Case("scale", {"X": rows}, lambda X: Rows(X.rows, X.values * 3, 4), grad=[], scale=3.0),
            Case("clip", {"X": rows}, lambda X: Rows(X.rows, np.clip(X.values, -1, 1), 4), grad=[], min=-1.0, max=1.0),
            Case("clip_by_norm", {"X": rows}, lambda X: Rows(range(4), X.dense() / np.sqrt((X.dense()**2).sum()), 4),
                 grad=[], max_norm=1.0),
            Case("elementwise_mul", {"X": rows, "Y": np.array([0.5])}, lambda X, Y: Rows(X.rows, X.values / 2, 4),
                 grad=[]),
        ])


class ElementwiseTest(OperatorsTest):
    def test_functions_of_two(self):
        formulas = {"elementwise_add": np.add, "elementwise_sub": np.subtract, "elementwise_mul": np.multiply,
                    "elementwise_div": np.divide, "elementwise_max": np.maximum, "elementwise_min": np.minimum,
                    "elementwise_pow": np.power}
        y = random(3, 4, seed=1, low=0.5)
        self.check([Case(type, {"X": POSITIVE, "Y": y}, lambda X, Y, f=f: f(X, Y)) for type, f in formulas.items()])
        self.check([Case("minus", {"X": X, "Y": y}, lambda X, Y: X - Y)])
        integers = {"X": np.array([7, -7, 9]), "Y": np.array([2, 2, 4])}
        self.check([Case("elementwise_mod", integers, lambda X, Y: X % Y),
                    Case("elementwise_floordiv", integers, lambda X, Y: X // Y)])

    def test_the_shorter_one_lies_along_the_axis(self):
        long = random(2, 3, 4, 5)
        self.check([
            Case("elementwise_add", {"X": long, "Y": random(5, seed=1)}, lambda X, Y: X + Y),
            Case("elementwise_mul", {"X": long, "Y": random(3, 4, seed=1)}, lambda X, Y: X * Y.reshape(3, 4, 1), axis=1),
            Case("elementwise_sub", {"X": long, "Y": random(2, seed=1)}, lambda X, Y: X - Y.reshape(2, 1, 1, 1), axis=0),
            Case("elementwise_add", {"X": long, "Y": random(2, 1, seed=1)}, lambda X, Y: X + Y.reshape(2, 1, 1, 1),
                 axis=0),
            Case("elementwise_mul", {"X": long, "Y": np.array([2.0])}, lambda X, Y: X * Y),
        ])

    def test_comparisons_and_truths(self):
        x, y = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])
        formulas = {"less_than": np.less, "less_equal": np.less_equal, "greater_than": np.greater,
                    "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal}
        self.check([Case(type, {"X": x, "Y": y}, lambda X, Y, f=f: f(X, Y), grad=[]) for type, f in formulas.items()])
        a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
        logic = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
        self.check([Case(type, {"X": a, "Y": b}, lambda X, Y, f=f: f(X, Y), grad=[]) for type, f in logic.items()])
        self.check([Case("logical_not", {"X": a}, lambda X: ~X, grad=[]),
                    Case("isfinite", {"X": x}, lambda X: [True], grad=[]),
                    Case("isnan", {"X": x}, lambda X: [False], grad=[]),
                    Case("isinf", {"X": x}, lambda X: [False], grad=[]),
                    Case("is_empty", {"X": x}, lambda X: [False], grad=[])])


class MatrixTest(OperatorsTest):
    def test_products(self):
        a, b = random(3, 4), random(4, 2, seed=1)
        batches, others = random(2, 3, 4), random(2, 4, 5, seed=1)
        self.check([
            Case("mul", {"X": a, "Y": b}, lambda X, Y: X @ Y),
            Case("mul", {"X": random(2, 3, 4), "Y": random(12, 2, seed=1)}, lambda X, Y: X.reshape(2, 12) @ Y),
            Case("mul", {"X": batches, "Y": b}, lambda X, Y: X @ Y, x_num_col_dims=2),
            Case("matmul", {"X": a, "Y": b}, lambda X, Y: X @ Y),
            Case("matmul", {"X": a, "Y": random(2, 4, seed=1)}, lambda X, Y: 3 * X @ Y.T, transpose_Y=True, alpha=3.0),
            Case("matmul", {"X": a.T.copy(), "Y": b}, lambda X, Y: X.T @ Y, transpose_X=True),
            Case("matmul", {"X": batches, "Y": others}, lambda X, Y: X @ Y),
            Case("matmul", {"X": batches, "Y": b}, lambda X, Y: X @ Y),
            Case("matmul", {"X": random(4), "Y": b}, lambda X, Y: X @ Y),
            Case("matmul", {"X": random(4), "Y": random(4, seed=1)}, lambda X, Y: np.array([X @ Y])),
            Case("bmm", {"X": batches, "Y": others}, lambda X, Y: X @ Y),
            Case("dot", {"X": a, "Y": random(3, 4, seed=1)}, lambda X, Y: (X * Y).sum(-1, keepdims=True)),
            Case("addmm", {"Input": random(3, 2, seed=2), "X": a, "Y": b}, lambda Input, X, Y: 2 * Input + 3 * X @ Y,
                 Alpha=3.0, Beta=2.0),
        ])

    def test_lookups(self):
        w, ids = random(5, 2), np.array([[3], [0], [3]])
        masked = lambda W, Ids: np.where(Ids == 3, 0, W[Ids.ravel()])
        self.check([
            Case("lookup_table", {"W": w, "Ids": ids}, lambda W, Ids: W[Ids.ravel()]),
            Case("lookup_table", {"W": w, "Ids": ids}, masked, padding_idx=3),
            Case("lookup_table", {"W": w, "Ids": Lod(ids, [0, 1, 3])}, lambda W, Ids: W[Ids.ravel()], lod=[[0, 1, 3]]),
            Case("lookup_table_v2", {"W": w, "Ids": ids}, lambda W, Ids: W[Ids]),
        ])

    def test_refusals(self):
        results = run([Case("lookup_table", {"W": random(5, 2), "Ids": np.array([[5]])}, None, grad=[]).to_json(),
                       Case("cross_entropy", {"X": random(1, 2), "Label": np.array([[2]])}, None, "Y", grad=[]).to_json()])
        self.assertIn("Ids has 5 and W has 5 rows", results[0]["error"])
        self.assertIn("a label is 2 and there are 2 classes", results[1]["error"])


class ReduceTest(OperatorsTest):
    def test_reductions(self):
        x = random(2, 3, 4)
        formulas = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min,
                    "reduce_prod": np.prod, "frobenius_norm": lambda x, axis, keepdims=False:
                    np.sqrt((x**2).sum(axis=axis, keepdims=keepdims)),
                    "logsumexp": lambda x, axis, keepdims=False: np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))}
        cases = []
        for type, f in formulas.items():
            cases += [Case(type, {"X": x}, lambda X, f=f: f(X, axis=0)),
                      Case(type, {"X": x}, lambda X, f=f: f(X, axis=(0, 2)), dim=[0, -1]),
                      Case(type, {"X": x}, lambda X, f=f: f(X, axis=1, keepdims=True), dim=[1], keep_dim=True),
                      Case(type, {"X": x}, lambda X, f=f: f(X, axis=(0, 1, 2)).reshape(1), reduce_all=True)]
        self.check(cases)
        truths = np.array([[True, False], [True, True]])
        self.check([Case("reduce_all", {"X": truths}, lambda X: X.all(1), grad=[], dim=[1]),
                    Case("reduce_any", {"X": truths}, lambda X: X.any().reshape(1), grad=[], reduce_all=True)])

    def test_sums_and_norms_of_all(self):
        self.check([
            Case("mean", {"X": X}, lambda X: X.mean().reshape(1)),
            Case("l1_norm", {"X": X}, lambda X: np.abs(X).sum().reshape(1)),
            Case("squared_l2_norm", {"X": X}, lambda X: (X**2).sum().reshape(1)),
            Case("sum", {"X": [X, X + 1, X * 2]}, lambda X: X[0] + X[1] + X[2]),
        ])
        a, b = Rows([1, 0], random(2, 2), 3), Rows([1], random(1, 2, seed=1), 3)
        self.check([
            Case("sum", {"X": [a, b]}, lambda X: Rows([1, 0, 1], np.concatenate([X[0].values, X[1].values]), 3), grad=[]),
            Case("sum", {"X": [a, random(3, 2, seed=2)]}, lambda X: X[0].dense() + X[1], grad=[]),
        ])

    def test_places(self):
        x = random(3, 4)
        order = lambda X: {"Out": -np.sort(-X, 1), "Indices": np.argsort(-X, 1, kind="stable")}
        both = {"Out": 1, "Indices": 1}
        self.check([
            Case("arg_max", {"X": x}, lambda X: X.argmax(1), grad=[], axis=1),
            Case("arg_min", {"X": x}, lambda X: X.argmin(0), grad=[], axis=0),
            Case("argsort", {"X": x}, order, outputs=both, descending=True),
            Case("top_k", {"X": x}, lambda X: {k: v[:, :2] for k, v in order(X).items()}, outputs=both, k=2),
        ])


class FillTest(OperatorsTest):
    def test_constants(self):
        batch = random(5, 2)
        self.check([
            Case("fill_constant", {}, lambda: np.full((2, 3), 1.5), shape=[2, 3], value=1.5),
            Case("fill_constant", {}, lambda: np.full((1,), 2.0**53 - 1), shape=[1], dtype=3, str_value=str(2**53 - 1)),
            Case("fill_constant_batch_size_like", {"Input": batch}, lambda Input: np.full((5, 3), 2.0), grad=[],
                 shape=[-1, 3], value=2.0),
            Case("fill_zeros_like", {"X": batch}, lambda X: np.zeros((5, 2)), grad=[]),
            Case("fill_any_like", {"X": batch}, lambda X: np.full((5, 2), 3.0), grad=[], value=3.0),
            Case("assign_value", {}, lambda: np.array([[1, 2], [3, 4.0]]), shape=[2, 2], dtype=6,
                 fp32_values=[1.0, 2.0, 3.0, 4.0]),
            Case("assign_value", {}, lambda: np.array([5, 6]), shape=[2], dtype=3, int64_values=[5, 6]),
            Case("eye", {}, lambda: np.eye(2, 3), num_rows=2, num_columns=3),
            Case("range", {"Start": np.array([1]), "End": np.array([8]), "Step": np.array([3])},
                 lambda **_: np.array([1, 4, 7])),
            Case("linspace", {"Start": np.array([0.0]), "Stop": np.array([1.0]), "Num": np.array([5])},
                 lambda **_: np.linspace(0, 1, 5), grad=[]),
        ])

    def test_random_numbers_have_their_distribution(self):
        def case(type, **attributes):
            return {"type": type, "inputs": {}, "outputs": {"Out": 1}, "attributes": {"seed": 5, **attributes}}
        results = [from_json(result["outputs"]["Out"][0]) for result in run([
            case("uniform_random", shape=[200, 100], min=-1.0, max=3.0),
            case("gaussian_random", shape=[200, 100], mean=1.0, std=2.0),
            case("truncated_gaussian_random", shape=[200, 100], mean=1.0, std=2.0),
            case("randint", shape=[200, 100], low=2, high=5), case("randperm", n=50),
            case("uniform_random", shape=[200, 100], min=-1.0, max=3.0),
            case("uniform_random", shape=[200, 100], min=-1.0, max=3.0, seed=6)])]
        uniform, gaussian, truncated, integers, permutation, again, other = results
        self.assertAlmostEqual(uniform.mean(), 1, delta=0.05)
        self.assertAlmostEqual(uniform.std(), 4 / math.sqrt(12), delta=0.05)
        self.assertTrue((uniform >= -1).all() and (uniform < 3).all())
        self.assertAlmostEqual(gaussian.mean(), 1, delta=0.08)
        self.assertAlmostEqual(gaussian.std(), 2, delta=0.08)
        self.assertTrue((np.abs(truncated - 1) <= 4).all())
        self.assertAlmostEqual(truncated.std(), 2 * 0.8796, delta=0.05)  # of a standard normal within two deviations
        self.assertEqual(set(integers.ravel()), {2, 3, 4})
        self.assertEqual(sorted(permutation), list(range(50)))
        self.assertTrue((uniform == again).all())
        self.assertFalse((uniform == other).all())


class LossTest(OperatorsTest):
    def test_losses_of_classes(self):
        p, label, soft = softmax(X), np.array([[1], [3], [0]]), softmax(random(3, 4, seed=1))
        logits = random(3, 4, seed=2)
        pick = lambda X, Label: -np.log(np.take_along_axis(X, Label, 1))
        ignored = lambda X, Label: np.where(Label == 3, 0, pick(X, Label))
        both = {"Softmax": 1, "Loss": 1}

        def bpr(X, Label):
            apart = X - np.take_along_axis(X, Label, 1)
            rest = np.ones_like(X)
            np.put_along_axis(rest, Label, 0, 1)
            return (np.log1p(np.exp(apart)) * rest).sum(1, keepdims=True) / 3

        self.check([
            Case("cross_entropy", {"X": p, "Label": label}, pick, "Y"),
            Case("cross_entropy", {"X": p, "Label": label}, ignored, "Y", ignore_index=3),
            Case("cross_entropy", {"X": p, "Label": soft}, lambda X, Label: -(Label * np.log(X)).sum(1, keepdims=True),
                 "Y", grad=["X"], soft_label=True),
            Case("cross_entropy2", {"X": p, "Label": label}, pick, "Y"),
            Case("softmax_with_cross_entropy", {"Logits": logits, "Label": label},
                 lambda Logits, Label: {"Softmax": softmax(Logits), "Loss": pick(softmax(Logits), Label)}, "Loss",
                 outputs=both),
            Case("softmax_with_cross_entropy", {"Logits": logits, "Label": soft},
                 lambda Logits, Label: -(Label * np.log(softmax(Logits))).sum(1, keepdims=True), "Loss",
                 outputs=both, grad=["Logits"], soft_label=True),
            Case("bpr_loss", {"X": logits, "Label": label}, bpr, "Y"),
        ])

    def test_losses_of_numbers(self):
        p, label = random(4, 1, low=0.1, high=0.9), np.array([[1.0], [0], [1], [0]])
        x, y = random(4, 3), random(4, 3, seed=1)
        one = random(4, 1, seed=3)
        log_loss = lambda Predicted, Labels: (-Labels * np.log(Predicted + 1e-4)
                                              - (1 - Labels) * np.log(1 - Predicted + 1e-4))
        cross = lambda X, Label: np.maximum(X, 0) - X * Label + np.log1p(np.exp(-np.abs(X)))
        huber = lambda X, Y: np.where(np.abs(Y - X) <= 0.7, 0.5 * (Y - X)**2, 0.7 * (np.abs(Y - X) - 0.35))
        smooth = lambda d, s2: np.where(np.abs(d) < 1 / s2, 0.5 * d * d * s2, np.abs(d) - 0.5 / s2)
        inside, outside = random(4, 3, seed=4, low=0.5), random(4, 3, seed=5, low=0.5)
        kl = lambda X, Target: Target * (np.log(Target) - X)
        target = softmax(random(4, 3, seed=6))
        self.check([
            Case("sigmoid_cross_entropy_with_logits", {"X": one, "Label": label}, cross, grad=["X"]),
            Case("sigmoid_cross_entropy_with_logits", {"X": one, "Label": label},
                 lambda X, Label: np.where(Label == 0, 0, cross(X, Label)) / 2, grad=["X"], ignore_index=0,
                 normalize=True),
            Case("log_loss", {"Predicted": p, "Labels": label}, log_loss, "Loss", grad=["Predicted"]),
            Case("bce_loss", {"X": p, "Label": label}, lambda X, Label: -Label * np.log(X) - (1 - Label) * np.log(1 - X),
                 grad=["X"]),
            Case("hinge_loss", {"Logits": one, "Labels": label},
                 lambda Logits, Labels: np.maximum(0, 1 - (2 * Labels - 1) * Logits), "Loss", grad=["Logits"]),
            Case("rank_loss", {"Label": label, "Left": one, "Right": p},
                 lambda Label, Left, Right: np.log1p(np.exp(Left - Right)) - Label * (Left - Right),
                 grad=["Left", "Right"]),
            Case("margin_rank_loss", {"X1": one, "X2": p, "Label": 2 * label - 1},
                 lambda X1, X2, Label: np.maximum(0, -Label * (X1 - X2) + 0.3), grad=["X1", "X2"], margin=0.3),
            Case("huber_loss", {"X": x, "Y": y}, huber, delta=0.7),
            Case("smooth_l1_loss", {"X": x, "Y": y}, lambda X, Y: smooth(X - Y, 4.0).sum(1, keepdims=True), sigma=2.0),
            Case("smooth_l1_loss", {"X": x, "Y": y, "InsideWeight": inside, "OutsideWeight": outside},
                 lambda X, Y, InsideWeight, OutsideWeight:
                 (smooth((X - Y) * InsideWeight, 1.0) * OutsideWeight).sum(1, keepdims=True), grad=["X", "Y"]),
            Case("squared_l2_distance", {"X": x, "Y": y}, lambda X, Y: ((X - Y)**2).sum(1, keepdims=True)),
            Case("kldiv_loss", {"X": x, "Target": target}, lambda X, Target: kl(X, Target).mean().reshape(1), "Loss",
                 grad=["X"]),
            Case("kldiv_loss", {"X": x, "Target": target}, lambda X, Target: kl(X, Target).sum().reshape(1) / 4, "Loss",
                 grad=["X"], reduction="batchmean"),
            Case("kldiv_loss", {"X": x, "Target": target}, kl, "Loss", grad=["X"], reduction="none"),
        ])

    def test_teacher_and_student(self):
        def formula(X, Label):
            student = np.log1p(np.exp(X))
            return np.select([Label < -1, Label < 0, Label < 1],
                             [student, student - X, 2 * student - X * Label], 2 * student - X - X * (Label - 1))
        self.check([Case("teacher_student_sigmoid_loss", {"X": random(5, 1), "Label": np.array(
            [[-2.0], [-1], [0.3], [0], [1.6]])}, formula, "Y", grad=["X"])])


class TensorTest(OperatorsTest):
    def test_shapes_change(self):
        x = random(2, 3, 4)
        one = random(2, 1, 3, 1)
        self.check([
            Case("reshape2", {"X": x}, lambda X: X.reshape(2, 12), shape=[0, -1]),
            Case("reshape", {"X": x}, lambda X: X.reshape(6, 4), shape=[6, 4]),
            Case("reshape2", {"X": x, "Shape": np.array([4, 6])}, lambda X, Shape: X.reshape(4, 6), shape=[-1, 6]),
            Case("squeeze2", {"X": one}, lambda X: X.reshape(2, 3)),
            Case("squeeze2", {"X": one}, lambda X: X.reshape(2, 1, 3), axes=[-1]),
            Case("unsqueeze2", {"X": x}, lambda X: X.reshape(1, 2, 3, 1, 4), axes=[0, 3]),
            Case("transpose2", {"X": x}, lambda X: X.transpose(2, 0, 1), axis=[2, 0, 1]),
            Case("flatten2", {"X": x}, lambda X: X.reshape(6, 4), axis=2),
            Case("flatten2", {"X": x}, lambda X: X.reshape(1, 24), axis=0),
            Case("reverse", {"X": x}, lambda X: X[::-1, :, ::-1], axis=[0, 2]),
            Case("expand", {"X": x}, lambda X: np.tile(X, (2, 1, 3)), expand_times=[2, 1, 3]),
            Case("expand_as", {"X": random(2, 1), "target_tensor": random(4, 3)},
                 lambda X, target_tensor: np.tile(X, (2, 3)), grad=["X"]),
            Case("shape", {"Input": x}, lambda Input: np.array([2, 3, 4]), grad=[]),
            Case("size", {"Input": x}, lambda Input: np.array([24]), grad=[]),
            Case("cast", {"X": x}, lambda X: X.astype(int), grad=[], out_dtype=3),
            Case("assign", {"X": x}, lambda X: X),
        ])

    def test_joined_and_cut(self):
        x, y = random(2, 3), random(2, 2, seed=1)
        self.check([
            Case("concat", {"X": [x, y]}, lambda X: np.concatenate(X, 1), axis=1),
            Case("concat", {"X": [x, x + 1]}, lambda X: np.concatenate(X, 0)),
            Case("stack", {"X": [x, x + 1]}, lambda X: np.stack(X, 1), "Y", axis=1),
            Case("split", {"X": random(2, 6)}, lambda X: {"Out": np.split(X, 3, 1)}, grad=[], outputs={"Out": 3}, num=3,
                 axis=1),
            Case("split", {"X": random(2, 6)}, lambda X: {"Out": np.split(X, [1, 3], 1)}, grad=[], outputs={"Out": 3},
                 sections=[1, 2, -1], axis=-1),
            Case("unstack", {"X": x}, lambda X: {"Y": [X[0], X[1]]}, "Y", grad=[], outputs={"Y": 2}, num=2),
            Case("unbind", {"X": x}, lambda X: {"Out": [X[:, i] for i in range(3)]}, grad=[], outputs={"Out": 3},
                 axis=1),
            Case("slice", {"Input": random(4, 5)}, lambda Input: Input[1:3, -2:], axes=[0, 1], starts=[1, -2],
                 ends=[3, 100]),
            Case("slice", {"Input": random(4, 5)}, lambda Input: Input[2], axes=[0], starts=[2], ends=[3],
                 decrease_axis=[0]),
            Case("strided_slice", {"Input": random(4, 5)}, lambda Input: Input[::2, 3:0:-2], axes=[0, 1], starts=[0, 3],
                 ends=[4, 0], strides=[2, -2]),
            Case("pad", {"X": x}, lambda X: np.pad(X, ((1, 0), (0, 2)), constant_values=7), paddings=[1, 0, 0, 2],
                 pad_value=7.0),
            Case("pad2d", {"X": random(1, 2, 3, 3)}, lambda X: np.pad(X, ((0, 0), (0, 0), (1, 2), (0, 1))),
                 paddings=[1, 2, 0, 1]),
            Case("pad2d", {"X": random(1, 2, 3, 3)}, lambda X: np.pad(X, ((0, 0), (0, 0), (1, 2), (0, 1)), "reflect"),
                 paddings=[1, 2, 0, 1], mode="reflect"),
            Case("pad2d", {"X": random(1, 3, 3, 2)}, lambda X: np.pad(X, ((0, 0), (1, 2), (0, 1), (0, 0)), "edge"),
                 paddings=[1, 2, 0, 1], mode="edge", data_format="NHWC"),
            Case("pad_constant_like", {"X": random(3, 4), "Y": y},
                 lambda X, Y: np.pad(Y, ((0, 1), (0, 2)), constant_values=2), grad=["Y"], pad_value=2.0),
        ])

    def test_picked(self):
        x, index = random(4, 3), np.array([2, 0, 2])
        updates = random(3, 3, seed=1)

        def added(X, Ids, Updates):
            out = X.copy()
            out[Ids] = 0
            np.add.at(out, Ids, Updates)
            return out

        def added_at(X, Index, Updates):
            out = X.copy()
            np.add.at(out, tuple(Index.T), Updates)
            return out

        pairs = np.array([[0, 1], [3, 2], [0, 1]])
        distinct = np.array([3, 0, 1])
        self.check([
            Case("gather", {"X": x, "Index": index}, lambda X, Index: X[Index]),
            Case("gather_nd", {"X": x, "Index": pairs}, lambda X, Index: X[Index[:, 0], Index[:, 1]]),
            Case("scatter", {"X": x, "Ids": distinct, "Updates": updates},
                 lambda X, Ids, Updates: np.concatenate([Updates[1:], X[2:3], Updates[:1]])),
            Case("scatter", {"X": x, "Ids": index, "Updates": updates}, added, overwrite=False),
            Case("scatter_nd_add", {"X": x, "Index": pairs, "Updates": random(3)}, added_at),
            Case("index_select", {"X": x, "Index": index}, lambda X, Index: X[:, Index], dim=1),
            Case("index_sample", {"X": random(3, 4), "Index": np.array([[0, 3], [1, 1], [2, 0]])},
                 lambda X, Index: np.take_along_axis(X, Index, 1)),
            Case("one_hot", {"X": np.array([[1], [0]])}, lambda X: np.array([[0, 1, 0], [1, 0, 0]]), depth=3),
            Case("one_hot_v2", {"X": np.array([1, 5])}, lambda X: np.array([[0, 1, 0], [0, 0, 0]]), depth=3,
                 allow_out_of_range=True),
            Case("where", {"Condition": x > 0, "X": x, "Y": x * 3}, lambda Condition, X, Y: np.where(Condition, X, Y)),
            Case("where_index", {"Condition": np.array([[True, False], [True, True]])},
                 lambda Condition: np.argwhere(Condition)),
            Case("multiplex", {"Ids": np.array([[1], [0]]), "X": [random(2, 3), random(2, 3, seed=1)]},
                 lambda Ids, X: np.stack([X[1][0], X[0][1]])),
            Case("norm", {"X": x}, lambda X: X / np.sqrt((X**2).sum(1, keepdims=True) + 1e-10), axis=1),
            Case("shard_index", {"X": np.array([[1], [6], [12], [19]])}, lambda X: np.array([[-1], [-1], [2], [9]]),
                 index_num=20, nshards=2, shard_id=1),
            Case("unique_with_counts", {"X": np.array([2, 3, 3, 1, 5, 3])}, lambda X: {
                "Out": np.array([2, 3, 1, 5]), "Index": np.array([0, 1, 1, 2, 3, 1]), "Count": np.array([1, 3, 1, 1])},
                outputs={"Out": 1, "Index": 1, "Count": 1}),
            Case("diag", {"Diagonal": random(3)}, lambda Diagonal: np.diag(Diagonal)),
            Case("sampling_id", {"X": np.array([[0, 1.0, 0], [0, 0, 1]])}, lambda X: np.array([1, 2]), grad=[]),
        ])
        rows = Rows([2, 0, 2], random(3, 2), 4)
        self.check([
            Case("merge_selected_rows", {"X": rows}, lambda X: X, grad=[]),
            Case("get_tensor_from_selected_rows", {"X": rows}, lambda X: X.values, grad=[]),
        ])


class MetricTest(OperatorsTest):
    def test_accuracy(self):
        both = {"Accuracy": 1, "Correct": 1, "Total": 1}
        self.check([Case("accuracy", {"Out": random(3, 2), "Indices": np.array([[1, 2], [0, 1], [2, 0]]),
                                      "Label": np.array([[2], [2], [2]])},
                         lambda **_: {"Accuracy": [2 / 3], "Correct": [2], "Total": [3]}, "Accuracy", grad=[],
                         outputs=both)])

    def test_auc_counts_pairs_in_order(self):
        predict, label = random(60, low=0.0, high=1.0), np.random.default_rng(1).integers(0, 2, 60)
        bins = (predict * 99).astype(int)
        pairs = [(a > b) + (a == b) / 2 for a in bins[label == 1] for b in bins[label == 0]]
        counts = lambda chosen: np.bincount(chosen, minlength=100).reshape(1, 100)
        zeros = np.zeros((1, 100), dtype=np.int64)
        outputs = {"AUC": 1, "StatPosOut": 1, "StatNegOut": 1}
        two = np.stack([1 - predict, predict], 1)
        self.check([Case("auc", {"Predict": two, "Label": label.reshape(-1, 1), "StatPos": zeros, "StatNeg": zeros},
                         lambda **_: {"AUC": [np.mean(pairs)], "StatPosOut": counts(bins[label == 1]),
                                      "StatNegOut": counts(bins[label == 0])}, "AUC", grad=[], outputs=outputs,
                         num_thresholds=99, slide_steps=0)])

    def test_auc_forgets_the_batch_before_the_last_steps(self):
        bins, steps = 10, 2
        state = np.zeros(((steps + 1) * bins + 1,), dtype=np.int64)
        positive, negative = state.copy(), state.copy()
        positive[3] = positive[2 * bins + 3] = 5  # of the batch two steps ago
        positive[bins + 7] = positive[2 * bins + 7] = 1
        negative[bins + 4] = negative[2 * bins + 4] = 1
        positive[-1] = negative[-1] = 2

        def formula(StatPos, StatNeg, **_):
            p, n = StatPos.copy(), StatNeg.copy()
            p[3] = p[2 * bins + 3] = 0
            p[8] = p[2 * bins + 8] = 1
            n[8] = n[2 * bins + 8] = 1
            p[-1] = n[-1] = 3
            return {"AUC": [(1 + 1 + 0.5 + 0) / 4], "StatPosOut": p, "StatNegOut": n}  # 7>4, 8>4, 8=8, 7<8

        self.check([Case("auc", {"Predict": np.array([[0.9], [0.9]]), "Label": np.array([[1], [0]]),
                                 "StatPos": positive, "StatNeg": negative}, formula, "AUC", grad=[],
                         outputs={"AUC": 1, "StatPosOut": 1, "StatNegOut": 1}, num_thresholds=9, slide_steps=2)])


class NnTest(OperatorsTest):
    def test_normalisations(self):
        x = random(4, 3, 2, 2)
        scale, bias, mean, variance = (random(3, seed=i, low=0.5) for i in range(1, 5))
        shaped = lambda v: v.reshape(1, 3, 1, 1)

        def batch_norm(X, Scale, Bias, Mean, Variance):
            m, v = X.mean((0, 2, 3)), X.var((0, 2, 3))
            return {"Y": (X - shaped(m)) / np.sqrt(shaped(v) + 1e-5) * shaped(Scale) + shaped(Bias),
                    "MeanOut": 0.9 * Mean + 0.1 * m, "VarianceOut": 0.9 * Variance + 0.1 * v}

        inputs = {"X": x, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
        outputs = {"Y": 1, "MeanOut": 1, "VarianceOut": 1}
        layer = lambda X, Scale, Bias: ((X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
                                        * Scale + Bias)

        def group(X, Scale, Bias):
            g = X.reshape(2, 2, 2, 2, 2)
            g = (g - g.mean((2, 3, 4), keepdims=True)) / np.sqrt(g.var((2, 3, 4), keepdims=True) + 1e-5)
            return g.reshape(X.shape) * Scale.reshape(1, 4, 1, 1) + Bias.reshape(1, 4, 1, 1)

        self.check([
            Case("batch_norm", inputs, batch_norm, "Y", grad=["X", "Scale", "Bias"], outputs=outputs),
            Case("batch_norm", inputs, lambda X, Scale, Bias, Mean, Variance:
                 (X - shaped(Mean)) / np.sqrt(shaped(Variance) + 1e-5) * shaped(Scale) + shaped(Bias), "Y",
                 grad=["X", "Scale", "Bias"], outputs=outputs, is_test=True),
            Case("layer_norm", {"X": random(3, 5), "Scale": random(5, seed=1), "Bias": random(5, seed=2)}, layer, "Y"),
            Case("group_norm", {"X": random(2, 4, 2, 2), "Scale": random(4, seed=1), "Bias": random(4, seed=2)}, group,
                 "Y", groups=2),
            Case("cos_sim", {"X": random(3, 4), "Y": random(3, 4, seed=1)}, lambda X, Y: (X * Y).sum(1, keepdims=True)
                 / np.sqrt((X**2).sum(1, keepdims=True) * (Y**2).sum(1, keepdims=True))),
            Case("bilinear_tensor_product", {"X": random(2, 3), "Y": random(2, 4, seed=1),
                                             "Weight": random(5, 3, 4, seed=2), "Bias": random(1, 5, seed=3)},
                 lambda X, Y, Weight, Bias: np.einsum("ni,kij,nj->nk", X, Weight, Y) + Bias),
        ])

    def test_windows(self):
        x, w = random(1, 2, 5, 5), random(3, 2, 3, 3, seed=1)

        def conv(X, W, stride=1):
            windows = np.lib.stride_tricks.sliding_window_view(X, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
            return np.einsum("nchwij,kcij->nkhw", windows, W)

        around = lambda X, *p, value=0: np.pad(X, ((0, 0), (0, 0), p[:2], p[2:]), constant_values=value)

        def pool(X, f, stride=2):
            return f(np.lib.stride_tricks.sliding_window_view(X, (2, 2), axis=(2, 3))[:, :, ::stride, ::stride], (4, 5))

        even = random(1, 2, 4, 4)
        self.check([
            Case("conv2d", {"Input": x, "Filter": w}, lambda Input, Filter: conv(Input, Filter), "Output"),
            Case("conv2d", {"Input": x, "Filter": w}, lambda Input, Filter: conv(around(Input, 1, 1, 1, 1), Filter, 2),
                 "Output", strides=[2, 2], paddings=[1, 1]),
            Case("conv2d", {"Input": x, "Filter": w}, lambda Input, Filter: conv(around(Input, 1, 1, 1, 1), Filter),
                 "Output", padding_algorithm="SAME"),
            Case("conv2d", {"Input": x, "Filter": w}, lambda Input, Filter: conv(around(Input, 0, 1, 2, 0), Filter),
                 "Output", paddings=[0, 1, 2, 0]),
            Case("pool2d", {"X": even}, lambda X: pool(X, np.max), pooling_type="max", ksize=[2, 2], strides=[2, 2]),
            Case("pool2d", {"X": even}, lambda X: pool(X, np.mean), pooling_type="avg", ksize=[2, 2], strides=[2, 2]),
            Case("pool2d", {"X": even}, lambda X: X.mean((2, 3), keepdims=True), pooling_type="avg", ksize=[1, 1],
                 global_pooling=True),
            Case("pool2d", {"X": even}, lambda X: pool(around(X, 1, 1, 1, 1), np.sum) / pool(
                around(np.ones_like(X), 1, 1, 1, 1), np.sum), pooling_type="avg", ksize=[2, 2], strides=[2, 2],
                paddings=[1, 1]),
        ])

    def test_shows_and_clicks(self):
        x, counts = random(3, 4, low=0.0), np.array([[5.0, 1], [7, 0], [2, 2]])
        logs = lambda X: np.concatenate([np.log(X[:, :1] + 1), np.log(X[:, 1:2] + 1) - np.log(X[:, :1] + 1), X[:, 2:]], 1)
        cases = [Case("cvm", {"X": x, "CVM": counts}, lambda X, CVM: logs(X), "Y", grad=["X"]),
                 Case("cvm", {"X": x, "CVM": counts}, lambda X, CVM: X[:, 2:], "Y", grad=["X"], use_cvm=False),
                 Case("cvm", {"X": Lod(x, [0, 2, 2, 3]), "CVM": counts}, lambda X, CVM: logs(X), "Y", grad=["X"])]
        for case in cases:
            case.differences = lambda slot, k, case=case: np.concatenate(  # Fluid's rule, not the formula's gradient
                [counts[[0, 0, 2]] if isinstance(case.inputs["X"][0], Lod) else counts, case.weights()[:, -2:]], 1)
        self.check(cases)

    def test_dropout(self):
        def case(**attributes):
            return {"type": "dropout", "inputs": {"X": [to_json(np.ones((100, 100)))]}, "outputs": {"Out": 1, "Mask": 1},
                    "attributes": {"dropout_prob": 0.3, "seed": 4, **attributes}}
        upscale = {"dropout_implementation": "upscale_in_train"}
        results = run([case(), case(**upscale), case(is_test=True), case(is_test=True, **upscale), case(seed=5)])
        outs = [from_json(result["outputs"]["Out"][0]) for result in results[:2] + results[4:]]
        self.assertEqual(set(outs[0].ravel()), {0, 1})
        self.assertAlmostEqual(outs[0].mean(), 0.7, delta=0.02)
        np.testing.assert_allclose(outs[1], outs[0] / 0.7)
        np.testing.assert_array_equal(outs[0], from_json(results[0]["outputs"]["Mask"][0]))
        self.assertFalse((outs[2] == outs[0]).all())
        self.check([Case("dropout", {"X": X}, lambda X: X * 0.7, dropout_prob=0.3, is_test=True),
                    Case("dropout", {"X": X}, lambda X: X, dropout_prob=0.3, is_test=True, **upscale)])


class SequenceTest(OperatorsTest):
    OFFSETS = [0, 2, 2, 5]
    FULL = [0, 2, 3, 5]

    def each(self, x, f, offsets):
        return [f(x[a:b]) for a, b in zip(offsets, offsets[1:])]

    def test_pooling(self):
        x = random(5, 3)
        formulas = {"SUM": lambda s: s.sum(0), "AVERAGE": lambda s: s.mean(0), "MAX": lambda s: s.max(0),
                    "SQRT": lambda s: s.sum(0) / math.sqrt(len(s)), "FIRST": lambda s: s[0], "LAST": lambda s: s[-1]}
        cases = []
        for pool, f in formulas.items():
            padded = lambda s, f=f: f(s) if len(s) else np.full(3, 9.0)
            cases += [Case("sequence_pool", {"X": Lod(x, self.FULL)}, lambda X, f=f: np.array(self.each(X, f, self.FULL)),
                           pooltype=pool),
                      Case("sequence_pool", {"X": Lod(x, self.OFFSETS)},
                           lambda X, f=padded: np.array(self.each(X, f, self.OFFSETS)), pooltype=pool, pad_value=9.0)]
        cases.append(Case("sequence_pool", {"X": Lod(x, [0, 1, 3], self.FULL)},
                          lambda X: np.array(self.each(X, lambda s: s.sum(0), self.FULL)), lod=[[0, 1, 3]], pooltype="SUM"))
        self.check(cases)

    def test_rows_stay_in_their_sequence(self):
        x, filters = random(5, 2), random(6, 4, seed=1)
        column = random(5, 1)

        def conv(X, Filter):
            out = []
            for a, b in zip(self.FULL, self.FULL[1:]):
                padded = np.concatenate([np.zeros((1, 2)), X[a:b], np.zeros((1, 2))])
                out += [padded[i:i + 3].ravel() @ Filter for i in range(b - a)]
            return np.array(out)

        full = {"lod": [self.FULL]}
        self.check([
            Case("sequence_softmax", {"X": Lod(column, self.FULL)},
                 lambda X: np.concatenate(self.each(X, lambda s: softmax(s, 0), self.FULL)), **full),
            Case("sequence_conv", {"X": Lod(x, self.FULL), "Filter": filters}, conv, contextLength=3, contextStart=-1,
                 **full),
            Case("sequence_reverse", {"X": Lod(x, self.FULL)},
                 lambda X: np.concatenate(self.each(X, lambda s: s[::-1], self.FULL)), "Y", **full),
            Case("sequence_enumerate", {"X": Lod(np.array([[1], [2], [3], [4], [5]]), self.FULL)},
                 lambda X: np.array([[1, 2], [2, 0], [3, 0], [4, 5], [5, 0]]), win_size=2, **full),
            Case("sequence_erase", {"X": Lod(np.array([[1], [2], [3], [2], [5]]), self.FULL)},
                 lambda X: np.array([[1], [3], [5]]), tokens=[2], lod=[[0, 1, 2, 3]]),
            Case("sequence_mask", {"X": np.array([1, 3])}, lambda X: np.array([[1, 0, 0, 0], [1, 1, 1, 0]]), "Y",
                 maxlen=4),
        ])

    def test_sequences_are_repeated_joined_and_cut(self):
        x = random(5, 2)
        y = Lod(random(6, 1, seed=1), [0, 2, 3, 6])
        self.check([
            Case("sequence_expand", {"X": random(3, 2), "Y": y}, lambda X, Y: X[[0, 0, 1, 2, 2, 2]], grad=["X"], lod=[]),
            Case("sequence_expand", {"X": Lod(x, self.FULL), "Y": y},
                 lambda X, Y: X[[0, 1, 0, 1, 2, 3, 4, 3, 4, 3, 4]], grad=["X"], lod=[[0, 2, 4, 5, 7, 9, 11]]),
            Case("sequence_expand_as", {"X": random(3, 2), "Y": y}, lambda X, Y: X[[0, 0, 1, 2, 2, 2]], grad=["X"],
                 lod=[[0, 2, 3, 6]]),
            Case("sequence_reshape", {"X": Lod(random(4, 2), [0, 2, 4])}, lambda X: X.reshape(2, 4), new_dim=4,
                 lod=[[0, 1, 2]]),
            Case("sequence_concat", {"X": [Lod(x, self.FULL), Lod(random(4, 2, seed=2), [0, 1, 2, 4])]},
                 lambda X: np.concatenate([X[0][:2], X[1][:1], X[0][2:3], X[1][1:2], X[0][3:], X[1][2:]]),
                 lod=[[0, 3, 5, 9]]),
            Case("sequence_slice", {"X": Lod(x, self.FULL), "Offset": np.array([[1], [0], [0]]),
                                    "Length": np.array([[1], [1], [2]])}, lambda X, **_: X[1:], lod=[[0, 1, 2, 4]]),
            Case("sequence_pad", {"X": Lod(x, self.FULL), "PadValue": np.array([7.0])}, lambda X, PadValue: {
                "Out": np.array([[*X[:2], [7, 7]], [X[2], [7, 7], [7, 7]], [*X[3:], [7, 7]]]),
                "Length": np.array([2, 1, 2])}, grad=["X"], outputs={"Out": 1, "Length": 1}, padded_length=3),
            Case("sequence_unpad", {"X": random(2, 3, 2), "Length": np.array([2, 3])},
                 lambda X, Length: np.concatenate([X[0, :2], X[1]]), lod=[[0, 2, 5]]),
            Case("lod_reset", {"X": Lod(x, self.FULL)}, lambda X: X, target_lod=[0, 4, 5], lod=[[0, 4, 5]]),
            Case("lod_reset", {"X": x, "Y": Lod(random(5, 1), self.FULL)}, lambda X, Y: X, grad=["X"], lod=[self.FULL]),
        ])


class RecurrentTest(OperatorsTest):
    OFFSETS = [0, 1, 4, 6]
    SIZE = 2

    def walk(self, rows, step, state, reverse=False):
        """`step(row, state)` over each sequence; the states' first parts in the order of the rows."""
        out = np.zeros((6, self.SIZE))
        for i, (a, b) in enumerate(zip(self.OFFSETS, self.OFFSETS[1:])):
            now = tuple(s[i] for s in state)
            for t in reversed(range(a, b)) if reverse else range(a, b):
                now = step(rows[t], *now)
                out[t] = now[0]
        return out

    def test_lstm(self):
        n, x = self.SIZE, random(6, 8)
        zeros = np.zeros((3, n))

        def formula(peepholes, reverse=False):
            def run_all(Input, Weight, Bias, H0=zeros, C0=zeros):
                b = Bias.ravel()
                peep = lambda i, c: b[(4 + i) * n:(5 + i) * n] * c if peepholes else 0

                def step(row, h, c):
                    g, i, f, o = np.split(row + b[:4 * n] + h @ Weight, 4)
                    new = np.tanh(g) * sigmoid(i + peep(0, c)) + c * sigmoid(f + peep(1, c))
                    return sigmoid(o + peep(2, new)) * np.tanh(new), new
                return self.walk(Input, step, (H0, C0), reverse)
            return run_all

        inputs = {"Input": Lod(x, self.OFFSETS), "Weight": random(2, 8, seed=1)}
        short, long = random(1, 8, seed=2), random(1, 14, seed=2)
        states = {"H0": random(3, 2, seed=3), "C0": random(3, 2, seed=4)}
        outputs = {"Hidden": 1, "Cell": 1}
        self.check([
            Case("lstm", {**inputs, "Bias": short}, formula(False), "Hidden", outputs=outputs, use_peepholes=False,
                 lod=[self.OFFSETS]),
            Case("lstm", {**inputs, "Bias": long, **states}, formula(True), "Hidden", outputs=outputs),
            Case("lstm", {**inputs, "Bias": long}, formula(True, True), "Hidden", outputs=outputs, is_reverse=True),
        ])

    def gru(self, origin):
        n = self.SIZE

        def step(row, h, Weight):
            flat = Weight.ravel()
            gates = sigmoid(row[:2 * n] + h @ flat[:2 * n * n].reshape(n, 2 * n))
            u, r = gates[:n], gates[n:]
            c = np.tanh(row[2 * n:] + (r * h) @ flat[2 * n * n:].reshape(n, n))
            return (u * h + (1 - u) * c if origin else (1 - u) * h + u * c), u, r, c
        return step

    def test_gru(self):
        zeros = np.zeros((3, 2))

        def formula(origin, reverse=False):
            one = self.gru(origin)
            return lambda Input, Weight, Bias, H0=zeros: self.walk(
                Input + Bias, lambda row, h: one(row, h, Weight)[:1], (H0,), reverse)

        inputs = {"Input": Lod(random(6, 6), self.OFFSETS), "Weight": random(2, 6, seed=1), "Bias": random(1, 6, seed=2)}
        self.check([
            Case("gru", inputs, formula(False), "Hidden", lod=[self.OFFSETS]),
            Case("gru", {**inputs, "H0": random(3, 2, seed=3)}, formula(True, True), "Hidden", origin_mode=True,
                 is_reverse=True),
        ])

    def test_single_steps(self):
        one = self.gru(False)

        def unit(Input, HiddenPrev, Weight, Bias):
            made = [one(row, h, Weight) for row, h in zip(Input + Bias, HiddenPrev)]
            return {"Hidden": np.array([m[0] for m in made]),
                    "Gate": np.array([np.concatenate(m[1:]) for m in made]),
                    "ResetHiddenPrev": np.array([m[2] * h for m, h in zip(made, HiddenPrev)])}

        def lstm_unit(X, C_prev):
            i, f, o, g = np.split(X, 4, 1)
            c = sigmoid(f + 0.5) * C_prev + sigmoid(i) * np.tanh(g)
            return {"H": sigmoid(o) * np.tanh(c), "C": c}

        self.check([
            Case("gru_unit", {"Input": random(3, 6), "HiddenPrev": random(3, 2, seed=1), "Weight": random(2, 6, seed=2),
                              "Bias": random(1, 6, seed=3)}, unit, "Hidden",
                 outputs={"Hidden": 1, "Gate": 1, "ResetHiddenPrev": 1}),
            Case("lstm_unit", {"X": random(3, 8), "C_prev": random(3, 2, seed=1)}, lstm_unit, "H",
                 outputs={"H": 1, "C": 1}, forget_bias=0.5),
        ])

    def test_chains(self):
        tags = 3
        label = np.array([[1], [0], [2], [2], [1], [0]])
        x = {"Emission": Lod(random(6, tags), self.OFFSETS), "Transition": random(tags + 2, tags, seed=1)}

        def score(rows, t, path):
            steps = sum(t[2 + a, b] for a, b in zip(path, path[1:]))
            return t[0, path[0]] + t[1, path[-1]] + steps + sum(row[tag] for row, tag in zip(rows, path))

        def sequences(Emission):
            for a, b in zip(self.OFFSETS, self.OFFSETS[1:]):
                yield a, b, Emission[a:b], list(np.ndindex(*[tags] * (b - a)))

        def cost(Emission, Transition, Label):
            return np.array([[np.log(sum(np.exp(score(rows, Transition, path)) for path in paths))
                              - score(rows, Transition, Label[a:b].ravel())]
                             for a, b, rows, paths in sequences(Emission)])

        def best(Emission, Transition):
            return np.concatenate([max(paths, key=lambda path: score(rows, Transition, path))
                                   for _, _, rows, paths in sequences(Emission)]).reshape(-1, 1)

        self.check([
            Case("linear_chain_crf", {**x, "Label": Lod(label, self.OFFSETS)}, cost, "LogLikelihood"),
            Case("crf_decoding", x, best, "ViterbiPath", grad=[], lod=[self.OFFSETS]),
            Case("crf_decoding", {**x, "Label": Lod(label, self.OFFSETS)},
                 lambda Emission, Transition, Label: best(Emission, Transition) == Label, "ViterbiPath", grad=[]),
        ])


class ScheduleTest(OperatorsTest):
    def test_rates(self):
        cases = []
        for step in (1, 3, 7, 25):
            def case(kind, want, **attributes):
                cases.append(Case("lr_schedule", {"Step": np.array([step])}, lambda want=want, **_: [want], grad=[],
                                  kind=kind, learning_rate=0.4, **attributes))
            decay = {"decay_steps": 4.0, "decay_rate": 0.5}
            case("exponential", 0.4 * 0.5**(step / 4), **decay)
            case("exponential", 0.4 * 0.5**(step // 4), staircase=True, **decay)
            case("natural_exp", 0.4 * math.exp(-0.5 * step / 4), **decay)
            case("inverse_time", 0.4 / (1 + 0.5 * step / 4), **decay)
            case("polynomial", 0.3 * (1 - min(step, 10) / 10)**2 + 0.1, decay_steps=10.0, end_learning_rate=0.1,
                 power=2.0)
            cycle = 10 * math.ceil(step / 10)
            case("polynomial", 0.3 * (1 - step / cycle) + 0.1, decay_steps=10.0, end_learning_rate=0.1, cycle=True)
            case("piecewise", 1.0 if step < 3 else 0.5 if step < 10 else 0.1, boundaries=[3.0, 10.0],
                 values=[1.0, 0.5, 0.1])
            case("noam", 0.4 * 64**-0.5 * min(step**-0.5, step * 5**-1.5), d_model=64.0, warmup_steps=5.0)
            case("cosine", 0.2 * (math.cos(step // 5 * math.pi / 8) + 1), step_each_epoch=5.0, epochs=8.0)
            case("linear_warmup", 0.1 + 0.8 * step / 10 if step < 10 else 0.4, warmup_steps=10.0, start_lr=0.1,
                 end_lr=0.9)
        self.check(cases)


class OptimizerTest(OperatorsTest):
    """Every update from states that are not zero; then the same with a gradient of rows."""

    P, G = random(4, 2), random(4, 2, seed=1)
    M, S, T = random(4, 2, seed=2), random(4, 2, seed=3, low=0.1), random(4, 2, seed=4, low=0.1)
    LR = np.array([0.1])
    ROWS = Rows([2, 0, 2], random(3, 2, seed=5), 4)

    def both(self, type, states, formula, lazy=False, **attributes):
        """`states`: slot: value; `formula(p, g, *states)` gives the parameter and the states; lazy: rows that are not
        in the gradient stay as they are."""
        cases = []
        for gradient in (self.G, self.ROWS):
            g = gradient.dense() if isinstance(gradient, Rows) else gradient
            outputs = ["ParamOut"] + [{"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
                                      .get(slot, slot + "Out") for slot in states]
            want = list(formula(self.P, g, *states.values()))
            if lazy and isinstance(gradient, Rows):
                hit = np.isin(np.arange(4), gradient.rows)[:, None]
                old = [self.P, *states.values()]
                want = [np.where(hit, new, before) if np.shape(before) == (4, 2) else new
                        for new, before in zip(want, old, strict=True)]
            inputs = {"Param": self.P, "Grad": gradient, "LearningRate": self.LR, **states}
            if type == "adadelta":
                del inputs["LearningRate"]
            cases.append(Case(type, inputs, lambda want=want, outputs=outputs, **_: dict(zip(outputs, want)), "ParamOut",
                              grad=[], outputs={slot: 1 for slot in outputs}, **attributes))
        return cases

    def test_updates(self):
        lr, M, S, T = 0.1, self.M, self.S, self.T
        root = np.sqrt
        norm = lambda x: math.sqrt((x**2).sum())
        b1, b2 = np.array([0.9**3]), np.array([0.999**3])

        def momentum(p, g, v, nesterov=False):
            v = 0.9 * v + g
            return (p - lr * (g + 0.9 * v) if nesterov else p - lr * v), v

        def lars(p, g, v):
            rate = lr * 0.01 * norm(p) / (norm(g) + 0.02 * norm(p))
            v = 0.9 * v + rate * (g + 0.02 * p)
            return p - v, v

        def adadelta(p, g, e, u):
            e = 0.9 * e + 0.1 * g * g
            step = -root((u + 1e-6) / (e + 1e-6)) * g
            return p + step, e, 0.9 * u + 0.1 * step * step

        def adam(p, g, m, v, pow1, pow2):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            rate = lr * root(1 - pow2) / (1 - pow1)
            return p - rate * m / (root(v) + 1e-8), m, v, pow1 * 0.9, pow2 * 0.999

        def adamax(p, g, m, n):
            m, n = 0.9 * m + 0.1 * g, np.maximum(np.abs(g), 0.999 * n + 1e-8)
            return p - lr / (1 - b1) * m / n, m, n

        def lamb(p, g, m, v):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            step = (m / (1 - b1)) / (root(v / (1 - b2)) + 1e-6) + 0.01 * p
            return p - lr * norm(p) / norm(step) * step, m, v

        def rmsprop(p, g, s, m):
            s = 0.9 * s + 0.1 * g * g
            m = 0.5 * m + lr * g / root(s + 1e-6)
            return p - m, s, m

        def centered(p, g, s, m, mean):
            s, mean = 0.9 * s + 0.1 * g * g, 0.9 * mean + 0.1 * g
            m = 0.5 * m + lr * g / root(s - mean**2 + 1e-6)
            return p - m, s, m, mean

        def ftrl(p, g, s, z, power=0.5):
            after = s + g * g
            z = z + g - (after**power - s**power) / lr * p
            return np.where(np.abs(z) > 0.3, (0.3 * np.sign(z) - z) / (after**power / lr + 0.4), 0), after, z

        powers = {"Beta1Pow": b1, "Beta2Pow": b2}
        moments = {"Moment1": M, "Moment2": S}
        cases = [
            *self.both("sgd", {}, lambda p, g: [p - lr * g]),
            *self.both("momentum", {"Velocity": M}, momentum, mu=0.9),
            *self.both("momentum", {"Velocity": M}, lambda p, g, v: momentum(p, g, v, True), mu=0.9, use_nesterov=True),
            *self.both("lars_momentum", {"Velocity": M}, lars, mu=0.9, lars_coeff=0.01, lars_weight_decay=0.02),
            *self.both("adagrad", {"Moment": S}, lambda p, g, s: [p - lr * g / (root(s + g * g) + 1e-6), s + g * g], True),
            *self.both("decayed_adagrad", {"Moment": S}, lambda p, g, s: [
                p - lr * g / (root(0.95 * s + 0.05 * g * g) + 1e-6), 0.95 * s + 0.05 * g * g]),
            *self.both("adadelta", {"AvgSquaredGrad": S, "AvgSquaredUpdate": T}, adadelta, rho=0.9),
            *self.both("adam", {**moments, **powers}, adam),
            *self.both("adam", {**moments, **powers}, adam, True, lazy_mode=True),
            *self.both("rmsprop", {"MeanSquare": S, "Moment": M}, rmsprop, decay=0.9, momentum=0.5, epsilon=1e-6),
            *self.both("rmsprop", {"MeanSquare": S + 2, "Moment": M, "MeanGrad": M / 4}, centered, decay=0.9,
                       momentum=0.5, epsilon=1e-6, centered=True),
            *self.both("ftrl", {"SquaredAccumulator": S, "LinearAccumulator": M}, ftrl, True, l1=0.3, l2=0.2),
            *self.both("ftrl", {"SquaredAccumulator": S, "LinearAccumulator": M},
                       lambda *a: ftrl(*a, power=0.7), True, l1=0.3, l2=0.2, lr_power=-0.7),
            *self.both("dpsgd", {}, lambda p, g: [p - lr * g / max(1, norm(g) / 0.8)], clip=0.8, sigma=0.0),
        ]
        for type, states, formula in (("adamax", {"Moment": M, "InfNorm": S}, adamax), ("lamb", moments, lamb)):
            attributes = {"weight_decay": 0.01} if type == "lamb" else {}
            for case in self.both(type, states, formula, **attributes):
                case.inputs.update({"Beta1Pow": [b1], **({"Beta2Pow": [b2]} if type == "lamb" else {})})
                cases.append(case)
        self.check(cases)


if __name__ == "__main__":
    unittest.main()
