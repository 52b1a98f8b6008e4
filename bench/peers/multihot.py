"""The parts of MULTIHOT that the torch peers share: batches and the network above the embeddings."""
import torch
from torch import nn

import data
import rounds

DIM, RATE = 16, 0.01


class Batches:
    """Iterates over (labels, dense, ids [batch, slots, ids a slot])."""

    def __init__(self, path):
        self.arrays = data.Binary(path + ".bin")
        self.samples, self.slots, self.ids_a_slot = self.arrays.ids.shape
        self.rows_a_slot = self.arrays.vocabulary

    def __iter__(self):
        for begin in range(0, self.samples, rounds.BATCH):
            part = slice(begin, begin + rounds.BATCH)
            yield tuple(torch.from_numpy(a[part]) for a in (self.arrays.labels, self.arrays.dense, self.arrays.ids))

    def offsets(self, samples):
        return torch.arange(0, samples * self.slots + 1) * self.ids_a_slot


class Mlp:
    """128-64-1 over the pooled vectors and the dense features, with Adagrad."""

    def __init__(self, batches):
        inputs = batches.slots * DIM + batches.arrays.dense.shape[1]
        self.layers = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(inplace=True), nn.Linear(128, 64),
                                    nn.ReLU(inplace=True), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adagrad(self.layers.parameters(), lr=RATE)
        self.loss = nn.BCEWithLogitsLoss()

    def step(self, pooled, dense, labels):
        """Forward, backward (into `pooled` too) and the update of the layers."""
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.layers(torch.cat([pooled, dense], 1)).squeeze(1)
        self.loss(logits, labels).backward()
        self.optimizer.step()
