// How keys and rows lie in a frame's body. Keys take as many bytes each as the largest of them needs, so that ids of a
// few millions cost three and not eight. Rows are floats, or bfloat16 where the job asks for it: rounded to the
// nearest, ties to even, what is not a number stays so. Thread-safety: plain functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/key.h"
#include "base/status.h"
#include "base/step.h"
#include "wire/frame.h"
#include "wire/ps.pb.h"

namespace regatta::wire {

// 1 to 8.
size_t KeyBytes(std::span<const base::Key> keys);
void AppendKeys(FrameWriter& writer, std::span<const base::Key> keys, size_t key_bytes);
// INVALID_ARGUMENT where the frame ends too early or key_bytes is none.
absl::Status ReadKeys(FrameReader& reader, size_t key_bytes, std::span<base::Key> out);

constexpr size_t FloatBytes(ps::Precision precision) { return precision == ps::BFLOAT16 ? 2 : sizeof(float); }
// Fills values.size() * FloatBytes bytes.
void PackFloats(std::span<const float> values, ps::Precision precision, uint8_t* out);
void AppendFloats(FrameWriter& writer, std::span<const float> values, ps::Precision precision);
absl::Status ReadFloats(FrameReader& reader, ps::Precision precision, std::span<float> out);
// Rows [begin, end) of a view.
void AppendRows(FrameWriter& writer, const base::RowsView<const float>& rows, size_t begin, size_t end,
                ps::Precision precision);
absl::Status ReadRows(FrameReader& reader, ps::Precision precision, const base::RowsView<float>& rows, size_t begin,
                      size_t end);

}  // namespace regatta::wire
