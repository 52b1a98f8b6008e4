"""A click model in PyTorch with the life cycle of PaddlePaddle's Fleet: one script is every server and every worker.

    python3 examples/torch_fleet/train.py                                   # alone
    regatta launch --server_num=2 --worker_num=2 -- python3 examples/torch_fleet/train.py --is_cloud=1
    TRAINING_ROLE=PSERVER … python3 -u examples/torch_fleet/train.py --is_cloud=1     # a process each, by its variables
"""
import argparse
import pathlib

import torch
import torch.nn.functional as F

import regattarec
import regattarec.torch as rt
from regattarec import data, fleet
from regattarec.fleet import StrategyFactory, role_maker

SLOTS, DENSE, DIM, BATCH = 26, 13, 8, 200
STRATEGIES = {"sync": StrategyFactory.create_sync_strategy, "async": StrategyFactory.create_async_strategy,
              "half_async": StrategyFactory.create_half_async_strategy, "geo": StrategyFactory.create_geo_strategy}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = rt.EmbeddingBag(None, DIM, mode="sum", table="slots", rule=rt.Adagrad(lr=0.05),
                                         init=rt.Uniform(0.01), include_last_offset=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM + DENSE, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def forward(self, batch):
        slots = self.embedding(batch.keys, batch.offsets).reshape(-1, SLOTS * DIM)
        return self.mlp(torch.cat([slots, batch.dense], 1)).squeeze(1)


def train(model, optimizer, files):
    """One pass over this worker's files: the mean loss of all workers."""
    total, samples = 0.0, 0
    for batch in data.Dataset(files, slots=SLOTS, dense_dim=DENSE, batch_size=BATCH):
        loss = F.binary_cross_entropy_with_logits(model(batch), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch.labels)
        samples += len(batch.labels)
    total, samples = fleet.all_reduce_worker([total, samples])
    return total / samples


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--is_cloud", type=int, default=0, help="1: the environment says what this process is")
    parser.add_argument("--mode", choices=STRATEGIES, default="sync")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("fleet_data"),
                        help="a folder with train/; made if it is not there")
    parser.add_argument("--model_path", default="fleet_model")
    options = parser.parse_args()

    role = role_maker.PaddleCloudRoleMaker() if options.is_cloud else role_maker.UserDefinedRoleMaker()
    try:
        fleet.init(role)
    except regattarec.InvalidArgumentError as error:  # the environment names no part, or half of one
        parser.error(str(error))
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.mlp.parameters(), lr=1e-3)
    optimizer = fleet.distributed_optimizer(optimizer, STRATEGIES[options.mode]())
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    if fleet.is_worker():
        fleet.init_worker()
        if fleet.is_first_worker() and not options.data.exists():
            data.generate(options.data, samples=20_000, files=4, ids=20_000, click_rate=0.3, signal=2.0)
        fleet.barrier_worker()
        files = fleet.split_files(sorted(options.data.glob("train/*")))
        for epoch in range(options.epochs):
            loss = train(model, optimizer, files)
            if fleet.is_first_worker():
                print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
            fleet.save_persistables(f"{options.model_path}/epoch_{epoch}", epoch=epoch)
        fleet.stop_worker()


if __name__ == "__main__":
    main()
