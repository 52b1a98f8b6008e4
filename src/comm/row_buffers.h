// Where a step's rows land: a buffer a table, grown as needed, reused from step to step; and how wide they are.
// Thread-safety: belongs to one step.
#pragma once

#include <span>
#include <vector>

#include "base/raw_vector.h"
#include "base/step.h"
#include "client/ps_client.h"
#include "comm/communicator.h"

namespace regatta::comm {

// As the client has them.
inline std::vector<RowWidths> WidthsOf(const client::PsClient& client) {
  std::vector<RowWidths> widths;
  for (int t = 0; t < client.sparse_tables(); ++t) widths.push_back({client.pull_width(t), client.push_width(t)});
  return widths;
}

class RowBuffers {
 public:
  // Room for a row of every key; what was there is lost.
  std::span<const base::RowsView<float>> Reserve(const client::PsClient& client,
                                                 std::span<const base::TableKeys> tables) {
    rows_.resize(tables.size());
    out_.resize(tables.size());
    views_.resize(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      const int width = client.pull_width(tables[i].table);
      const size_t need = tables[i].keys.size() * static_cast<size_t>(width);
      if (rows_[i].size() < need) rows_[i].resize(need + need / 8);
      out_[i] = {rows_[i].data(), width, width};
      views_[i] = {rows_[i].data(), width, width};
    }
    return out_;
  }
  std::span<const base::RowsView<const float>> views() const { return views_; }

 private:
  std::vector<base::RawVector<float>> rows_;
  std::vector<base::RowsView<float>> out_;
  std::vector<base::RowsView<const float>> views_;
};

}  // namespace regatta::comm
