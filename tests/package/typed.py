"""A program as a type checker sees it: mypy accepts it, and finds what is wrong with the calls of _core."""
import numpy
import torch

import regattarec
import regattarec.torch as rt
from regattarec import _core, data


def train(folder: str) -> float:
    clicks = data.Dataset(folder, slots=4, dense_dim=2, batch_size=32)
    embedding = rt.EmbeddingBag(None, 8, mode="sum", table="slots", rule=rt.Adagrad(lr=0.05), init=rt.Uniform(0.01))
    layer = torch.nn.Linear(8, 1)
    optimizer = rt.wrap(torch.optim.Adam(layer.parameters(), lr=1e-3), embedding)
    total = 0.0
    for batch in clicks:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            layer(embedding(batch.keys, batch.offsets)).squeeze(1), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    rt.save("model", model=layer, optimizer=optimizer)
    return total


def lookup(keys: numpy.ndarray, offsets: numpy.ndarray) -> int:
    return _core.Lookup(0, "sum", keys, offsets, None).keys


try:
    train("clicks/train")
except regattarec.NotFoundError as error:
    print(str(error), regattarec.__version__)
