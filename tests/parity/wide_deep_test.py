"""Wide & Deep: a linear model of the dense features plus the DNN."""

import unittest

import torch

import parity
import reference

WIDTH = 26 * 9 + 13


class WideDeep(parity.LogitCase):
    config = "rank/wide_deep"
    options = ["hyper_parameters.fc_sizes=[37,19]"]
    tables = {"embedding": 9}
    dense = {
        "wide.w": (13, 1), "wide.b": (1,),
        "deep_0.w": (WIDTH, 37), "deep_0.b": (37,),
        "deep_1.w": (37, 19), "deep_1.b": (19,),
        "deep_2.w": (19, 1), "deep_2.b": (1,),
    }  # fmt: skip

    def logit(self, batch, w):
        x = torch.cat([batch.pooled(w["embedding"]), batch.dense], 1)
        wide = batch.dense @ w["wide.w"] + w["wide.b"]
        return (wide + reference.mlp(x, w, "deep", 3)).squeeze(1)


class WideDeepWithoutDense(parity.LogitCase):
    """The wide part is its bias."""

    config = "rank/wide_deep"
    options = ["hyper_parameters.dense_input_dim=0", "hyper_parameters.fc_sizes=[19]"]
    tables = {"embedding": 9}
    dense = {"wide.b": (1,), "deep_0.w": (26 * 9, 19), "deep_0.b": (19,), "deep_1.w": (19, 1), "deep_1.b": (1,)}

    def logit(self, batch, w):
        return (w["wide.b"] + reference.mlp(batch.pooled(w["embedding"]), w, "deep", 2)).squeeze(1)


if __name__ == "__main__":
    unittest.main()
