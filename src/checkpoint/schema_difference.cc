#include "checkpoint/schema_difference.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta::checkpoint {
namespace {

class Differences {
 public:
  explicit Differences(std::vector<std::string>& out) : out_(out) {}
  template <typename T>
  void Compare(const std::string& table, const char* field, const T& saved, const T& wanted) {
    if (saved != wanted) out_.push_back(absl::StrCat(table, ": ", field, ": saved ", saved, ", wanted ", wanted));
  }

 private:
  std::vector<std::string>& out_;
};

std::string ShapeText(const table::DenseParameterConfig& p) {
  return absl::StrCat(p.name, " [", absl::StrJoin(p.shape, ","), "]");
}

void CompareSparse(const SavedSparse& saved, const table::SparseTable& wanted, LoadKind kind,
                   std::vector<std::string>& out) {
  const table::SparseTableConfig& config = wanted.config();
  const std::string table = "table " + config.name;
  Differences differences(out);
  differences.Compare(table, "dim", saved.config.dim, config.dim);
  differences.Compare(table, "id_space (runner.id_space)", std::string(base::Name(saved.config.id_space)),
                      std::string(base::Name(config.id_space)));
  differences.Compare(table, "accessor", saved.config.accessor, config.accessor);
  differences.Compare(table, "floats a pull gives", saved.pull_width, wanted.pull_width());
  // Only rows of the plain accessor open with what a pull gives; of others a part alone means nothing.
  if (kind == LoadKind::kInference && config.accessor == "plain") return;
  differences.Compare(table, "rule", saved.config.rule.name, config.rule.name);
  differences.Compare(table, "floats a row", saved.row_width, wanted.row_width());
}

void CompareDense(const SavedDense& saved, const table::DenseTable& wanted, LoadKind kind,
                  std::vector<std::string>& out) {
  const table::DenseTableConfig& config = wanted.config();
  const auto& a = saved.config.parameters;
  const auto& b = config.parameters;
  Differences differences(out);
  if (kind == LoadKind::kTraining) {
    differences.Compare("dense", "rule", saved.config.rule.name, config.rule.name);
    differences.Compare("dense", "states", static_cast<int>(saved.state_count), wanted.state_count());
  }
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    differences.Compare("dense", absl::StrCat("parameter ", i).c_str(), i < a.size() ? ShapeText(a[i]) : "none",
                        i < b.size() ? ShapeText(b[i]) : "none");
}

}  // namespace

std::vector<std::string> SchemaDifferences(const Manifest& saved, const ModelTables& wanted, LoadKind kind) {
  std::vector<std::string> out;
  std::set<std::string> names;
  for (const table::SparseTable* table : wanted.sparse) {
    names.insert(table->config().name);
    const SavedSparse* match = saved.FindSparse(table->config().name);
    if (!match) {
      out.push_back(absl::StrCat("table ", table->config().name, ": wanted, but not in the save"));
    } else {
      CompareSparse(*match, *table, kind, out);
    }
  }
  for (const SavedSparse& table : saved.sparse)
    if (kind == LoadKind::kTraining && !names.contains(table.config.name))
      out.push_back(absl::StrCat("table ", table.config.name, ": saved, but not wanted"));
  if (wanted.dense && !saved.dense) out.push_back("dense: wanted, but not in the save");
  if (!wanted.dense && saved.dense && kind == LoadKind::kTraining) out.push_back("dense: saved, but not wanted");
  if (wanted.dense && saved.dense) CompareDense(*saved.dense, *wanted.dense, kind, out);
  return out;
}

}  // namespace regatta::checkpoint
