"""Logistic regression: over fields of (id, value), as its sample has them, and over slots with dense features."""

import unittest

import parity
import reference


class Lr(parity.LogitCase):
    config = "rank/lr"
    sample = parity.ROOT / "models/rank/lr/data/sample_data/train/sample_train.txt"
    schema = reference.Schema(slots=("feat_idx",), label="label", values="feat_value")
    l2 = 0.01
    options = [f"hyper_parameters.reg={l2}"]
    tables = {"weight": 1}
    dense = {"bias": (1,)}

    def logit(self, batch, w):
        return batch.pooled(w["weight"]).sum(1) + w["bias"]


class LrOfSlots(parity.LogitCase):
    config = "rank/lr"
    l2 = 0.01
    options = [f"hyper_parameters.reg={l2}"]
    tables = {"weight": 1}
    dense = {"bias": (1,), "dense_w": (13,)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml = cls.dir / "slots.yaml"
        cls.yaml.write_text("model: lr\nhyper_parameters: {sparse_inputs_slots: 27, dense_input_dim: 13}\n")

    def logit(self, batch, w):
        return batch.pooled(w["weight"]).sum(1) + w["bias"] + batch.dense @ w["dense_w"]


if __name__ == "__main__":
    unittest.main()
