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


class DeepFmWithoutDense(parity.LogitCase):
    config = "rank/deepfm"
    options = ["hyper_parameters.dense_input_dim=0", "hyper_parameters.fc_sizes=[19]"]
    tables = fm_test.Fm.tables
    dense = {
        "bias": (1,),
        "deep_0.w": (26 * 9, 19), "deep_0.b": (19,),
        "deep_1.w": (19, 1), "deep_1.b": (1,),
    }  # fmt: skip

    def logit(self, batch, w):
        vectors = fm_test.sparse_fields(batch, w)
        deep = reference.mlp(vectors.reshape(batch.size, -1), w, "deep", 2).squeeze(1)
        return batch.pooled(w["embedding_one"]).sum(1) + w["bias"] + fm_test.pairs(vectors) + deep


if __name__ == "__main__":
    unittest.main()
