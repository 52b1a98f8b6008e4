"""The rows of scripts/bench python: the package against plain PyTorch, and against Regatta's own C++. All Python sides run
in the build's venv, with one PyTorch."""
import pathlib
import statistics
import subprocess
from dataclasses import dataclass

from row import Row
from side import BUILD, PEERS, Side, environment, in_turns, write_data

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = BUILD / "venv" / "bin" / "python3"
PACKAGE = BUILD / "python"
BATCH = 1000  # of all sides
SAMPLES = {"ctr_dnn": (40_000, 100_000), "multihot": (10_000, 30_000), "uniform": (40_000, 100_000)}  # quick, full


@dataclass
class Comparison:
    name: str
    data: str  # ctr_dnn, multihot or uniform
    thing: list  # a script and its arguments, without the data's path
    bound: list  # likewise, or core_rounds
    bar: float | None
    variants: tuple = ({},)  # environments of the bound; the fastest one is measured
    judged: str = "speed"  # or time: of a step


COMPARISONS = [
    Comparison("Python: CTR-DNN from text / plain PyTorch with a NumPy loader, one core", "ctr_dnn",
               [HERE / "regatta_ctr_dnn.py", "text", "alone"], [PEERS / "torch_ctr_dnn.py", "text"], 1.6,
               ({}, {"PEER_BAGS": "1"})),
    Comparison("Python: CTR-DNN in memory / plain PyTorch in memory, one core", "ctr_dnn",
               [HERE / "regatta_ctr_dnn.py", "memory", "alone"], [PEERS / "torch_ctr_dnn.py", "memory"], 1.15,
               ({}, {"PEER_BAGS": "1"})),
    Comparison("Python: MULTIHOT in memory / plain PyTorch in memory, one core", "multihot",
               [HERE / "regatta_multihot.py"], [PEERS / "torch_multihot.py"], 2.0),
    Comparison("Python: batches of text as tensors / the C++ reader, one core", "ctr_dnn",
               [HERE / "regatta_data.py"], ["core_rounds", "data"], 0.8),
    Comparison("Python: server + worker (async), one core each / embedded, one core", "ctr_dnn",
               [HERE / "regatta_ctr_dnn.py", "text", "server"], [HERE / "regatta_ctr_dnn.py", "text", "alone"], 0.75),
    Comparison("Python: the same, dense parameters on the server / embedded", "ctr_dnn",
               [HERE / "regatta_ctr_dnn.py", "text", "server_dense"], [HERE / "regatta_ctr_dnn.py", "text", "alone"],
               None),
    Comparison("Python: lookup + commit of 26 000 keys / C++, one core", "uniform",
               [HERE / "regatta_steps.py"], ["core_rounds", "steps"], 1.10, judged="time"),
]
LONGEST_IMPORT = 0.3  # seconds


def missing():
    """Why the rows cannot be measured here, or an empty string."""
    if list((PACKAGE / "regattarec").glob("_core*.so")) and PYTHON.exists():
        return ""
    return ("the package is not built: scripts/bootstrap --python; cmake --preset release -DWITH_PYTHON=ON "
            "-DPython_EXECUTABLE=$PWD/build/venv/bin/python3")


def start(command, path, more):
    program = [BUILD / "bench" / "core_rounds"] if command[0] == "core_rounds" else [PYTHON, command[0]]
    side = Side([str(word) for word in [*program, *command[1:], path]],
                environment({"PYTHONPATH": str(PACKAGE)} | more))
    try:
        side.answer("READY")
    except RuntimeError:
        side.close()
        raise
    return side


def fastest(command, path, variants):
    sides = [start(command, path, more) for more in variants]
    rates = [rate for rate, _ in in_turns(sides, 3)] if len(sides) > 1 else [0]
    best = sides.pop(rates.index(max(rates)))
    for side in sides:
        side.close()
    return best


def measure(comparison, quick, folder):
    """Its row, and a note."""
    path = write_data(comparison.data, SAMPLES[comparison.data][not quick], folder)
    sides = []
    try:
        sides.append(start(comparison.thing, path, {}))
        sides.append(fastest(comparison.bound, path, comparison.variants))
        (ours, our_cpu), (theirs, their_cpu) = in_turns(sides, 5 if quick else 11)
    finally:
        for side in sides:
            side.close()
    note = (f"{comparison.name}: {our_cpu:.2f} and {their_cpu:.2f} CPU seconds a million samples, ratio "
            f"{their_cpu / our_cpu:.2f}")
    if comparison.judged == "time":
        times = [BATCH * 1e6 / rate for rate in (ours, theirs)]
        return Row(comparison.name, "µs a step", *times, times[0] / times[1], "<=", comparison.bar), note
    return Row(comparison.name, "samples/s", ours, theirs, ours / theirs, ">=", comparison.bar), note


def measure_import(quick):
    code = "import time; t = time.perf_counter(); import regattarec.data; print(time.perf_counter() - t)"
    taken = [float(subprocess.run([str(PYTHON), "-c", code], env=environment({"PYTHONPATH": str(PACKAGE)}), text=True,
                                  stdout=subprocess.PIPE, check=True).stdout) for _ in range(5 if quick else 11)]
    seconds = statistics.median(taken)
    return Row("Python: import regattarec.data, its C++ and NumPy included / what it may take", "s", seconds,
               LONGEST_IMPORT, seconds / LONGEST_IMPORT, "<=", 1)
