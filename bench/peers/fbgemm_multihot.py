"""MULTIHOT with fbgemm's table-batched embedding on the CPU, one core, tensors in memory: 26 tables of dim 16, exact
row-wise Adagrad fused into the backward pass; 128-64 above them, batch 1000.
Usage: fbgemm_multihot.py PATH     (PATH.bin by regatta_rounds write; see rounds.py)"""
import sys

import rounds

rounds.one_core()
import torch  # noqa: E402
from fbgemm_gpu.split_embedding_configs import EmbOptimType  # noqa: E402
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode  # noqa: E402
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (  # noqa: E402
    ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

import multihot  # noqa: E402


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = multihot.Batches(path)
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(batches.rows_a_slot, multihot.DIM, EmbeddingLocation.HOST, ComputeDevice.CPU)] * batches.slots,
        optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=multihot.RATE, pooling_mode=PoolingMode.SUM)
    tables.init_embedding_weights_uniform(-0.05, 0.05)
    # fbgemm wants the bags of a table side by side; they are put in that order beforehand, outside the clock.
    in_memory = [(labels, dense, ids.transpose(0, 1).flatten(), batches.offsets(len(labels)))
                 for labels, dense, ids in batches]
    model = multihot.Mlp(batches)

    def one_pass():
        for labels, dense, ids, offsets in in_memory:
            model.step(tables(ids, offsets), dense, labels)
        return batches.samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
