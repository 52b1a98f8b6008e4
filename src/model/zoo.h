// The built-in models by name.
#pragma once

#include <memory>
#include <string_view>

#include "base/params.h"
#include "base/status.h"
#include "model/model.h"

namespace regatta::model {

// NOT_FOUND names all the models there are; INVALID_ARGUMENT the hyper_parameters key that does not fit.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(std::string_view name, base::Params& params);

// Each is defined in zoo/<name>.cc.
std::unique_ptr<Model> MakeLr(base::Params& params);
std::unique_ptr<Model> MakeFm(base::Params& params);
std::unique_ptr<Model> MakeDnn(base::Params& params);
std::unique_ptr<Model> MakeWideDeep(base::Params& params);
std::unique_ptr<Model> MakeDeepFm(base::Params& params);
std::unique_ptr<Model> MakeDcn(base::Params& params);

}  // namespace regatta::model
