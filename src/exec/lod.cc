#include "exec/lod.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace regatta::exec {

Lod::Lod(std::vector<Offsets> levels) {
  if (!levels.empty()) levels_ = std::make_shared<const std::vector<Offsets>>(std::move(levels));
}

absl::StatusOr<Lod> Lod::Make(std::vector<Offsets> levels, int64_t rows) {
  Lod lod(std::move(levels));
  RETURN_IF_ERROR(lod.Check(rows));
  return lod;
}

absl::Status Lod::Check(int64_t rows) const {
  for (size_t i = 0; i < size(); ++i) {
    const Offsets& offsets = level(i);
    const std::string where = absl::StrCat("level ", i, " of the LoD ");
    if (offsets.size() < 2 || offsets.front() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "must begin with 0 and have an end for each sequence, as [0, 2, 3] does"));
    }
    if (const auto fall = std::ranges::adjacent_find(offsets, std::greater<>()); fall != offsets.end())
      return absl::InvalidArgumentError(
          absl::StrCat(where, "goes from ", *fall, " back to ", fall[1], "; offsets must not decrease"));
    const bool last = i + 1 == size();
    const int64_t end = last ? rows : static_cast<int64_t>(level(i + 1).size()) - 1;
    if (offsets.back() != end) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, "ends at ", offsets.back(), "; it must end at ", end,
                       last ? ", the number of rows" : ", the sequences of the next level"));
    }
  }
  return absl::OkStatus();
}

Lod Lod::First(size_t count) const {
  if (count >= size()) return *this;
  return Lod(std::vector<Offsets>(levels_->begin(), levels_->begin() + static_cast<std::ptrdiff_t>(count)));
}

std::string Lod::Text() const {
  std::vector<std::string> levels;
  for (size_t i = 0; i < size(); ++i) levels.push_back(absl::StrCat("[", absl::StrJoin(level(i), ", "), "]"));
  return absl::StrCat("[", absl::StrJoin(levels, ", "), "]");
}

bool operator==(const Lod& a, const Lod& b) {
  if (a.levels_ == b.levels_) return true;
  return a.size() == b.size() && (a.empty() || *a.levels_ == *b.levels_);
}

}  // namespace regatta::exec
