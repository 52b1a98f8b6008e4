// Copies runs of parsed samples into a batch.
// Thread-safety: pure functions.
#pragma once

#include "data/batch.h"
#include "data/sample_block.h"

namespace regatta::data {

// Makes room for `samples` samples like those of the block.
void ReserveLike(const SampleBlock& block, int samples, Batch* batch);

// Appends samples [begin, begin + count) of the block, and their share of the block's bytes.
void AppendSamples(const SampleBlock& block, int begin, int count, Batch* batch);

}  // namespace regatta::data
