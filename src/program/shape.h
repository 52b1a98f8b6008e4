// The extents of a tensor as a program knows them. An extent of -1 is known only when the program runs; a shape without
// extents is not known yet (Fluid has no tensor of rank 0: a scalar is [1]).
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace regatta::program {

using Shape = std::vector<int64_t>;

inline constexpr int64_t kUnknownExtent = -1;
// Larger extents are refused.
inline constexpr int64_t kMostExtent = int64_t{1} << 48;

// "[-1, 13]"
std::string ShapeText(const Shape& shape);

// a · b and a + b, or the largest or smallest int64 if they do not fit.
int64_t Times(int64_t a, int64_t b);
int64_t Plus(int64_t a, int64_t b);

// The product of extents [begin, end) of the shape; -1 if one of them is unknown, 1 if there are none, and the largest
// int64 if it does not fit.
int64_t CountBetween(const Shape& shape, size_t begin, size_t end);
inline int64_t ElementCount(const Shape& shape) { return CountBetween(shape, 0, shape.size()); }

// False only if the two extents are known and differ.
inline bool MayEqual(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

// The shape of Fluid's elementwise operators. If both have one rank, extents are equal or one of them is 1. Otherwise
// the shorter one lies along `axis` of the longer one (-1: at its end); ones at its end are left out first.
//   [2, 3, 4, 5] and [3, 4] with axis 1 → [2, 3, 4, 5]
// `y_name` and `x_name` stand in messages.
absl::StatusOr<Shape> BroadcastShapes(const Shape& x, const Shape& y, int64_t axis);

// A tensor read as a matrix: extents before `columns_from` make the rows, those from there on the columns.
//   [4, 5, 6] from 1 → {4, 30}
std::pair<int64_t, int64_t> AsMatrix(const Shape& shape, size_t columns_from);

}  // namespace regatta::program
