// What a step of sync changed, as it was before: a worker that comes back may have to compute the step again, from the
// same rows, though this lane has applied it.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/step.h"
#include "wire/ps.pb.h"

namespace regatta::server {

struct StepImage {
  struct Table {
    int table = 0;
    int width = 0;
    std::vector<base::Key> keys;
    std::vector<float> rows;  // width floats a key
  };
  uint64_t step = 0;
  std::vector<Table> tables;
  std::vector<float> dense;  // empty on a sparse lane

  // Where the image has a row of `table`, `out` becomes it.
  void Show(int table, std::span<const base::Key> keys, base::RowsView<float> out) const;
};

void ToWire(const StepImage& image, ps::StepImage& out);
StepImage FromWire(const ps::StepImage& image);

}  // namespace regatta::server
