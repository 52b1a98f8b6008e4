#include "checkpoint/json_tree.h"

namespace regatta::checkpoint {
namespace {

absl::Status CheckShape(std::string_view text, const JsonLimits& limits) {
  int depth = 0;
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' || c == '[' || c == '{') ++values;  // at least as many as there are
    if (depth > limits.depth)
      return absl::DataLossError(
          absl::StrCat("nested too deeply at byte ", i, ": more than ", limits.depth, " levels"));
    if (values > limits.values) return absl::DataLossError(absl::StrCat("too many values: more than ", limits.values));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonTree> ParseJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return absl::DataLossError(absl::StrCat("too large: ", text.size(), " bytes of JSON; the limit is ", limits.bytes));
  RETURN_IF_ERROR(CheckShape(text, limits));  // before the parser makes anything of it
  JsonTree tree = JsonTree::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) return absl::DataLossError("not JSON");
  return tree;
}

}  // namespace regatta::checkpoint
