#include "data/slot_use.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace regatta::data {
namespace {

// Names for a message: the first ones, and how many there are.
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 30;
  const size_t shown = std::min(names.size(), kShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ");
  if (shown < names.size()) absl::StrAppend(&text, ", … (", names.size(), " slots)");
  return base::Printable(text);
}

bool Holds(const SampleBlock& block, uint32_t slot) {
  for (int sample = 0; sample < block.size; ++sample) {
    const size_t bag = static_cast<size_t>(sample) * static_cast<size_t>(block.slots) + slot;
    if (block.BagBegin(bag) != block.ends[bag]) return true;
  }
  return false;
}

}  // namespace

SlotUse::SlotUse(const DatasetOptions& options, const FormatEntry& format)
    : files_(options.files), names_(format.names_in_lines(options.schema)), unused_(names_.size()) {
  std::iota(unused_.begin(), unused_.end(), 0u);
}

absl::Status SlotUse::Count(const SampleBlock& block) {
  samples_ += static_cast<uint64_t>(block.size);
  if (unused_.empty() || block.size == 0) return absl::OkStatus();
  std::erase_if(unused_, [&](uint32_t slot) { return Holds(block, slot); });
  if (unused_.size() < names_.size() || block.other_slots.empty()) return absl::OkStatus();
  return NoneOccurs(absl::StrCat("lines ", block.first_line, " to ", block.first_line + block.lines - 1, " of ",
                                 files_[static_cast<size_t>(block.file)]),
                    absl::StrCat("the lines have the slots ", Listed(block.other_slots)));
}

absl::Status SlotUse::Finish() const {
  if (unused_.empty() || samples_ == 0) return absl::OkStatus();
  const std::string where = files_.size() == 1 ? files_[0] : absl::StrCat(files_.size(), " files, ", files_[0], " …");
  if (unused_.size() == names_.size()) return NoneOccurs(where, "the lines have no ids");
  std::vector<std::string> unused;
  for (const uint32_t slot : unused_) unused.push_back(names_[slot]);
  LOG(WARNING) << unused_.size() << " of " << names_.size() << " sparse slots hold no id in the " << samples_
               << " samples of " << where << ": " << Listed(unused) << ". Check their names";
  return absl::OkStatus();
}

absl::Status SlotUse::NoneOccurs(const std::string& where, const std::string& found) const {
  return absl::InvalidArgumentError(
      absl::StrCat("no declared sparse slot occurs in ", where, ": declared are ", Listed(names_), "; ", found,
                   ". Rename the slots of the data or of the model (regatta data check: --sparse)"));
}

}  // namespace regatta::data
