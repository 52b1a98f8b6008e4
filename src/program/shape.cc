#include "program/shape.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"

namespace regatta::program {

std::string ShapeText(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

int64_t CountBetween(const Shape& shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) {
    if (shape[i] < 0) return kUnknownExtent;
    count = Times(count, shape[i]);
  }
  return count;
}

namespace {

absl::Status CannotBroadcast(const Shape& x, const Shape& y, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("X is ", ShapeText(x), " and Y is ", ShapeText(y), ": ", why));
}

}  // namespace

absl::StatusOr<Shape> BroadcastShapes(const Shape& x, const Shape& y, int64_t axis) {
  const bool swapped = x.size() < y.size();
  const Shape& longer = swapped ? y : x;
  Shape shorter = swapped ? x : y;
  const auto gap = static_cast<int64_t>(longer.size() - shorter.size());
  if (axis < 0 || gap == 0) {
    axis = gap;
  } else if (gap > 0) {  // Fluid's scripts write [n, 1] where axis says that only n counts
    while (axis + shorter.size() > longer.size() && shorter.size() > 1 && shorter.back() == 1) shorter.pop_back();
  }
  if (axis + shorter.size() > longer.size()) {
    return CannotBroadcast(x, y,
                           absl::StrCat("with axis ", axis,
                                        " the shorter one does not fit; leave axis out, or make it ", gap, " at most"));
  }
  Shape result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    const int64_t a = longer[axis + i], b = shorter[i];
    if (!MayEqual(a, b) && a != 1 && b != 1) {
      return CannotBroadcast(x, y,
                             absl::StrCat(a, " and ", b, " differ at axis ", axis + i,
                                          "; an extent must be equal or 1 (layers.reshape changes a shape)"));
    }
    if (a == 1) result[axis + i] = b;
    if (a < 0 && b > 1) result[axis + i] = b;
  }
  return result;
}

std::pair<int64_t, int64_t> AsMatrix(const Shape& shape, size_t columns_from) {
  const size_t split = std::min(columns_from, shape.size());
  return {CountBetween(shape, 0, split), CountBetween(shape, split, shape.size())};
}

}  // namespace regatta::program
