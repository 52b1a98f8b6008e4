#include "table/table_metrics.h"

namespace regatta::table {

void CollectTable(const SparseTable& table, metrics::Exposition& out) {
  const metrics::Labels labels = {{"table", table.config().name}};
  out.Gauge("regatta_table_rows", "Rows of a sparse table that this process holds.", static_cast<double>(table.rows()),
            labels);
  out.Gauge("regatta_table_bytes", "Memory of a sparse table: index and rows.",
            static_cast<double>(table.memory_bytes()), labels);
  out.Counter("regatta_table_skipped_gradients_total", "Row gradients left out because they held NaN or Inf.",
              static_cast<double>(table.skipped_gradients()), labels);
}

void CollectTable(const DenseTable& table, metrics::Exposition& out) {
  out.Gauge("regatta_dense_parameters", "Dense parameters that this process holds.", static_cast<double>(table.size()));
  out.Counter("regatta_dense_skipped_gradients_total", "Dense updates left out because their gradient held NaN or Inf.",
              static_cast<double>(table.skipped_gradients()));
}

}  // namespace regatta::table
