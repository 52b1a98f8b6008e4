// Raw Criteo: label, 13 integers, 26 hex strings, separated by tabs; an empty field is a missing one. Where labels are
// not read a line may lack the label's field, as in Criteo's own test data.
// Dense = (x - min) / diff, 0 where missing; a key is HashBytes(hex string, column); a missing string is an empty bag.
#pragma once

#include <memory>

#include "data/parser/parser.h"

namespace regatta::data {

inline constexpr int kCriteoDense = 13;
inline constexpr int kCriteoSparse = 26;
inline constexpr double kCriteoMin[kCriteoDense] = {0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
inline constexpr double kCriteoDiff[kCriteoDense] = {20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50};

absl::StatusOr<std::unique_ptr<Parser>> MakeCriteoTsvParser(const Schema& schema);

}  // namespace regatta::data
