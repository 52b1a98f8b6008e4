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


def auc(labels, scores):
    """The share of (click, no click) pairs that are in the right order."""
    order = labels[scores.argsort()]
    clicks = order.sum()
    ranks = torch.arange(1, len(order) + 1, dtype=torch.float64)
    return float(((ranks * order).sum() - clicks * (clicks + 1) / 2) / (clicks * (len(order) - clicks)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--save", default="quickstart_model")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Model()
    optimizer = rt.wrap(torch.optim.Adam(model.mlp.parameters(), lr=1e-3), model)
    clicks = Clicks(seed=int(os.environ.get("PADDLE_TRAINER_ID", 0)))
    for step in range(1, options.steps + 1):
        ids, label = clicks.batch(BATCH)
        loss = F.binary_cross_entropy_with_logits(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    model.eval()
    ids, label = Clicks(seed=1000).batch(20_000)
    with torch.no_grad():
        print(f"test auc: {auc(label, model(ids)):.4f}")
    rt.save(options.save)


if __name__ == "__main__":
    main()
