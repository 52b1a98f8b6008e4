// A view of a tensor: memory, element type, device, shape and strides. What crosses from the torch-free half to a net
// is a TensorView.
// Thread-safety: a plain value. It owns nothing; who hands out a view says how long its memory lives.
// Invariant: extents and strides at and behind `dims` are 0.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/device.h"

namespace regatta::base {

enum class DType : uint8_t { kFloat32, kFloat64, kFloat16, kBFloat16, kInt8, kInt16, kInt32, kInt64, kUInt8, kBool };

// "float32", "int64" …
const char* Name(DType dtype);

struct TensorView {
  static constexpr int kMaxDims = 8;

  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Device device = Device::kCpu;
  int dims = 0;
  std::array<int64_t, kMaxDims> shape{};
  std::array<int64_t, kMaxDims> strides{};  // in elements

  // Contiguous memory on the CPU. Takes at most kMaxDims extents. Values that a reader may not change are given all
  // the same: the holder of the view says what may be written.
  static TensorView Of(const float* data, std::span<const int64_t> extents) {
    return Contiguous(data, DType::kFloat32, extents);
  }
  static TensorView Of(const int64_t* data, std::span<const int64_t> extents) {
    return Contiguous(data, DType::kInt64, extents);
  }
  static TensorView Vector(const float* data, int64_t n) { return Of(data, std::array{n}); }
  static TensorView Matrix(const float* data, int64_t rows, int64_t columns) {
    return Of(data, std::array{rows, columns});
  }

  bool empty() const { return data == nullptr; }
  std::span<const int64_t> sizes() const { return {shape.data(), static_cast<size_t>(dims)}; }
  // Elements.
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t extent : sizes()) n *= extent;
    return n;
  }
  // Whether the elements lie one after another, the last dimension fastest. A dimension of extent 1 may have any
  // stride.
  bool contiguous() const;
  bool SameShape(const TensorView& other) const { return dims == other.dims && shape == other.shape; }
  // "[4, 2]"
  std::string ShapeText() const;

  // The elements of a contiguous view of that type.
  std::span<const float> floats() const { return {static_cast<const float*>(data), static_cast<size_t>(count())}; }
  std::span<const int64_t> integers() const {
    return {static_cast<const int64_t*>(data), static_cast<size_t>(count())};
  }

 private:
  static TensorView Contiguous(const void* data, DType dtype, std::span<const int64_t> extents);
};

}  // namespace regatta::base
