"""What the peers share: one core, one thread, and a round of work a line on stdin, so that scripts/bench can alternate
a peer with Regatta in one run. A peer prints READY, then RATE<TAB>samples/s after each line."""
import os
import sys
import time

BATCH = 1000


def one_core():
    """Before the framework is imported: thread pools take their size from these."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def serve(one_pass):
    """one_pass() trains a pass over the data and returns the number of samples."""
    one_pass()
    print("READY", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        samples = one_pass()
        print(f"RATE\t{samples / (time.perf_counter() - start):.1f}", flush=True)
