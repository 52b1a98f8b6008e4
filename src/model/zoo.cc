#include "model/zoo.h"

#include "absl/strings/str_join.h"

namespace regatta::model {
namespace {

struct ModelEntry {
  std::string_view name;
  std::unique_ptr<Model> (*make)(base::Params&);
};
// A new model is a file in zoo/ and a row here.
constexpr ModelEntry kModels[] = {
    {"lr", &MakeLr},   {"logistic_regression", &MakeLr}, {"fm", &MakeFm},
    {"dnn", &MakeDnn}, {"wide_deep", &MakeWideDeep},     {"deepfm", &MakeDeepFm},
    {"dcn", &MakeDcn},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(std::string_view name, base::Params& params) {
  for (const ModelEntry& entry : kModels) {
    if (entry.name != name) continue;
    auto model = entry.make(params);
    RETURN_IF_ERROR(params.status());
    return model;
  }
  std::vector<std::string> names;
  for (const ModelEntry& entry : kModels) names.emplace_back(entry.name);
  return absl::NotFoundError(absl::StrCat("there is no model '", base::View(name), "'; the models are ",
                                          absl::StrJoin(names, ", "),
                                          ". Set `model:` at the top of the YAML, or put it in the model's folder"));
}

}  // namespace regatta::model
