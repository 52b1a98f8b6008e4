"""A click model in PyTorch whose embeddings are Regatta's: alone, or on servers and workers, unchanged.

    python3 examples/torch_quickstart/train.py
    regatta launch --server_num=2 --worker_num=2 -- python3 examples/torch_quickstart/train.py
"""
import argparse
import os

import torch
import torch.nn.functional as F

import regattarec.torch as rt

SLOTS, DIM, BATCH = 8, 8, 256


class Clicks:
    """Made-up clicks: ids with a long tail, each with a hidden effect on the click."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)

    def batch(self, size):
        rank = torch.rand(size, SLOTS, generator=self.random).pow(4).mul(100_000).long()
        ids = rank * SLOTS + torch.arange(SLOTS)
        effect = torch.sin(ids.double() * 12.9898).mul(43758.5453).frac().float()
        label = torch.rand(size, generator=self.random) < torch.sigmoid(effect.sum(1) - 1)
        return ids, label.float()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = rt.Embedding(None, DIM, table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.01))
        self.mlp = torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def forward(self, ids):
        return self.mlp(self.embedding(ids).flatten(1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batches", type=int, default=500, help="of an epoch, at each worker")
    parser.add_argument("--save", default="quickstart_model", help="the folder of the saves")
    parser.add_argument("--mode", default="async", help="sync, async, half_async or geo")
    options = parser.parse_args()
    torch.manual_seed(0)
    rt.init(mode=options.mode)
    model = Model()
    optimizer = rt.wrap(torch.optim.Adam(model.mlp.parameters(), lr=1e-3), model)
    worker = int(os.environ.get("PADDLE_TRAINER_ID", 0))

    def clicks(epoch):
        """Other batches in every epoch and at every worker, the same ones each time."""
        source = Clicks(seed=1000 * epoch + worker)
        return (source.batch(BATCH) for _ in range(options.batches))

    with rt.session(save=options.save, checkpoint_minutes=5) as session:
        for epoch in session.epochs(options.epochs):
            for ids, label in session.batches(clicks):
                logits = model(ids)
                loss = F.binary_cross_entropy_with_logits(logits, label)
                session.observe(loss, predictions=torch.sigmoid(logits), labels=label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            ids, label = Clicks(seed=999).batch(20_000)
            with torch.no_grad():
                loss = F.binary_cross_entropy_with_logits(model(ids), label)
            model.train()
            print(f"test loss after epoch {epoch}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
