#include "model/zoo.h"

#include "model/names.h"

namespace regatta::model {
namespace {

struct ModelEntry {
  std::string_view name;
  std::unique_ptr<Model> (*make)(base::Params&);
};
constexpr ModelEntry kModels[] = {
    {"lr", &MakeLr},   {"logistic_regression", &MakeLr}, {"fm", &MakeFm},
    {"dnn", &MakeDnn}, {"wide_deep", &MakeWideDeep},     {"deepfm", &MakeDeepFm},
    {"dcn", &MakeDcn},
};
static_assert(std::equal(std::begin(kModels), std::end(kModels), std::begin(kModelNames), std::end(kModelNames),
                         [](const ModelEntry& entry, std::string_view name) { return entry.name == name; }),
              "the models here and the names in model/names.h differ");

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(std::string_view name, base::Params& params) {
  for (const ModelEntry& entry : kModels) {
    if (entry.name != name) continue;
    auto model = entry.make(params);
    RETURN_IF_ERROR(params.status());
    return model;
  }
  return CheckModelName(name);  // no model of ours
}

}  // namespace regatta::model
