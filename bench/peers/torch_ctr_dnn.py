"""CTR-DNN in PyTorch, one core: 26 slots, dim 10, 400-400-400, batch 1000, sparse embedding with SparseAdam and Adam
for the rest.
Usage: torch_ctr_dnn.py text|memory PATH     (PATH.txt and PATH.bin by regatta_rounds write; see rounds.py)"""
import sys

import rounds

rounds.one_core()
import torch  # noqa: E402
from torch import nn  # noqa: E402

import data  # noqa: E402

DIM, RATE = 10, 1e-4


class CtrDnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(rounds.ROWS, DIM, sparse=True)
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)
        widths = [data.SLOTS * DIM + data.DENSE, 400, 400, 400]
        layers = []
        for fan_in, fan_out in zip(widths, widths[1:]):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(inplace=True)]
        self.mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(self, dense, ids):
        return self.mlp(torch.cat([self.embedding(ids).view(len(ids), -1), dense], 1)).squeeze(1)


def tensors(batch):
    return [torch.from_numpy(array) for array in batch]


def main(kind, path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = CtrDnn()
    sparse = torch.optim.SparseAdam([model.embedding.weight], lr=RATE)
    dense = torch.optim.Adam(model.mlp.parameters(), lr=RATE, fused=True)
    loss_of = nn.BCEWithLogitsLoss()
    in_memory = None
    if kind == "memory":
        in_memory = [tensors(batch) for batch in data.text_batches(path + ".txt", rounds.BATCH, rounds.ROWS)]

    def one_pass():
        samples = 0
        batches = in_memory or map(tensors, data.text_batches(path + ".txt", rounds.BATCH, rounds.ROWS))
        for labels, features, ids in batches:
            sparse.zero_grad(set_to_none=True)
            dense.zero_grad(set_to_none=True)
            loss_of(model(features, ids), labels).backward()
            sparse.step()
            dense.step()
            samples += len(labels)
        return samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
