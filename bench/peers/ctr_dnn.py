"""The parts of CTR-DNN that the torch sides share: the network above the embeddings and its optimizer."""
import torch
from torch import nn

import data

DIM, RATE = 10, 1e-4


class Mlp:
    """400-400-400-1 over the rows and the dense features."""

    def __init__(self):
        widths = [data.SLOTS * DIM + data.DENSE, 400, 400, 400]
        layers = []
        for fan_in, fan_out in zip(widths, widths[1:]):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
        self.loss = nn.BCEWithLogitsLoss()

    def backward(self, rows, dense, labels):
        """Forward and backward, into `rows` too."""
        logits = self.layers(torch.cat([rows.view(len(labels), -1), dense], 1)).squeeze(1)
        self.loss(logits, labels).backward()


def adam(parameters):
    """The fastest that this PyTorch has: fused on a CPU from 2.4 on."""
    parameters = list(parameters)
    try:
        return torch.optim.Adam(parameters, lr=RATE, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.Adam(parameters, lr=RATE)
