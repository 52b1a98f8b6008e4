#!/usr/bin/env python3
"""What the cost model of docs/scale.md says of a job on many machines. It is a model: nothing here was run.

Every machine runs one server and one worker with as many threads as it has cores. The costs are measured on one machine
(bench/micro/lane_bench prints the server's as COST lines; the worker's come from bench/e2e); give your own."""
import argparse
import dataclasses
import math


@dataclasses.dataclass
class Costs:
    """Processor seconds, by default those of docs/scale.md."""

    compute: float = 20.1e-3  # a batch: parsing, model, planning, as the embedded process does them
    server_message: float = 32e-6  # a request and its reply, in the server
    server_key: float = 75e-9  # of a pull and a push, in the server
    server_dense: float = 1.8e-9  # a dense parameter pushed or fetched, in the server
    worker_message: float = 19e-6
    worker_key: float = 45e-9
    worker_dense: float = 1.1e-9


@dataclasses.dataclass
class Job:
    samples: int = 1000  # a batch
    keys: int = 13_000  # distinct, of a batch
    width: int = 10  # floats of a row
    key_bytes: int = 3
    float_bytes: int = 4
    dense: int = 432_000
    staleness: int = 4  # steps between two fetches of the dense parameters
    geo_step: int = 400


@dataclasses.dataclass
class Machine:
    cores: int
    gigabits: float  # of its network, each way
    latency: float  # seconds, one way
    jitter: float  # deviation of a step's time, of its mean: what sync waits for


def step(mode, machines, job, machine, costs):
    """(processor seconds a batch on a machine, bytes a batch each way, seconds of waiting a batch)."""
    threads = machine.cores
    key_bytes = 2 * job.key_bytes + 2 * job.width * job.float_bytes
    dense_bytes = job.dense * job.float_bytes
    # Exchanges a batch. A step of sync is a batch of every thread.
    sparse, push, fetch = 1.0, 1 / max(threads, 2), 1 / (threads * job.staleness)
    if mode == "sync":
        sparse, push, fetch = 1 / threads, 1 / threads, 1 / threads
    elif mode == "half_async":
        sparse, push, fetch = 1 / job.staleness, 1 / job.staleness, 1 / job.staleness
    elif mode == "geo":
        sparse, push, fetch = 1 / job.geo_step, 1 / job.geo_step, 1 / job.geo_step
    keys = job.keys * merged(mode, threads, job)
    messages = machines * (2 * sparse + push + fetch)
    cpu = costs.compute
    cpu += messages * (costs.server_message + costs.worker_message)
    cpu += keys * sparse * (costs.server_key + costs.worker_key)
    cpu += job.dense * (push + fetch) * (costs.server_dense + costs.worker_dense)
    remote = (machines - 1) / machines  # what does not stay on the machine
    traffic = (keys * sparse * key_bytes + dense_bytes * (push + fetch)) * remote
    waiting = 0.0
    if mode == "sync":  # for the slowest worker, and for the round trip that nothing hides
        slowest = machine.jitter * math.sqrt(2 * math.log(max(machines, 2)))
        waiting = (cpu * slowest + 4 * machine.latency) / threads
    return cpu, traffic, waiting


def merged(mode, threads, job):
    """Distinct keys of a merged push over those of a batch: ids are log-uniform, so that they grow as a power."""
    batches = {"sync": threads, "async": 1, "half_async": job.staleness, "geo": job.geo_step}[mode]
    return batches ** 0.75


def throughput(mode, machines, job, machine, costs):
    """Samples a second of the whole job, and what bounds it."""
    cpu, traffic, waiting = step(mode, machines, job, machine, costs)
    by_cpu = machine.cores / (cpu + waiting * machine.cores)
    by_network = machine.gigabits * 1e9 / 8 / traffic if traffic else math.inf
    batches, why = min((by_cpu, "processor"), (by_network, "network"))
    return batches * machines * job.samples, why


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="*", default=[1, 8, 32, 128])
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--gigabits", type=float, default=10)
    parser.add_argument("--latency", type=float, default=50e-6, help="seconds, one way")
    parser.add_argument("--jitter", type=float, default=0.05, help="deviation of a step's time over its mean")
    for group in (Costs, Job):
        for field in dataclasses.fields(group):
            parser.add_argument(f"--{field.name}", type=field.type, default=field.default)
    args = parser.parse_args()
    take = lambda group: group(**{f.name: getattr(args, f.name) for f in dataclasses.fields(group)})
    costs, job, machine = take(Costs), take(Job), take(Machine)
    print(f"{machine.cores} cores and {machine.gigabits:g} Gbit/s a machine, CTR-DNN. A model, not a measurement.")
    print("| mode | " + " | ".join(f"{n} machine{'s' if n > 1 else ''}" for n in args.machines) + " |")
    print("|---|" + "---|" * len(args.machines))
    for mode in ("sync", "async", "half_async", "geo"):
        cells = []
        for machines in args.machines:
            samples, why = throughput(mode, machines, job, machine, costs)
            ideal = machines * machine.cores / costs.compute * job.samples
            cells.append(f"{samples / 1e6:.2f} M/s, {samples / ideal:.0%} ({why})")
        print(f"| {mode} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
