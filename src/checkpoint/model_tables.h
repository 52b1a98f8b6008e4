// The tables of a model that a save fills, and what for.
// Thread-safety: plain values.
#pragma once

#include <vector>

#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

// The tables of a model, to be filled.
struct ModelTables {
  std::vector<table::SparseTable*> sparse;
  table::DenseTable* dense = nullptr;
};

enum class LoadKind {
  kTraining,   // weights and optimizer state; the rules must be the saved ones (their settings may differ)
  kInference,  // weights only: any rule will do, tables that the model lacks are left out
};

}  // namespace regatta::checkpoint
