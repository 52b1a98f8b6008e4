#!/usr/bin/env python3
"""Compares how geo combines the workers' changes: the table of docs/results.md.

    cmake --build build --target regatta geo_combine && python3 bench/geo_combine.py

Workers share the data; the reference is one process without servers on all of it, with the same batch size."""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
# Samples, and the batch size. Small: each of 8 workers has 196 batches an epoch, of 4 workers 391. Long tail: 849,160
# distinct ids; each of 8 workers has 300 batches an epoch.
DATA = {
    "small": (["--samples", 200_000], 128),
    "long tail": (["--samples", 600_000, "--ids", 2_000_000], 250),
}
BOUND = {2: 0.002, 4: 0.004, 8: 0.008}  # of the AUC's difference
LOGLOSS = 0.02  # relative


def generate(build, folder, options):
    command = [build / "bin/regatta", "data", "gen", "--out", folder, "--test-samples", 200_000, "--files", 8,
               "--test-files", 8, *options]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    test = json.loads((folder / "ceiling.json").read_text())["test"]
    rate = test["clicks"] / test["samples"]
    return -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)


def cell(build, folder, batch, epochs, workers, combine):
    words = [build / "bench/geo_combine", f"train={folder}/train", f"test={folder}/test", f"batch={batch}",
             f"epochs={epochs}", f"workers={workers}", f"combine={combine}"]
    out = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout.split()
    return float(out[1]), float(out[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--combine", nargs="+", default=["count", "mean", "sum"])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--batch", type=int, help="another batch size")
    args = parser.parse_args()
    print("| data | workers | combine | AUC | difference | bound | logloss | ratio | holds |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in args.data:
        options, batch = DATA[name][0], args.batch or DATA[name][1]
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            constant = generate(args.build, folder, options)
            auc, loss = cell(args.build, folder, batch, args.epochs, 0, "count")
            print(f"| {name} | one process | | {auc:.5f} | | | {loss:.5f} | constant: {constant:.5f} | |", flush=True)
            for combine in args.combine:
                for workers in args.workers:
                    if workers == 1 and combine != args.combine[0]:
                        continue  # all of them do the same
                    got, got_loss = cell(args.build, folder, batch, args.epochs, workers, combine)
                    bound = BOUND.get(workers, BOUND[2])
                    ratio = got_loss / loss
                    holds = abs(got - auc) <= bound and ratio <= 1 + LOGLOSS and got_loss <= constant
                    print(f"| {name} | {workers} | {combine} | {got:.5f} | {got - auc:+.5f} | {bound} | {got_loss:.5f} "
                          f"| {ratio:.4f} | {'yes' if holds else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
