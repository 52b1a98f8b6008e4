#!/usr/bin/env python3
"""What models and modes reach on clicks with a long tail of ids: the first tables of docs/results.md.

    cmake --build build && python3 bench/results.py

Every mode (2 servers, 2 workers) is compared with one process that has as many samples an update, with the same seed.
A row holds if no seed's AUC differs from its reference by more than the bound. Exit code 1: a row does not hold."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent
BATCH = 500
CONFIG = """\
runner:
  train_data_dir: train
  test_data_dir: test
  train_reader_path: criteo_reader
  print_interval: 100000
  split_file_list: True
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.001}
  sparse_inputs_slots: 27
  sparse_feature_dim: 9
  dense_input_dim: 13
  fc_sizes: [128, 64]
"""
MODELS = ["lr", "fm", "dnn", "wide_deep", "deepfm", "dcn"]
# Mode, further settings, samples an update of the reference, bound on the AUC's difference.
MODES = [
    ("sync", [], 2 * BATCH, 0.0005),
    ("async", [], BATCH, 0.002),
    ("half_async", ["runner.half_async_merge=4"], 4 * BATCH, 0.002),
    ("geo", [], BATCH, 0.002),
    ("sync", ["runner.row_precision=bfloat16"], 2 * BATCH, 0.001),
    ("async", ["runner.row_precision=bfloat16"], BATCH, 0.002),
]


def run(folder, command):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stdout[-2000:] + done.stderr[-2000:]
        sys.exit(f"{' '.join(str(word) for word in command)}: exit {done.returncode}\n{said}")
    return done.stdout


def train(regatta, folder, epochs, settings, launch=()):
    """The model's report on the held-out clicks after the last epoch."""
    model = folder / "model"
    words = [regatta, *launch, "train", "-m", folder / "config.yaml", "--overwrite"]
    for setting in [f"runner.model_save_path={model}", f"runner.epochs={epochs}", *settings]:
        words += ["-o", setting]
    run(folder, words)
    # One process, whatever trained it: all held-out clicks, in float32.
    infer = [regatta, "infer", "-m", folder / "config.yaml", "--json", "-o", f"runner.infer_load_path={model}",
             "-o", f"runner.infer_start_epoch={epochs - 1}", "-o", f"runner.infer_end_epoch={epochs}"]
    for setting in settings:
        if setting.startswith("model="):
            infer += ["-o", setting]
    return json.loads(run(folder, infer).strip().splitlines()[-1])


def zoo(regatta, folder, epochs, seed, ceiling):
    print("| model | AUC | ceiling | gap | log loss |\n|---|---|---|---|---|", flush=True)
    for model in MODELS:
        report = train(regatta, folder, epochs,
                       [f"model={model}", f"runner.train_batch_size={BATCH}", f"runner.seed={seed}"])
        auc = report["auc"]
        print(f"| {model} | {auc:.4f} | {ceiling:.4f} | {ceiling - auc:.4f} | {report['loss']:.4f} |", flush=True)


def modes(regatta, folder, epochs, seeds):
    reference = {}
    for batch in sorted({row[2] for row in MODES}):
        for seed in seeds:
            settings = ["model=dnn", f"runner.train_batch_size={batch}", f"runner.seed={seed}"]
            reference[batch, seed] = train(regatta, folder, epochs, settings)["auc"]
    head = [f"seed {seed}" for seed in seeds]
    print("| mode | " + " | ".join(head) + " | one process | largest difference | bound | holds |")
    print("|---" * (len(seeds) + 5) + "|", flush=True)
    all_hold = True
    for mode, settings, batch, bound in MODES:
        got = [train(regatta, folder, epochs,
                     ["model=dnn", f"runner.sync_mode={mode}", f"runner.train_batch_size={BATCH}",
                      f"runner.seed={seed}", *settings],
                     ["launch", "--server_num=2", "--worker_num=2", f"--log_dir={folder}/log", "--"])["auc"]
               for seed in seeds]
        wanted = [reference[batch, seed] for seed in seeds]
        worst = max((a - b for a, b in zip(got, wanted)), key=abs)
        holds = abs(worst) <= bound
        all_hold &= holds
        name = ", ".join([mode, *(f"`{setting}`" for setting in settings)])
        print(f"| {name} | " + " | ".join(f"{auc:.5f}" for auc in got) + f" | batch {batch}: " +
              ", ".join(f"{auc:.5f}" for auc in wanted) +
              f" | {worst:+.5f} | {bound} | {'yes' if holds else 'no'} |", flush=True)
    return all_hold


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build")
    parser.add_argument("--samples", type=int, default=600_000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--tables", nargs="+", choices=["models", "modes"], default=["models", "modes"])
    args = parser.parse_args()
    regatta = (args.build / "bin/regatta").resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run(folder, [regatta, "data", "gen", "--out", folder, "--samples", args.samples, "--test-samples", 200_000,
                     "--files", 4, "--test-files", 2, "--ids", 2_000_000])
        (folder / "config.yaml").write_text("model: dnn\n" + CONFIG)
        ceiling = json.loads((folder / "ceiling.json").read_text())["test"]["auc"]
        if "models" in args.tables:
            zoo(regatta, folder, args.epochs, args.seeds[0], ceiling)
        all_hold = "modes" not in args.tables or modes(regatta, folder, args.epochs, args.seeds)
    sys.exit(0 if all_hold else 1)


if __name__ == "__main__":
    main()
