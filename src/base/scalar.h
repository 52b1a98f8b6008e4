// Numbers, booleans and sizes as people write them in YAML and on the command line.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regatta::base {

// Decimal or 0x…, a sign, underscores between digits; also a float that is whole (1e6). Nothing where it does not fit.
std::optional<int64_t> ParseInt(std::string_view text);
// Finite numbers only.
std::optional<double> ParseDouble(std::string_view text);
// true/false, yes/no, on/off, 1/0, in any case.
std::optional<bool> ParseBool(std::string_view text);
// An integer with an optional K, M, G or T (also KB, KiB, …): powers of 1024.
std::optional<int64_t> ParseBytes(std::string_view text);

// Shortest text that reads back as the same number.
std::string NumberText(double value);

}  // namespace regatta::base
