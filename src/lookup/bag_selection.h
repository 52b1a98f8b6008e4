// The bags of some of a batch's slots, as a batch of their own.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "lookup/key_plan.h"

namespace regatta::lookup {

class BagSelection {
 public:
  // `all` has the bags of `slots` slots a sample; chosen are places among them, ascending. The result lives until the
  // next call, or is `all` itself if every slot is chosen.
  Bags Select(const Bags& all, int slots, std::span<const int> chosen);

 private:
  std::vector<base::Key> keys_;
  std::vector<uint32_t> offsets_;
  std::vector<float> values_;
};

}  // namespace regatta::lookup
