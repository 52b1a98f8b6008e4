// AUC within each user. Keeps every sample (16 bytes), because users are too many for a histogram each.
// Thread-safety: belongs to one thread; Merge reads the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/byte_codec.h"

namespace regatta::metrics {

class UserAuc {
 public:
  struct Value {
    double wuauc = 0;  // also called gauc: the users' AUCs weighted by their samples' weight
    double uauc = 0;   // their plain mean
    uint64_t users = 0;
  };

  enum class Class : uint8_t { kNegative, kPositive };

  // Samples of weight 0 are left out.
  void Add(uint64_t user, float prediction, Class which, float weight) {
    if (weight > 0) samples_.push_back({user, prediction, which == Class::kPositive ? weight : -weight});
  }
  void Merge(const UserAuc& other) { samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end()); }
  void Clear() { samples_.clear(); }

  // Over users that have both classes; nothing where there is none.
  std::optional<Value> Compute() const;

  void AppendTo(std::string& out) const;
  absl::Status ReadFrom(ByteReader& in);

 private:
  struct Sample {
    uint64_t user;
    float prediction;
    float signed_weight;  // positive for a positive sample, negative for a negative one
  };
  std::vector<Sample> samples_;
};

}  // namespace regatta::metrics
