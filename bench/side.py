"""One side of a comparison: a process that does a round of work for each line it is given, so that scripts/bench can
measure two of them in turns. bench/peers/rounds.py and bench/rounds.h are the other end."""
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PEERS = ROOT / "bench" / "peers"


def openblas_core():
    """The kernels that regatta itself asks for where an OpenBLAS does not know the CPU; its peers get the same."""
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(flags):
        return {"OPENBLAS_CORETYPE": "SkylakeX"}
    return {"OPENBLAS_CORETYPE": "Haswell"} if {"avx2", "fma"} <= set(flags) else {}


def environment(more):
    """regatta sets malloc's thresholds for itself (src/worker/blas.cc): what is compared with it gets the same."""
    malloc = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(2000 << 20)}
    return os.environ | malloc | openblas_core() | {"PYTHONWARNINGS": "ignore", "GLOG_minloglevel": "2"} | more


def write_data(work, samples, folder):
    """The text and binary files of ctr_dnn, multihot or uniform, made once; their path without the ending."""
    path = folder / f"{work}{samples}"
    if not path.with_suffix(".txt").exists():
        subprocess.run([str(BUILD / "bench" / "regatta_rounds"), "write", work, str(path), str(samples)], check=True)
    return str(path)


class Side:
    def __init__(self, command, env):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=env, cwd=PEERS, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def answer(self, word):
        for line in self.process.stdout:
            if line.startswith(word):
                return line.rstrip("\n").split("\t")
        self.process.wait()
        self.errors.seek(0)
        last = self.errors.read().strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"{self.process.args[-2]}: exit status {self.process.returncode}: {last[0]}")

    def round(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return [float(value) for value in self.answer("RATE")[1:]]  # samples/s, CPU seconds a million samples

    def close(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def in_turns(sides, rounds):
    """Each side's median samples/s and CPU seconds a million samples."""
    done = [[side.round() for side in sides] for _ in range(rounds)]
    return [[statistics.median(column) for column in zip(*side)] for side in zip(*done)]
