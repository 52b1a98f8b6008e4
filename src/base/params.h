// A section of the configuration as a model reads it: plain typed reads, the first error kept for one check at the end.
//   params.Int("sparse_feature_dim", {.min = 1, .max = 4096}, 9)
// Thread-safety: belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/status.h"

namespace regatta::base {

class Params {
 public:
  // Names are looked up below `section`; `config` must outlive this.
  Params(Config& config, std::string section) : config_(config), section_(std::move(section)) {}

  // Each gives the value, or `fallback` where the key is absent or does not fit; status() then holds the error.
  int64_t Int(std::string_view name, IntRange range, int64_t fallback);
  double Double(std::string_view name, DoubleRange range, double fallback);
  bool Bool(std::string_view name, bool fallback);
  std::string String(std::string_view name, std::string_view fallback);
  std::vector<int64_t> IntList(std::string_view name, IntRange range, const std::vector<int64_t>& fallback);
  std::vector<double> DoubleList(std::string_view name, DoubleRange range, const std::vector<double>& fallback);
  std::vector<std::string> StringList(std::string_view name, const std::vector<std::string>& fallback);

  bool Has(std::string_view name) const { return config_.Has(Path(name)); }
  // Reports that the value of `name` cannot be, for rules between keys: Fail("fc_sizes", "want at least one layer").
  void Fail(std::string_view name, std::string_view what) { Keep(config_.ErrorAt(Path(name), what)); }
  // The first error, or OK.
  const absl::Status& status() const { return status_; }

 private:
  std::string Path(std::string_view name) const { return absl::StrCat(section_, ".", View(name)); }
  void Keep(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  template <typename T>
  T Take(absl::StatusOr<T> value, T fallback) {
    if (value.ok()) return *std::move(value);
    Keep(value.status());
    return fallback;
  }

  Config& config_;
  const std::string section_;
  absl::Status status_;
};

}  // namespace regatta::base
