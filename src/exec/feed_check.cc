#include "exec/feed_check.h"

#include "base/printable.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

bool FitsShape(const program::Shape& declared, at::IntArrayRef fed) {
  if (declared.empty()) return true;
  return std::equal(declared.begin(), declared.end(), fed.begin(), fed.end(), program::MayEqual);
}

absl::Status Refuse(const PreparedVariable& variable, const std::string& why) {
  const std::string read = variable.reader.empty() ? "" : absl::StrCat(", which ", variable.reader, " reads");
  return absl::InvalidArgumentError(
      absl::StrCat("the feed '", base::Printable(variable.declared.name), "'", read, ", ", why));
}

}  // namespace

absl::Status CheckFeed(const PreparedVariable& variable, const Value& value) {
  const program::Variable& declared = variable.declared;
  if (value.empty()) return Refuse(variable, "is empty; feed a tensor");
  const LodTensor* dense = value.dense();
  if (declared.kind != program::VariableKind::kLodTensor) return absl::OkStatus();
  if (dense == nullptr) return Refuse(variable, "is no tensor; feed one");
  if (!dense->tensor.is_cpu() || dense->tensor.layout() != torch::kStrided)
    return Refuse(variable, "is no dense tensor in the memory of the CPU; feed one");
  if (dense->tensor.scalar_type() != ToScalarType(declared.dtype)) {
    return Refuse(variable, absl::StrCat("is ", TensorText(dense->tensor), " and was declared ", TypeText(declared),
                                         "; feed ", program::DataTypeName(declared.dtype), " (array.astype('",
                                         program::DataTypeName(declared.dtype), "')), or declare it otherwise"));
  }
  if (!FitsShape(declared.shape, dense->tensor.sizes())) {
    return Refuse(variable, absl::StrCat("is ", TensorText(dense->tensor), " and was declared ", TypeText(declared),
                                         "; reshape what is fed, or declare it otherwise"));
  }
  if (dense->lod.empty()) return absl::OkStatus();
  const int64_t rows = dense->tensor.dim() > 0 ? dense->tensor.size(0) : 1;
  const absl::Status lod = dense->lod.Check(rows);
  return lod.ok() ? lod : Refuse(variable, std::string(lod.message()));
}

}  // namespace regatta::exec
