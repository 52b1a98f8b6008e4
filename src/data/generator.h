// Writes Criteo-shaped files with a known truth: <out>/train/part-00000 …, <out>/test/part-00000 … and
// <out>/ceiling.json, the AUC and log loss of the true probabilities: no model does better on these very samples.
// Thread-safety: Generate uses threads of its own, a file each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/ground_truth.h"
#include "data/source/byte_source.h"

namespace regatta::data {

struct GeneratorOptions {
  std::string out;
  uint64_t samples = 100'000;
  uint64_t test_samples = 0;
  int files = 1;
  int test_files = 1;
  std::string format = "slot_text";
  Compression compression = Compression::kNone;
  int threads = 1;
  TruthOptions truth;
};

struct Ceiling {
  uint64_t samples = 0;
  uint64_t clicks = 0;
  double auc = 0;  // NaN where the samples are all of one class
  double logloss = 0;
};

struct GeneratorResult {
  Ceiling train;
  Ceiling test;
  uint64_t bytes = 0;  // of text
};

// `progress` gets the samples written so far, now and then, from one thread at a time.
absl::StatusOr<GeneratorResult> Generate(const GeneratorOptions& options,
                                         const std::function<void(uint64_t done, uint64_t total)>& progress);

// The share of (click, no click) pairs that the probabilities order right, ties counting half. Sorts both vectors'
// pairs: exact.
double ExactAuc(const std::vector<float>& probabilities, const std::vector<uint8_t>& clicks);

}  // namespace regatta::data
