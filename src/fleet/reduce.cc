#include "fleet/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace regatta::fleet {
namespace {

template <typename Number>
constexpr char kTag = 'd';
template <>
constexpr char kTag<int64_t> = 'i';

const char* TypeName(char tag) { return tag == 'd' ? "floating-point numbers" : "integers"; }

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

template <typename Number>
absl::StatusOr<std::vector<Number>> Decode(const std::string& payload, size_t count) {
  const char tag = payload.empty() ? kTag<Number> : payload.front();
  const size_t found = payload.empty() ? 0 : (payload.size() - 1) / sizeof(Number);
  if (tag != kTag<Number> || found != count)
    return absl::InvalidArgumentError(
        absl::StrCat("it brings ", found, " ", TypeName(tag), ", this worker ", count, " ", TypeName(kTag<Number>)));
  std::vector<Number> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), payload.data() + 1, count * sizeof(Number));
  return numbers;
}

}  // namespace

template <typename Number>
std::string EncodeNumbers(std::span<const Number> numbers) {
  std::string bytes(1, kTag<Number>);
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
  return bytes;
}

template <typename Number>
absl::Status ReduceNumbers(const std::map<int, std::string>& payloads, Reduce how, std::span<Number> numbers) {
  std::vector<Number> result;
  for (const auto& [rank, payload] : payloads) {
    auto theirs = Decode<Number>(payload, numbers.size());
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

template std::string EncodeNumbers(std::span<const double>);
template std::string EncodeNumbers(std::span<const int64_t>);
template absl::Status ReduceNumbers(const std::map<int, std::string>&, Reduce, std::span<double>);
template absl::Status ReduceNumbers(const std::map<int, std::string>&, Reduce, std::span<int64_t>);

}  // namespace regatta::fleet
