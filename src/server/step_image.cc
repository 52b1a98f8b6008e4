#include "server/step_image.h"

#include <algorithm>
#include <unordered_map>

namespace regatta::server {

void StepImage::Show(int table, std::span<const base::Key> keys, base::RowsView<float> out) const {
  for (const Table& kept : tables) {
    if (kept.table != table || kept.width != out.width) continue;
    std::unordered_map<base::Key, size_t> at;
    for (size_t i = 0; i < kept.keys.size(); ++i) at.emplace(kept.keys[i], i);
    const auto width = static_cast<size_t>(kept.width);
    for (size_t i = 0; i < keys.size(); ++i)
      if (const auto found = at.find(keys[i]); found != at.end())
        std::copy_n(kept.rows.data() + found->second * width, width, out.row(static_cast<int64_t>(i)));
  }
}

void ToWire(const StepImage& image, ps::StepImage& out) {
  out.set_step(image.step);
  for (const StepImage::Table& table : image.tables) {
    ps::StepImage::Table& kept = *out.add_tables();
    kept.set_table(static_cast<uint32_t>(table.table));
    kept.set_width(static_cast<uint32_t>(table.width));
    kept.mutable_keys()->Add(table.keys.begin(), table.keys.end());
    kept.mutable_rows()->Add(table.rows.begin(), table.rows.end());
  }
  out.mutable_dense()->Add(image.dense.begin(), image.dense.end());
}

StepImage FromWire(const ps::StepImage& image) {
  StepImage read;
  read.step = image.step();
  for (const ps::StepImage::Table& kept : image.tables()) {
    if (kept.rows_size() != static_cast<int64_t>(kept.width()) * kept.keys_size()) continue;
    read.tables.push_back({static_cast<int>(kept.table()),
                           static_cast<int>(kept.width()),
                           {kept.keys().begin(), kept.keys().end()},
                           {kept.rows().begin(), kept.rows().end()}});
  }
  read.dense.assign(image.dense().begin(), image.dense().end());
  return read;
}

}  // namespace regatta::server
