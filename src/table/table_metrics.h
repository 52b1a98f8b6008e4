// Tables as Prometheus reads them: regatta_table_*, the same of a server as of a process that holds its own.
// Thread-safety: a pure function of what the tables count.
#pragma once

#include "metrics/exposition.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::table {

void CollectTable(const SparseTable& table, metrics::Exposition& out);
void CollectTable(const DenseTable& table, metrics::Exposition& out);

}  // namespace regatta::table
