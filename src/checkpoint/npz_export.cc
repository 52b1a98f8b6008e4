#include <algorithm>

#include "checkpoint/npz.h"
#include "checkpoint/npz_model.h"

namespace regatta::checkpoint {
namespace {

enum class Column { kKeys, kWeights, kState };

// One pass over the rows for one array: an array is written whole before the next begins.
absl::Status ExportColumn(const CheckpointReader& save, size_t index, uint64_t count, Column column, NpzWriter& out) {
  const SavedSparse& t = save.manifest().sparse[index];
  const uint64_t weights = static_cast<uint64_t>(t.pull_width), state = static_cast<uint64_t>(t.row_width) - weights;
  const std::string& name = t.config.name;
  switch (column) {
    case Column::kKeys:
      RETURN_IF_ERROR(out.BeginArray(name + ".keys", "<u8", {count}));
      break;
    case Column::kWeights:
      RETURN_IF_ERROR(out.BeginArray(name + ".w", "<f4", {count, weights}));
      break;
    case Column::kState:
      RETURN_IF_ERROR(out.BeginArray(name + ".state", "<f4", {count, state}));
      break;
  }
  MergedRows rows = save.Rows(index);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return out.EndArray();
    const base::Key key = rows.key();
    const std::span<const float> part =
        column == Column::kState ? rows.row().subspan(weights) : rows.row().first(weights);
    RETURN_IF_ERROR(column == Column::kKeys ? out.Append(&key, sizeof key)
                                            : out.Append(part.data(), part.size_bytes()));
  }
}

absl::Status ExportDense(const CheckpointReader& save, NpzWriter& out) {
  const SavedDense& dense = *save.manifest().dense;
  uint64_t begin = 0;
  std::vector<float> chunk(4096);
  for (const table::DenseParameterConfig& p : dense.config.parameters) {
    const std::vector<uint64_t> shape(p.shape.begin(), p.shape.end());
    const uint64_t size = static_cast<uint64_t>(p.size());
    for (uint32_t array = 0; array <= dense.state_count; ++array) {
      const std::string suffix = array == 0 ? "" : absl::StrCat(".state", array - 1);
      RETURN_IF_ERROR(out.BeginArray(absl::StrCat("dense.", p.name, suffix), "<f4", shape));
      for (uint64_t i = 0; i < size; i += chunk.size()) {
        const std::span<float> part = std::span(chunk).first(std::min<uint64_t>(chunk.size(), size - i));
        RETURN_IF_ERROR(save.ReadDense(array, begin + i, part));
        RETURN_IF_ERROR(out.Append(part.data(), part.size_bytes()));
      }
      RETURN_IF_ERROR(out.EndArray());
    }
    begin += size;
  }
  RETURN_IF_ERROR(out.BeginArray("updates", "<u8", {}));
  RETURN_IF_ERROR(out.Append(&dense.updates, sizeof dense.updates));
  return out.EndArray();
}

absl::Status ExportAll(const CheckpointReader& save, NpzWriter& out) {
  for (size_t t = 0; t < save.manifest().sparse.size(); ++t) {
    ASSIGN_OR_RETURN(const uint64_t rows, save.CountRows(t));
    RETURN_IF_ERROR(ExportColumn(save, t, rows, Column::kKeys, out));
    RETURN_IF_ERROR(ExportColumn(save, t, rows, Column::kWeights, out));
    const SavedSparse& table = save.manifest().sparse[t];
    if (table.row_width > table.pull_width) RETURN_IF_ERROR(ExportColumn(save, t, rows, Column::kState, out));
  }
  if (save.manifest().dense) RETURN_IF_ERROR(ExportDense(save, out));
  return out.Finish();
}

}  // namespace

absl::Status ExportNpz(const CheckpointReader& save, const std::string& path) {
  ASSIGN_OR_RETURN(auto out, NpzWriter::Create(path));
  return ExportAll(save, *out);
}

}  // namespace regatta::checkpoint
