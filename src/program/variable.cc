#include "program/variable.h"

#include "absl/strings/str_cat.h"

namespace regatta::program {

std::string TypeText(const Variable& variable) {
  const char* kind = base::NameIn(kVariableKinds, variable.kind);
  if (variable.kind == VariableKind::kReader || variable.kind == VariableKind::kRaw) return kind;
  const std::string tensor = absl::StrCat(DataTypeName(variable.dtype), " ", ShapeText(variable.shape));
  return variable.kind == VariableKind::kLodTensor ? tensor : absl::StrCat(kind, " ", tensor);
}

}  // namespace regatta::program
