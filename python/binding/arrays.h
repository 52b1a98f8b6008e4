// Arrays of NumPy and PyTorch as C++ reads them: contiguous, on the CPU, of one type. regattarec makes them so before
// it calls; what is not is a TypeError that names the argument's type. Thread-safety: with the interpreter's lock held.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>

#include "base/key.h"

namespace regatta::binding {

template <typename T>
using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <typename T>
using Matrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

template <typename Array>
auto SpanOf(const Array& array) {
  return std::span(array.data(), array.size());
}

// A negative id's bit pattern is its key.
inline std::span<const base::Key> KeysOf(const Vector<const int64_t>& ids) {
  return {reinterpret_cast<const base::Key*>(ids.data()), ids.size()};
}

}  // namespace regatta::binding
