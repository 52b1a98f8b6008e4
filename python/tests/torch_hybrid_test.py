"""DistributedDataParallel beside tables on servers: workers together equal one process with all their samples."""
import json
import unittest

from script import ScriptTest

TWO = ("--server_num=2", "--worker_num=2")

TRAIN = """
import json, os, sys
import torch, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
import regattarec.torch as rt
torch.set_num_threads(1)
rt.init(mode="sync")
torch.manual_seed(int(os.environ.get("PADDLE_TRAINER_ID", 0)))    # DistributedDataParallel begins with the first one's
e = rt.EmbeddingBag(None, 4, mode="mean", table="slots", rule=rt.Adagrad(lr=0.1), init=rt.Uniform(0.1))
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
rt.init_process_group()
rank, workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
ddp = DistributedDataParallel(net)
o = rt.wrap(torch.optim.AdamW(ddp.parameters(), lr=0.01), e)
extra = int(sys.argv[1]) * rank

def clicks(epoch):
    for k in range(30 + extra):
        g = torch.Generator().manual_seed(100 * epoch + k)
        ids, y = torch.randint(-50, 50, (32, 3), generator=g), torch.randint(0, 2, (32,), generator=g).float()
        mine = slice(rank * 32 // workers, (rank + 1) * 32 // workers)
        yield ids[mine], y[mine]

with rt.session() as s:
    for epoch in s.epochs(2):
        for ids, y in s.batches(clicks):
            loss = F.binary_cross_entropy_with_logits(ddp(e(ids)).squeeze(1), y)
            o.zero_grad(); loss.backward(); o.step()
rows = rt.to_embedding(e, torch.arange(-50, 50)).weight
print(json.dumps([x for p in net.parameters() for x in p.flatten().tolist()] + rows.flatten().tolist()))
"""


class HybridTest(ScriptTest):
    def result(self, out):
        return json.loads(next(line for line in out.splitlines() if line.startswith("[")))

    def test_two_workers_equal_one_process_with_both_halves(self):
        alone = self.result(self.run_script(TRAIN, "0"))
        self.run_script(TRAIN, "0", launch=TWO)
        together = [self.result(self.log(f"workerlog.{i}")) for i in range(2)]
        self.assertEqual(together[0], together[1])
        self.assertLess(max(abs(a - b) for a, b in zip(alone, together[0])), 1e-5)
        self.assertGreater(max(map(abs, alone)), 0.1)

    def test_workers_with_other_numbers_of_batches_end_with_what_to_do(self):
        self.run_script(TRAIN, "1", launch=TWO, code=1)
        for i in range(2):
            self.assertIn("1 of 2 workers have a batch left in epoch 0", self.log(f"workerlog.{i}"))


if __name__ == "__main__":
    unittest.main()
