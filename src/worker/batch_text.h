// A batch as slot text, for people to read and for `train` to read again.
#pragma once

#include <string>

#include "data/batch.h"

namespace regatta::worker {

// "Sample 3 has 3e+38 in dense_feature, value 5 of 13" for the largest input value or label of the batch; "" if none is
// huge.
std::string HugeInput(const data::Batch& batch, const data::Schema& schema);

// The first `samples` samples, a line each.
std::string BatchText(const data::Batch& batch, const data::Schema& schema, int samples);

}  // namespace regatta::worker
