#include "fleet/reduce.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace regatta::fleet {
namespace {

absl::Status Combine(double& into, double value, Reduce how) {
  if (how == Reduce::kSum || std::isnan(into) || std::isnan(value)) {
    into += value;
  } else {
    into = how == Reduce::kMin ? std::min(into, value) : std::max(into, value);
  }
  return absl::OkStatus();
}

absl::Status Combine(int64_t& into, int64_t value, Reduce how) {
  if (how != Reduce::kSum) {
    into = how == Reduce::kMin ? std::min(into, value) : std::max(into, value);
    return absl::OkStatus();
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(into, value, &sum))
    return absl::OutOfRangeError(absl::StrCat("the sum of ", into, " and ", value, " does not fit in 64 bits"));
  into = sum;
  return absl::OkStatus();
}

const char* TypeName(double) { return "floating-point numbers"; }
const char* TypeName(int64_t) { return "integers"; }

const auto& Of(const run::Numbers& message, double) { return message.doubles(); }
const auto& Of(const run::Numbers& message, int64_t) { return message.integers(); }

// Numbers of the other type than this worker's are its count where there are any.
template <typename Number, typename Other>
absl::StatusOr<std::vector<Number>> Take(const run::Numbers& message, size_t count) {
  const auto& numbers = Of(message, Number());
  const int others = Of(message, Other()).size();
  if (others == 0 && static_cast<size_t>(numbers.size()) == count)
    return std::vector<Number>(numbers.begin(), numbers.end());
  return absl::InvalidArgumentError(absl::StrCat("it brings ", others > 0 ? others : numbers.size(), " ",
                                                 others > 0 ? TypeName(Other()) : TypeName(Number()), ", this worker ",
                                                 count, " ", TypeName(Number())));
}

}  // namespace

run::Numbers NumbersOf(std::span<const double> numbers) {
  run::Numbers message;
  message.mutable_doubles()->Add(numbers.begin(), numbers.end());
  return message;
}

run::Numbers NumbersOf(std::span<const int64_t> numbers) {
  run::Numbers message;
  message.mutable_integers()->Add(numbers.begin(), numbers.end());
  return message;
}

template <typename Number>
absl::Status ReduceNumbers(const std::map<int, run::Numbers>& messages, Reduce how, std::span<Number> numbers) {
  using Other = std::conditional_t<std::is_same_v<Number, double>, int64_t, double>;
  std::vector<Number> result;
  for (const auto& [rank, message] : messages) {
    auto theirs = Take<Number, Other>(message, numbers.size());
    if (!theirs.ok()) return base::Annotate(theirs.status(), absl::StrCat("worker ", rank));
    if (result.empty()) {
      result = *std::move(theirs);
      continue;
    }
    for (size_t i = 0; i < result.size(); ++i) RETURN_IF_ERROR(Combine(result[i], (*theirs)[i], how));
  }
  std::copy(result.begin(), result.end(), numbers.begin());
  return absl::OkStatus();
}

template absl::Status ReduceNumbers(const std::map<int, run::Numbers>&, Reduce, std::span<double>);
template absl::Status ReduceNumbers(const std::map<int, run::Numbers>&, Reduce, std::span<int64_t>);

}  // namespace regatta::fleet
