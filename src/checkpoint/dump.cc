#include "checkpoint/dump.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/printable.h"

namespace regatta::checkpoint {
namespace {

constexpr size_t kSinkBytes = 64 << 10;
constexpr int64_t kElementsPerLine = 1024;

absl::Status FlushIfLarge(std::string& text, const TextSink& sink, size_t limit) {
  if (text.size() < limit || text.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(sink(text));
  text.clear();
  return absl::OkStatus();
}

absl::Status DumpTable(const CheckpointReader& save, size_t index, const TextSink& sink) {
  const SavedSparse& table = save.manifest().sparse[index];
  const std::string name = base::Printable(table.config.name);
  MergedRows rows = save.Rows(index);
  std::string text;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) break;
    absl::StrAppend(&text, name, "\t", rows.key());
    AppendRow(rows.row(), static_cast<size_t>(table.pull_width), text);
    text.push_back('\n');
    RETURN_IF_ERROR(FlushIfLarge(text, sink, kSinkBytes));
  }
  return FlushIfLarge(text, sink, 0);
}

// The parameter whose elements begin at `offset` of the dense arrays.
absl::Status DumpParameter(const CheckpointReader& save, const table::DenseParameterConfig& p, uint64_t offset,
                           const TextSink& sink) {
  const SavedDense& dense = *save.manifest().dense;
  const std::string name = absl::StrCat(base::Printable(dense.config.name), "\t", base::Printable(p.name));
  const int64_t last = p.shape.empty() ? 1 : p.shape.back();
  std::string text;
  for (int64_t i = 0; i < p.size();) {
    // A line never crosses from one row of the parameter into the next.
    const int64_t n = std::min(kElementsPerLine, last - i % last);
    std::vector<float> values(static_cast<size_t>(n) * (1 + dense.state_count));
    for (uint32_t array = 0; array <= dense.state_count; ++array)
      RETURN_IF_ERROR(save.ReadDense(array, offset + static_cast<uint64_t>(i),
                                     std::span(values).subspan(array * static_cast<size_t>(n), n)));
    absl::StrAppend(&text, name, "[", i, "]");
    AppendRow(values, static_cast<size_t>(n), text);
    text.push_back('\n');
    RETURN_IF_ERROR(FlushIfLarge(text, sink, kSinkBytes));
    i += n;
  }
  return FlushIfLarge(text, sink, 0);
}

}  // namespace

void AppendFloat(float value, std::string& out) {
  char buffer[32];
  const int n = std::snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(value));
  out.append(buffer, static_cast<size_t>(n));
}

void AppendRow(std::span<const float> row, size_t weights, std::string& out) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (i == weights) out.append("\t|");
    out.push_back('\t');
    AppendFloat(row[i], out);
  }
}

absl::Status DumpDense(const CheckpointReader& save, const std::string& only, const TextSink& sink) {
  const auto& dense = save.manifest().dense;
  bool found = only.empty();
  uint64_t offset = 0;
  for (size_t i = 0; dense && i < dense->config.parameters.size(); ++i) {
    const table::DenseParameterConfig& p = dense->config.parameters[i];
    if (only.empty() || p.name == only) {
      found = true;
      RETURN_IF_ERROR(DumpParameter(save, p, offset, sink));
    }
    offset += static_cast<uint64_t>(p.size());
  }
  if (!found) return absl::NotFoundError(absl::StrCat(save.folder(), " has no dense parameter ", only));
  if (!dense || !only.empty()) return absl::OkStatus();
  return sink(absl::StrCat(base::Printable(dense->config.name), "\tupdates\t", dense->updates, "\n"));
}

absl::Status DumpSave(const CheckpointReader& save, const std::string& only, const TextSink& sink) {
  const Manifest& m = save.manifest();
  std::vector<size_t> order(m.sparse.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return m.sparse[a].config.name < m.sparse[b].config.name; });
  bool found = only.empty();
  for (const size_t i : order) {
    if (!only.empty() && m.sparse[i].config.name != only) continue;
    found = true;
    RETURN_IF_ERROR(DumpTable(save, i, sink));
  }
  if (m.dense && (only.empty() || m.dense->config.name == only)) {
    found = true;
    RETURN_IF_ERROR(DumpDense(save, "", sink));
  }
  if (!found) return absl::NotFoundError(absl::StrCat(save.folder(), " has no table ", only));
  return absl::OkStatus();
}

}  // namespace regatta::checkpoint
