"""CTR-DNN: pooled vectors and dense features, side by side, through fully connected layers."""

import unittest

import torch

import parity
import reference

WIDTH = 26 * 9 + 13


class Dnn(parity.LogitCase):
    config = "rank/dnn"
    options = ["hyper_parameters.fc_sizes=[37,19]"]
    tables = {"embedding": 9}
    dense = {
        "fc_0.w": (WIDTH, 37), "fc_0.b": (37,),
        "fc_1.w": (37, 19), "fc_1.b": (19,),
        "fc_2.w": (19, 1), "fc_2.b": (1,),
    }  # fmt: skip

    def logit(self, batch, w):
        x = torch.cat([batch.pooled(w["embedding"]), batch.dense], 1)
        return reference.mlp(x, w, "fc", 3).squeeze(1)


if __name__ == "__main__":
    unittest.main()
