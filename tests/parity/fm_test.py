"""Factorisation machine: Σ weights + Σ over pairs of fields of the inner product of their vectors, pair by pair."""

import unittest

import torch

import parity


def first_order(batch, w):
    return batch.pooled(w["embedding_one"]).sum(1) + batch.dense @ w["dense_w_one"] + w["bias"]


def sparse_fields(batch, w):
    """[samples, 26, dim]"""
    return batch.pooled(w["embedding"]).reshape(batch.size, 26, -1)


def fields(batch, w):
    """[samples, 26 + 13, dim]"""
    return torch.cat([sparse_fields(batch, w), batch.dense[:, :, None] * w["dense_w"]], 1)


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


class FmWithoutDense(parity.LogitCase):
    config = "rank/fm"
    options = ["hyper_parameters.dense_input_dim=0"]
    tables = Fm.tables
    dense = {"bias": (1,)}

    def logit(self, batch, w):
        return batch.pooled(w["embedding_one"]).sum(1) + w["bias"] + pairs(sparse_fields(batch, w))


if __name__ == "__main__":
    unittest.main()
