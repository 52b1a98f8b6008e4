#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace regatta::base {
namespace {

// Longer names are typed by machines, not misspelt by people; the bound keeps the quadratic work small.
constexpr size_t kLongest = 128;

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string_view Leaf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

size_t Allowed(std::string_view name) { return name.size() < 3 ? 1 : std::max<size_t>(2, name.size() / 3); }

// The distance, or a large number where the lengths alone rule out `allowed`.
size_t BoundedDistance(std::string_view a, std::string_view b, size_t allowed) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  return difference > allowed ? kLongest * 2 : EditDistance(a, b);
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string NearestName(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > kLongest) return "";
  const std::string_view leaf = Leaf(name);
  std::string best;
  std::pair<size_t, size_t> best_cost = {SIZE_MAX, SIZE_MAX};
  for (const std::string& candidate : candidates) {
    const size_t part = BoundedDistance(leaf, Leaf(candidate), Allowed(leaf));
    if (part > Allowed(leaf)) continue;
    const size_t whole = BoundedDistance(name, candidate, Allowed(name));
    // A wrong section costs as much as one letter of the last part; among equals the whole name decides.
    const std::pair<size_t, size_t> cost = {std::min(whole, part + 1), whole};
    const bool close = whole <= Allowed(name) || part <= Allowed(leaf) / 2;
    if (close && cost < best_cost) {
      best = candidate;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace regatta::base
