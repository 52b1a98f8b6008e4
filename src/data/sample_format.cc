#include "data/sample_format.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "data/parser/criteo_tsv.h"
#include "data/parser/format.h"

namespace regatta::data {
namespace {

void AppendNumber(uint64_t number, int radix, std::string* text) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, number, radix);
  text->append(digits, static_cast<size_t>(result.ptr - digits));
}

}  // namespace

absl::StatusOr<SampleFormat> SampleFormat::Make(std::string_view format, const GroundTruth& truth,
                                                const TruthOptions& options) {
  const FormatEntry* const entry = FindFormat(format);
  if (entry == nullptr) {
    std::string names;
    for (const FormatEntry& known : kFormats) absl::StrAppend(&names, " ", base::View(known.name));
    return absl::InvalidArgumentError(absl::StrCat("no format '", base::View(format), "'; there are:", names));
  }
  SampleFormat made;
  const bool raw = entry->name == "criteo_tsv";
  if (raw && (options.slots != kCriteoSparse || options.dense != kCriteoDense || options.ids_per_slot != 1))
    return absl::InvalidArgumentError("criteo_tsv has 26 slots of one id and 13 dense features");
  made.append_ = raw                            ? &SampleFormat::AppendCriteoTsv
                 : entry->name == "slot_text"   ? &SampleFormat::AppendSlotText
                 : entry->name == "slot_reader" ? &SampleFormat::AppendSlotReader
                                                : &SampleFormat::AppendMultiSlot;
  made.slots_ = static_cast<size_t>(options.slots);
  made.ids_per_slot_ = static_cast<size_t>(options.ids_per_slot);
  made.dense_ = static_cast<size_t>(options.dense);
  for (int j = 0; j < options.dense; ++j) {
    std::vector<std::string>& texts = made.dense_text_.emplace_back();
    for (int q = 0; q < GroundTruth::kQuantiles; ++q) {
      const auto quantile = static_cast<uint16_t>(q);
      texts.push_back(raw ? absl::StrCat(truth.Raw(j, quantile))
                          : absl::StrFormat("%.12g", truth.Normalised(j, quantile)));
      if (!raw && texts.back().find_first_of(".e") == std::string::npos) texts.back() += ".0";
    }
  }
  for (int s = 0; s < options.slots; ++s)
    made.slot_names_.push_back(absl::StrCat(entry->name == "slot_reader" ? s + 2 : s + 1));
  return made;
}

void SampleFormat::AppendSlotText(const TrueSample& sample, std::string* text) const {
  text->append(sample.click ? "click:1" : "click:0");
  for (size_t j = 0; j < dense_; ++j) text->append(" dense_feature:").append(DenseText(j, sample.dense[j]));
  for (size_t i = 0; i < sample.ids.size(); ++i) {
    if (sample.ids[i] == TrueSample::kMissing) continue;
    text->append(1, ' ').append(slot_names_[i / ids_per_slot_]).append(1, ':');
    AppendNumber(sample.ids[i], 10, text);
  }
  text->append(1, '\n');
}

void SampleFormat::AppendCriteoTsv(const TrueSample& sample, std::string* text) const {
  text->append(1, sample.click ? '1' : '0');
  for (size_t j = 0; j < dense_; ++j) text->append(1, '\t').append(DenseText(j, sample.dense[j]));
  for (uint64_t id : sample.ids) {
    text->append(1, '\t');
    if (id == TrueSample::kMissing) continue;
    const size_t at = text->size();
    AppendNumber(id, 16, text);
    if (text->size() - at < 8) text->insert(at, 8 - (text->size() - at), '0');
  }
  text->append(1, '\n');
}

void SampleFormat::AppendSlotReader(const TrueSample& sample, std::string* text) const {
  text->append(sample.click ? "1:1" : "0:1");
  for (size_t i = 0; i < sample.ids.size(); ++i) {
    if (sample.ids[i] == TrueSample::kMissing) continue;
    text->append(1, ' ');
    AppendNumber(sample.ids[i], 10, text);
    text->append(1, ':').append(slot_names_[i / ids_per_slot_]);
  }
  for (size_t j = 0; j < dense_; ++j)
    text->append(1, ' ').append(DenseText(j, sample.dense[j])).append(":dense_feature");
  text->append(1, '\n');
}

void SampleFormat::AppendMultiSlot(const TrueSample& sample, std::string* text) const {
  text->append(sample.click ? "1 1" : "1 0");
  for (size_t s = 0; s < slots_; ++s) {
    const uint64_t* const ids = &sample.ids[s * ids_per_slot_];
    const bool missing = ids[0] == TrueSample::kMissing;
    text->append(1, ' ');
    AppendNumber(missing ? 0 : ids_per_slot_, 10, text);
    for (size_t i = 0; i < ids_per_slot_ && !missing; ++i) {
      text->append(1, ' ');
      AppendNumber(ids[i], 10, text);
    }
  }
  if (dense_ > 0) {
    text->append(1, ' ');
    AppendNumber(dense_, 10, text);
    for (size_t j = 0; j < dense_; ++j) text->append(1, ' ').append(DenseText(j, sample.dense[j]));
  }
  text->append(1, '\n');
}

}  // namespace regatta::data
