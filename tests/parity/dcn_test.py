"""Deep & Cross: x' = x0·(x·w) + b + x with one w and b for all layers, beside a DNN, into one logit; the loss has
l2_reg_cross · Σ over layers and columns of (x·w)² a sample on top."""

import unittest

import torch

import parity
import reference

WIDTH = 26 * 9 + 13


class Dcn(parity.LogitCase):
    config = "rank/dcn"
    layers, l2_reg_cross = 3, 0.01
    options = [
        "hyper_parameters.fc_sizes=[37,19]",
        f"hyper_parameters.cross_num={layers}",
        f"hyper_parameters.l2_reg_cross={l2_reg_cross}",
    ]
    spread = 0.1
    tables = {"embedding": 9}
    dense = {
        "deep_0.w": (WIDTH, 37), "deep_0.b": (37,),
        "deep_1.w": (37, 19), "deep_1.b": (19,),
        "cross.w": (WIDTH,), "cross.b": (WIDTH,),
        "fc.w": (19 + WIDTH, 1), "fc.b": (1,),
    }  # fmt: skip

    def cross(self, batch, w):
        x0 = x = torch.cat([batch.pooled(w["embedding"]), batch.dense], 1)
        penalty = 0
        for _ in range(self.layers):
            penalty = penalty + ((x * w["cross.w"]) ** 2).sum(1)
            x = x0 * (x @ w["cross.w"])[:, None] + w["cross.b"] + x
        return x0, x, penalty

    def logit(self, batch, w):
        x0, x, _ = self.cross(batch, w)
        deep = reference.mlp(x0, w, "deep", 2, last_relu=True)
        return (torch.cat([deep, x], 1) @ w["fc.w"] + w["fc.b"]).squeeze(1)

    def loss(self, batch, w):
        return super().loss(batch, w) + self.l2_reg_cross * self.cross(batch, w)[2]


class ClippedDcn(Dcn):
    """clip_by_norm bounds the global norm of the mean dense gradient; rows are not clipped."""

    clip_by_norm = 0.1
    options = [*Dcn.options, f"hyper_parameters.clip_by_norm={clip_by_norm}"]
    test_twenty_steps_of_adam = test_predictions_and_auc = None


if __name__ == "__main__":
    unittest.main()
