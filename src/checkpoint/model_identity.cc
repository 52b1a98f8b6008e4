#include "checkpoint/model_identity.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace regatta::checkpoint {
namespace {

constexpr char kOptimizer[] = "optimizer.";

class Differences {
 public:
  void Compare(const std::string& field, const std::string& saved, const std::string& wanted) {
    if (saved == wanted) return;
    const auto shown = [](const std::string& text) { return text.empty() ? "nothing" : base::Printable(text); };
    out.push_back(absl::StrCat(base::Printable(field), ": saved ", shown(saved), ", wanted ", shown(wanted)));
  }
  std::vector<std::string> out;
};

std::string Of(const ModelIdentity& model) {
  return absl::StrCat("the model '", base::Printable(model.name), "' (", base::Printable(model.front_end), ")");
}

std::string ValueOf(const ModelIdentity& model, const std::string& key) {
  const auto found = model.hyper_parameters.find(key);
  return found == model.hyper_parameters.end() ? "" : found->second;
}

}  // namespace

std::vector<std::string> IdentityDifferences(const ModelIdentity& saved, const ModelIdentity& wanted) {
  Differences differences;
  differences.Compare("front end", saved.front_end, wanted.front_end);
  differences.Compare("model", saved.name, wanted.name);
  std::map<std::string, std::string> keys = saved.hyper_parameters;
  keys.insert(wanted.hyper_parameters.begin(), wanted.hyper_parameters.end());
  for (const auto& [key, value] : keys)
    if (!absl::StartsWith(key, kOptimizer))
      differences.Compare("hyper_parameters." + key, ValueOf(saved, key), ValueOf(wanted, key));
  differences.Compare("label", absl::StrJoin(saved.schema.labels, " "), absl::StrJoin(wanted.schema.labels, " "));
  differences.Compare("sparse slots", absl::StrJoin(saved.schema.sparse_slots, " "),
                      absl::StrJoin(wanted.schema.sparse_slots, " "));
  differences.Compare("dense slot", saved.schema.dense_slot, wanted.schema.dense_slot);
  differences.Compare("dense features", absl::StrCat(saved.schema.dense_dim), absl::StrCat(wanted.schema.dense_dim));
  differences.Compare("value slot", saved.schema.value_slot, wanted.schema.value_slot);
  return differences.out;
}

absl::Status CheckSameModel(const ModelIdentity& saved, const ModelIdentity& wanted) {
  if (saved.front_end == wanted.front_end && saved.name == wanted.name) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the save holds ", Of(saved), ", and ", Of(wanted), " is wanted"));
}

}  // namespace regatta::checkpoint
