"""Factorisation machine: Σ weights + Σ over pairs of fields of the inner product of their vectors, pair by pair."""

import unittest

import torch

import parity


def first_order(batch, w):
    return batch.pooled(w["embedding_one"]).sum(1) + batch.dense @ w["dense_w_one"] + w["bias"]


def fields(batch, w):
    """[samples, 26 + 13, dim]"""
    sparse = batch.pooled(w["embedding"]).reshape(batch.size, 26, -1)
    return torch.cat([sparse, batch.dense[:, :, None] * w["dense_w"]], 1)


def pairs(vectors):
    total = 0
    for i in range(vectors.shape[1]):
        for j in range(i):
            total = total + (vectors[:, i] * vectors[:, j]).sum(1)
    return total


class Fm(parity.LogitCase):
    config = "rank/fm"
    tables = {"embedding_one": 1, "embedding": 9}
    dense = {"bias": (1,), "dense_w_one": (13,), "dense_w": (1, 13, 9)}

    def logit(self, batch, w):
        return first_order(batch, w) + pairs(fields(batch, w))


if __name__ == "__main__":
    unittest.main()
