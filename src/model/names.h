// The names of the built-in models: what is known of them without libtorch, by servers and before it is loaded.
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/strings/str_join.h"
#include "base/status.h"

namespace regatta::model {

// A new model is a file in zoo/, a name here and a row in zoo.cc, in the same order.
inline constexpr std::string_view kModelNames[] = {"lr", "logistic_regression", "fm", "dnn", "wide_deep", "deepfm",
                                                   "dcn"};

// NOT_FOUND names all there are.
inline absl::Status CheckModelName(std::string_view name) {
  if (std::find(std::begin(kModelNames), std::end(kModelNames), name) != std::end(kModelNames)) return absl::OkStatus();
  const auto add = [](std::string* out, std::string_view known) { absl::StrAppend(out, base::View(known)); };
  return absl::NotFoundError(absl::StrCat("there is no model '", base::View(name), "'; the models are ",
                                          absl::StrJoin(kModelNames, ", ", add),
                                          ". Set `model:` at the top of the YAML, or put it in the model's folder"));
}

}  // namespace regatta::model
