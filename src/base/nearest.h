// The known name that a misspelt one most likely meant.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace regatta::base {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b; letters are compared without case.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate closest to `name`, or "" where none is close enough to be worth naming. Dotted names are also compared
// by their last part, so that a right name in the wrong section finds its section.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

}  // namespace regatta::base
