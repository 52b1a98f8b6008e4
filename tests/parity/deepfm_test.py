"""DeepFM: the factorisation machine plus a DNN over the same field vectors."""

import unittest

import fm_test
import parity
import reference


class DeepFm(parity.LogitCase):
    config = "rank/deepfm"
    options = ["hyper_parameters.fc_sizes=[37,19]"]
    tables = fm_test.Fm.tables
    dense = {
        **fm_test.Fm.dense,
        "deep_0.w": ((26 + 13) * 9, 37), "deep_0.b": (37,),
        "deep_1.w": (37, 19), "deep_1.b": (19,),
        "deep_2.w": (19, 1), "deep_2.b": (1,),
    }  # fmt: skip

    def logit(self, batch, w):
        vectors = fm_test.fields(batch, w)
        deep = reference.mlp(vectors.reshape(batch.size, -1), w, "deep", 3).squeeze(1)
        return fm_test.first_order(batch, w) + fm_test.pairs(vectors) + deep


if __name__ == "__main__":
    unittest.main()
