#include "base/tensor_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace regatta::base {

const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
    case DType::kBool:
      return "bool";
  }
  return "unknown";
}

TensorView TensorView::Contiguous(const void* data, DType dtype, std::span<const int64_t> extents) {
  TensorView view;
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.dims = static_cast<int>(extents.size());
  int64_t stride = 1;
  for (int d = view.dims - 1; d >= 0; --d) {
    view.shape[static_cast<size_t>(d)] = extents[static_cast<size_t>(d)];
    view.strides[static_cast<size_t>(d)] = stride;
    stride *= extents[static_cast<size_t>(d)];
  }
  return view;
}

bool TensorView::contiguous() const {
  if (count() == 0) return true;
  int64_t stride = 1;
  for (int d = dims - 1; d >= 0; --d) {
    const int64_t extent = shape[static_cast<size_t>(d)];
    if (extent != 1 && strides[static_cast<size_t>(d)] != stride) return false;
    stride *= extent;
  }
  return true;
}

std::string TensorView::ShapeText() const { return absl::StrCat("[", absl::StrJoin(sizes(), ", "), "]"); }

}  // namespace regatta::base
