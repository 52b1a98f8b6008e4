"""Hybrid training: the embeddings on servers, the network in every worker, averaged by DistributedDataParallel.

    regatta launch --server_num=2 --worker_num=2 -- python3 examples/torch_hybrid/train.py
"""
import argparse

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import regattarec.torch as rt

SLOTS, DIM, BATCH = 8, 8, 256


def clicks(seed, batches):
    """Made-up clicks: ids with a long tail, each with a hidden effect on the click."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        ids = torch.rand(BATCH, SLOTS, generator=random).pow(4).mul(100_000).long() * SLOTS + torch.arange(SLOTS)
        effect = torch.sin(ids.double() * 12.9898).mul(43758.5453).frac().float()
        yield ids, (torch.rand(BATCH, generator=random) < torch.sigmoid(effect.sum(1) - 1)).float()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=500, help="of an epoch, at each worker")
    parser.add_argument("--save", default="hybrid_model", help="the folder of the saves")
    options = parser.parse_args()
    torch.manual_seed(0)
    rt.init(mode="sync")
    embedding = rt.Embedding(None, DIM, table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.01))
    mlp = torch.nn.Sequential(torch.nn.Linear(SLOTS * DIM, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    rt.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    mlp = DistributedDataParallel(mlp)
    optimizer = rt.wrap(torch.optim.AdamW(mlp.parameters(), lr=1e-3), embedding)     # any optimizer: it stays here

    with rt.session(save=options.save, checkpoint_minutes=5) as session:
        for epoch in session.epochs(options.epochs):
            for ids, label in session.batches(lambda epoch: clicks(1000 * epoch + rank, options.batches)):
                logits = mlp(embedding(ids).flatten(1)).squeeze(1)
                loss = F.binary_cross_entropy_with_logits(logits, label)
                session.observe(loss, predictions=torch.sigmoid(logits), labels=label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


if __name__ == "__main__":
    main()
