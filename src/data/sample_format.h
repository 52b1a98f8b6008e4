// Writes true samples as lines of an input format.
// Thread-safety: constant after construction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/ground_truth.h"

namespace regatta::data {

class SampleFormat {
 public:
  // `format` is a name of parser/format.h's table.
  static absl::StatusOr<SampleFormat> Make(std::string_view format, const GroundTruth& truth,
                                           const TruthOptions& options);

  void Append(const TrueSample& sample, std::string* text) const { (this->*append_)(sample, text); }

 private:
  using AppendFn = void (SampleFormat::*)(const TrueSample&, std::string*) const;

  void AppendSlotText(const TrueSample& sample, std::string* text) const;
  void AppendCriteoTsv(const TrueSample& sample, std::string* text) const;
  void AppendSlotReader(const TrueSample& sample, std::string* text) const;
  void AppendMultiSlot(const TrueSample& sample, std::string* text) const;
  const std::string& DenseText(size_t feature, uint16_t quantile) const { return dense_text_[feature][quantile]; }

  AppendFn append_ = nullptr;
  size_t slots_ = 0, ids_per_slot_ = 0, dense_ = 0;
  std::vector<std::vector<std::string>> dense_text_;  // normalised, or raw for Criteo's own format
  std::vector<std::string> slot_names_;
};

}  // namespace regatta::data
