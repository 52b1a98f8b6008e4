"""What a step of a PyTorch program leaves behind."""
import unittest

from script import ScriptTest


class TorchMemoryTest(ScriptTest):
    def test_a_step_is_freed_without_the_collector(self):
        self.run_script("""
import gc
import torch
import regattarec.torch as rt
bag, rows = rt.EmbeddingBag(None, 4, mode="sum", table="bags"), rt.Embedding(None, 4, table="rows")
mlp = torch.nn.Linear(4, 1)
opt = rt.wrap(torch.optim.SGD(mlp.parameters(), lr=0.1), bag, rows)
weights = torch.ones(6, requires_grad=True)
gc.collect()
gc.disable()
for k in range(3):
    ids, of_ids = torch.tensor([[0, 1], [0, 2], [3, 4]]) + k, weights.view(3, 2)
    if k == 2:
        rt.prefetch((bag, ids, None, of_ids))
    pooled, single = bag(ids, None, of_ids), rows(ids[:, 0])
    opt.zero_grad()
    mlp(pooled + single).sum().backward()
    opt.step()
    del pooled, single
    # Outputs are [3, 4]; what the tables keep for gradients has a row for each of 5 and of 2 keys.
    left = [type(t) for t in gc.get_objects() if type(t) is torch.Tensor and t.shape == (3, 4)]
    assert not left, (k, left)
""")


if __name__ == "__main__":
    unittest.main()
