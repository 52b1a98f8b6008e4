"""The reference itself, where no model of the repository uses it yet."""
import unittest

import torch

from reference import Batch, Sample, Schema


class ReferenceTest(unittest.TestCase):
    def test_a_mean_counts_ids_without_a_row(self):
        schema = Schema(slots=("1", "2"))
        samples = [Sample("click:1 dense_feature:0 1:7 1:8 1:9 2:7"), Sample("click:0 dense_feature:0 1:9")]
        batch = Batch(samples, schema, {7: 0, 8: 1})
        table = torch.tensor([[3.0, 6.0], [9.0, 12.0]], dtype=torch.double)
        self.assertEqual(batch.pooled(table).tolist(), [[12, 18, 3, 6], [0, 0, 0, 0]])
        self.assertEqual(batch.pooled(table, mean=True).tolist(), [[4, 6, 3, 6], [0, 0, 0, 0]])


if __name__ == "__main__":
    unittest.main()
