#include "train/net_spec.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "base/tensor_view.h"

namespace regatta::train {
namespace {

template <typename... Text>
absl::Status Fault(const Text&... text) {
  return absl::InvalidArgumentError(absl::StrCat("it declares ", text...));
}

absl::Status CheckLookup(const NetSpec& spec, const LookupSpec& lookup) {
  if (lookup.dim < 1)
    return Fault("an embedding in table '", lookup.table, "' of ", lookup.dim, " floats a row; it must be at least 1");
  if (lookup.pooling == base::Pooling::kNone && lookup.dense_columns == DenseColumns::kAppended)
    return Fault("an embedding in table '", lookup.table,
                 "' with dense columns: an embedding without pooling has no place for dense features");
  std::set<std::string> named;
  for (const std::string& slot : lookup.slots) {
    const std::vector<std::string>& all = spec.schema.sparse_slots;
    if (std::find(all.begin(), all.end(), slot) == all.end())
      return Fault("an embedding in table '", lookup.table, "' of slot '", slot, "'; the slots are ",
                   absl::StrJoin(all, ", "));
    if (!named.insert(slot).second)
      return Fault("an embedding in table '", lookup.table, "' that names the slot '", slot, "' twice");
  }
  return absl::OkStatus();
}

// What the lookups of one table must agree on.
absl::Status CheckShared(const LookupSpec& a, const LookupSpec& b) {
  if (a.dim != b.dim)
    return Fault("two embeddings in table '", a.table, "', of ", a.dim, " and ", b.dim, " floats a row");
  if (a.init != b.init) return Fault("two embeddings in table '", a.table, "' with different initial values");
  if (a.l2 != b.l2) return Fault("two embeddings in table '", a.table, "', with l2 ", a.l2, " and ", b.l2);
  return absl::OkStatus();
}

absl::Status CheckParameter(const ParameterSpec& parameter) {
  if (parameter.shape.size() > size_t{base::TensorView::kMaxDims})
    return Fault("the parameter '", parameter.name, "' with ", parameter.shape.size(), " dimensions; there may be ",
                 base::TensorView::kMaxDims);
  for (const int64_t extent : parameter.shape)
    if (extent < 1) return Fault("the parameter '", parameter.name, "' with an extent of ", extent);
  return absl::OkStatus();
}

}  // namespace

std::vector<int> NetSpec::SlotsOf(int lookup) const {
  const std::vector<std::string>& all = schema.sparse_slots;
  const std::vector<std::string>& named = lookups[static_cast<size_t>(lookup)].slots;
  std::vector<int> slots;
  for (const std::string& slot : named.empty() ? all : named)
    slots.push_back(static_cast<int>(std::find(all.begin(), all.end(), slot) - all.begin()));
  return slots;
}

int64_t NetSpec::width(int lookup) const {
  const LookupSpec& l = lookups[static_cast<size_t>(lookup)];
  if (l.pooling == base::Pooling::kNone) return l.dim;
  const size_t read = l.slots.empty() ? schema.sparse_slots.size() : l.slots.size();
  return static_cast<int64_t>(read) * l.dim + (l.dense_columns == DenseColumns::kAppended ? schema.dense_dim : 0);
}

absl::Status CheckNetSpec(const NetSpec& spec) {
  for (size_t i = 0; i < spec.lookups.size(); ++i) {
    RETURN_IF_ERROR(CheckLookup(spec, spec.lookups[i]));
    for (size_t j = 0; j < i; ++j)
      if (spec.lookups[j].table == spec.lookups[i].table)
        RETURN_IF_ERROR(CheckShared(spec.lookups[j], spec.lookups[i]));
  }
  for (const ParameterSpec& parameter : spec.dense) RETURN_IF_ERROR(CheckParameter(parameter));
  return absl::OkStatus();
}

}  // namespace regatta::train
