// A batch as slot text, for people to read and for `train` to read again.
#pragma once

#include <string>

#include "data/batch.h"

namespace regatta::worker {

// The first `samples` samples, a line each.
std::string BatchText(const data::Batch& batch, const data::Schema& schema, int samples);

}  // namespace regatta::worker
