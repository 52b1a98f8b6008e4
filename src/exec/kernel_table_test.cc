#include "exec/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "program/schema_table.h"

namespace regatta::exec {
namespace {

// Operators that a program can have and that cannot run yet.
constexpr std::string_view kWithoutKernel[] = {
    // Loops, branches and arrays.
    "recurrent",
    "split_lod_tensor",
    "merge_lod_tensor",
    "select_input",
    "beam_search",
    "beam_search_decode",
    "print",
    "py_func",
    // Servers.
    "send",
    "recv",
    "send_barrier",
    "fetch_barrier",
    "listen_and_serv",
    "checkpoint_notify",
    "prefetch",
    "distributed_lookup_table",
    "lookup_sparse_table",
    "split_byref",
    "split_ids",
    "split_selected_rows",
    "merge_ids",
    "ref_by_trainer_id",
    "recv_save",
    "fake_init",
    // Files and readers.
    "feed",
    "fetch",
    "save",
    "load",
    "save_combine",
    "load_combine",
    "read",
    "create_py_reader",
    "create_double_buffer_reader",
    "delete_var",
    // Metrics.
    "precision_recall",
    "positive_negative_pair",
    "edit_distance",
    "chunk_eval",
    "mean_iou",
    // Layers.
    "conv2d_transpose",
    "data_norm",
    "lrn",
    "nce",
    "hierarchical_sigmoid",
    "row_conv",
    // Sequences.
    "sequence_scatter",

    "lstmp",

    // Tensors.
    "hash",
    "shuffle_batch",
};

TEST(KernelTableTest, EveryOperatorHasAKernelOrIsKnownToHaveNone) {
  for (const program::OpSchema& schema : program::AllSchemas()) {
    const bool missing = std::ranges::find(kWithoutKernel, schema.type) != std::end(kWithoutKernel);
    EXPECT_EQ(FindKernel(schema.type) == nullptr, missing) << schema.type;
  }
}

TEST(KernelTableTest, AnUnknownOperatorHasNone) { EXPECT_EQ(FindKernel("fc"), nullptr); }

}  // namespace
}  // namespace regatta::exec
