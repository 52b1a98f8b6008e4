#include "worker/number_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace regatta::worker {

std::string FormatNumbers(std::span<const uint64_t> numbers) {
  return absl::StrJoin(numbers.begin(), numbers.end(), " ");
}

absl::StatusOr<std::vector<uint64_t>> ParseNumbers(std::string_view text, size_t count) {
  std::vector<uint64_t> numbers;
  for (const absl::string_view word : absl::StrSplit(base::View(text), ' ')) {
    numbers.push_back(0);
    if (!absl::SimpleAtoi(word, &numbers.back())) numbers.clear();
  }
  if (numbers.size() != count) return absl::InternalError(absl::StrCat("worker 0 says '", base::View(text), "'"));
  return numbers;
}

}  // namespace regatta::worker
