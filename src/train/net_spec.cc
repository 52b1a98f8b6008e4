#include "train/net_spec.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/tensor_view.h"

namespace regatta::train {
namespace {

template <typename... Text>
absl::Status Fault(const Text&... text) {
  return absl::InvalidArgumentError(absl::StrCat("it declares ", text...));
}

constexpr char kDenseTable[] = "dense";

absl::Status CheckLookup(const NetSpec& spec, const LookupSpec& lookup) {
  if (lookup.dim < 1)
    return Fault("an embedding in table '", lookup.table, "' of ", lookup.dim, " floats a row; it must be at least 1");
  if (lookup.pooling == base::Pooling::kNone && lookup.dense_columns == DenseColumns::kAppended)
    return Fault("an embedding in table '", lookup.table,
                 "' with dense columns: an embedding without pooling has no place for dense features");
  if (lookup.slots.empty() && spec.schema.sparse_slots.empty())
    return Fault("an embedding in table '", lookup.table, "' of all slots, and schema.sparse_slots has none");
  if (lookup.table == kDenseTable)
    return Fault("an embedding in a table called '", lookup.table,
                 "': saves have the dense parameters under that name");
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

bool IsOutputName(const std::string& name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

absl::Status CheckOutputs(const NetSpec& spec) {
  const std::vector<std::string>& labels = spec.schema.labels;
  std::set<std::string> label_names, names;
  if (labels.empty()) return Fault("no label slot");
  for (const std::string& label : labels)
    if (!label_names.insert(label).second) return Fault("the label '", label, "' twice");
  if (spec.outputs.empty()) return Fault("no output; a net has at least one prediction for a sample");
  for (const OutputSpec& output : spec.outputs) {
    if (!IsOutputName(output.name))
      return Fault("an output with the name '", output.name, "'; a name has 1 to 64 letters, digits, '_', '-' and '.'");
    if (!names.insert(output.name).second) return Fault("two outputs with the name '", output.name, "'");
    if (!output.label.empty() && !label_names.contains(output.label))
      return Fault("the output '", output.name, "' of the label '", output.label, "'; the labels are ",
                   absl::StrJoin(labels, ", "));
  }
  return absl::OkStatus();
}

}  // namespace

int NetSpec::LabelOf(const OutputSpec& output) const {
  const std::vector<std::string>& labels = schema.labels;
  return output.label.empty()
             ? 0
             : static_cast<int>(std::find(labels.begin(), labels.end(), output.label) - labels.begin());
}

data::Schema NetSpec::DataSchema() const {
  data::Schema read = schema;
  const auto is_label = [&](const std::string& label, Metric metric) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const OutputSpec& output) {
      return output.metric == metric && schema.labels[static_cast<size_t>(LabelOf(output))] == label;
    });
  };
  read.real_labels.clear();
  for (const std::string& label : schema.labels)
    if (!is_label(label, Metric::kBinary) && (is_label(label, Metric::kRegression) || schema.IsReal(label)))
      read.real_labels.push_back(label);
  return read;
}

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
  return CheckOutputs(spec);
}

}  // namespace regatta::train
