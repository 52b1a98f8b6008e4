"""What the peers share: one core, one thread, and a round of work a line on stdin, so that scripts/bench can alternate
a peer with Regatta in one run. A peer prints READY, then after each line RATE<TAB>samples/s<TAB>CPU seconds a million
samples."""
import gc
import os
import sys
import time

BATCH = 1000
SLOTS, DENSE = 26, 13
ROWS = 1_000_001  # ids are taken modulo this where a table is an array


def one_thread():
    """Before the framework is imported: thread pools take their size from these."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def one_core():
    one_thread()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def serve(one_pass, processor_seconds=time.process_time):
    """one_pass() trains a pass over the data and returns the number of samples."""
    one_pass()
    gc.freeze()  # or the collector walks the framework's own objects again and again, some 8 % of the time
    print("READY", flush=True)
    for _ in sys.stdin:
        start, cpu_start = time.perf_counter(), processor_seconds()
        samples = one_pass()
        seconds, cpu_seconds = time.perf_counter() - start, processor_seconds() - cpu_start
        print(f"RATE\t{samples / seconds:.1f}\t{cpu_seconds / samples * 1e6:.2f}", flush=True)
