#include "checkpoint/model_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "absl/strings/str_join.h"

namespace regatta::checkpoint {
namespace {

constexpr size_t kFirst = 5;
constexpr size_t kChunk = 4096;

void Note(TableDifference& d, std::string what) {
  if (d.first.size() < kFirst) d.first.push_back(std::move(what));
}

void AddDistance(TableDifference& d, std::span<const float> a, std::span<const float> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isfinite(distance)) d.max_abs = std::max(d.max_abs, distance);
  }
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

absl::StatusOr<TableDifference> CompareRows(const CheckpointReader& a, const CheckpointReader& b, size_t table_a,
                                            size_t table_b) {
  TableDifference d;
  const SavedSparse &sa = a.manifest().sparse[table_a], &sb = b.manifest().sparse[table_b];
  d.name = sa.config.name;
  if (sa.row_width != sb.row_width || sa.pull_width != sb.pull_width) {
    d.schema = absl::StrCat("rows of ", sa.row_width, " floats (", sa.config.rule.name, ") against ", sb.row_width,
                            " (", sb.config.rule.name, ")");
    return d;
  }
  MergedRows ra = a.Rows(table_a), rb = b.Rows(table_b);
  ASSIGN_OR_RETURN(bool more_a, ra.Next());
  ASSIGN_OR_RETURN(bool more_b, rb.Next());
  while (more_a || more_b) {
    const bool in_a = more_a && (!more_b || ra.key() <= rb.key());
    const bool in_b = more_b && (!more_a || rb.key() <= ra.key());
    if (in_a && in_b && SameBits(ra.row(), rb.row())) {
      ++d.equal;
    } else {
      Note(d, absl::StrCat(in_a ? ra.key() : rb.key(), in_a && in_b ? "" : in_a ? " (only in A)" : " (only in B)"));
      ++(in_a && in_b ? d.different : in_a ? d.only_a : d.only_b);
      if (in_a && in_b) AddDistance(d, ra.row(), rb.row());
    }
    if (in_a) {
      ASSIGN_OR_RETURN(more_a, ra.Next());
    }
    if (in_b) {
      ASSIGN_OR_RETURN(more_b, rb.Next());
    }
  }
  return d;
}

// Where a parameter begins and how many elements it has; its shape as text.
struct ParameterRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  std::string shape;
};
using ParameterRanges = std::unordered_map<std::string, ParameterRange>;  // by the parameter's name

ParameterRanges ParameterRangesIn(const CheckpointReader& save) {
  ParameterRanges places;
  uint64_t begin = 0;
  if (!save.manifest().dense) return places;
  for (const table::DenseParameterConfig& p : save.manifest().dense->config.parameters) {
    const auto size = static_cast<uint64_t>(p.size());
    places[p.name] = {begin, size, absl::StrCat("[", absl::StrJoin(p.shape, ","), "]")};
    begin += size;
  }
  return places;
}

// `in_a` and `in_b`: where the parameter is, null where it is not.
absl::StatusOr<TableDifference> CompareParameter(const CheckpointReader& a, const CheckpointReader& b,
                                                 const std::string& name, const ParameterRange* in_a,
                                                 const ParameterRange* in_b) {
  TableDifference d;
  d.name = "dense." + name;
  if (in_a == nullptr || in_b == nullptr) {
    d.schema = in_a != nullptr ? "only in A" : "only in B";
    return d;
  }
  const ParameterRange &pa = *in_a, &pb = *in_b;
  if (pa.shape != pb.shape)
    d.schema = absl::StrCat("shape ", pa.shape, " against ", pb.shape);
  else if (a.manifest().dense->state_count != b.manifest().dense->state_count)
    d.schema = "another number of states";
  if (!d.schema.empty()) return d;
  std::vector<float> va(kChunk), vb(kChunk);
  for (uint32_t array = 0; array <= a.manifest().dense->state_count; ++array) {
    for (uint64_t i = 0; i < pa.size; i += kChunk) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(kChunk, pa.size - i));
      RETURN_IF_ERROR(a.ReadDense(array, pa.begin + i, std::span(va).first(n)));
      RETURN_IF_ERROR(b.ReadDense(array, pb.begin + i, std::span(vb).first(n)));
      AddDistance(d, std::span(va).first(n), std::span(vb).first(n));
      for (size_t j = 0; j < n; ++j) {
        if (SameBits(std::span(va).subspan(j, 1), std::span(vb).subspan(j, 1))) {
          ++d.equal;
          continue;
        }
        ++d.different;
        Note(d, absl::StrCat(array == 0 ? "value" : absl::StrCat("state ", array - 1), "[", i + j, "]"));
      }
    }
  }
  return d;
}

TableDifference OnlyIn(const SavedSparse& table, const char* where) {
  TableDifference d;
  d.name = table.config.name;
  d.schema = absl::StrCat("only in ", where, " (", table.rows, " rows)");
  return d;
}

}  // namespace

absl::StatusOr<std::vector<TableDifference>> CompareSaves(const CheckpointReader& a, const CheckpointReader& b) {
  std::vector<TableDifference> all;
  const Manifest &ma = a.manifest(), &mb = b.manifest();
  for (size_t i = 0; i < ma.sparse.size(); ++i) {
    const SavedSparse* other = mb.FindSparse(ma.sparse[i].config.name);
    if (!other) {
      all.push_back(OnlyIn(ma.sparse[i], "A"));
      continue;
    }
    ASSIGN_OR_RETURN(TableDifference d, CompareRows(a, b, i, static_cast<size_t>(other - mb.sparse.data())));
    all.push_back(std::move(d));
  }
  for (const SavedSparse& table : mb.sparse)
    if (!ma.FindSparse(table.config.name)) all.push_back(OnlyIn(table, "B"));
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Manifest* m : {&ma, &mb})
    if (m->dense)
      for (const table::DenseParameterConfig& p : m->dense->config.parameters)
        if (seen.insert(p.name).second) names.push_back(p.name);
  const ParameterRanges places_a = ParameterRangesIn(a), places_b = ParameterRangesIn(b);
  const auto find = [](const ParameterRanges& places, const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? nullptr : &found->second;
  };
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(TableDifference d, CompareParameter(a, b, name, find(places_a, name), find(places_b, name)));
    all.push_back(std::move(d));
  }
  if (ma.dense && mb.dense && ma.dense->updates != mb.dense->updates) {
    TableDifference d;
    d.name = "dense updates";
    d.schema = absl::StrCat(ma.dense->updates, " against ", mb.dense->updates);
    all.push_back(std::move(d));
  }
  return all;
}

}  // namespace regatta::checkpoint
