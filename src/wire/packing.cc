#include "wire/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/multiversion.h"

namespace regatta::wire {
namespace {

REGATTA_MULTIVERSION base::Key AnyBit(const base::Key* keys, size_t n) {
  base::Key bits = 0;
  for (size_t i = 0; i < n; ++i) bits |= keys[i];
  return bits;
}

// Stores eight bytes a key, each over the last one's leading zeros; the last keys exactly.
void Pack(const base::Key* keys, size_t n, size_t key_bytes, uint8_t* out) {
  const size_t last = std::min(n, (sizeof(base::Key) + key_bytes - 1) / key_bytes);
  size_t i = 0;
  for (; i + last < n; ++i) std::memcpy(out + i * key_bytes, &keys[i], sizeof(base::Key));
  for (; i < n; ++i) std::memcpy(out + i * key_bytes, &keys[i], key_bytes);
}

// The packed keys are the last n * key_bytes bytes of `keys` itself: a key is read before its place is written.
void UnpackInPlace(base::Key* keys, size_t n, size_t key_bytes) {
  auto* bytes = reinterpret_cast<uint8_t*>(keys);
  const uint8_t* packed = bytes + n * (sizeof(base::Key) - key_bytes);
  const base::Key mask = ~base::Key{0} >> (8 * (sizeof(base::Key) - key_bytes));
  const size_t last = std::min(n, (sizeof(base::Key) + key_bytes - 1) / key_bytes);
  size_t i = 0;
  for (; i + last < n; ++i) {
    base::Key key;
    std::memcpy(&key, packed + i * key_bytes, sizeof(key));
    key &= mask;
    std::memcpy(bytes + i * sizeof(key), &key, sizeof(key));
  }
  for (; i < n; ++i) {
    base::Key key = 0;
    std::memcpy(&key, packed + i * key_bytes, key_bytes);
    std::memcpy(bytes + i * sizeof(key), &key, sizeof(key));
  }
}

REGATTA_MULTIVERSION void Shorten(const float* values, size_t n, uint16_t* out) {
  for (size_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const uint32_t not_a_number = (bits >> 16) | 0x40;
    out[i] = static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? not_a_number : rounded);
  }
}

REGATTA_MULTIVERSION void Lengthen(const uint16_t* values, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(values[i]) << 16);
}

constexpr size_t kPiece = 2048;  // floats or keys that are looked at at a time, in the first cache

}  // namespace

size_t KeyBytes(std::span<const base::Key> keys) {
  base::Key bits = 0;
  while (!keys.empty() && std::bit_width(bits) <= 56) {  // beyond that a key takes all its bytes, whatever follows
    const std::span<const base::Key> piece = keys.first(std::min(keys.size(), kPiece));
    bits |= AnyBit(piece.data(), piece.size());
    keys = keys.subspan(piece.size());
  }
  return std::max<size_t>(1, (static_cast<size_t>(std::bit_width(bits)) + 7) / 8);
}

void AppendKeys(FrameWriter& writer, std::span<const base::Key> keys, size_t key_bytes) {
  if (key_bytes == sizeof(base::Key)) return writer.Append(keys.data(), keys.size_bytes());
  Pack(keys.data(), keys.size(), key_bytes, writer.Take(keys.size() * key_bytes));
}

absl::Status ReadKeys(FrameReader& reader, size_t key_bytes, std::span<base::Key> out) {
  if (key_bytes < 1 || key_bytes > sizeof(base::Key))
    return absl::InvalidArgumentError(absl::StrCat("keys of ", key_bytes, " bytes"));
  const size_t packed = out.size() * key_bytes;
  RETURN_IF_ERROR(reader.Read(reinterpret_cast<uint8_t*>(out.data()) + (out.size_bytes() - packed), packed));
  if (key_bytes < sizeof(base::Key)) UnpackInPlace(out.data(), out.size(), key_bytes);
  return absl::OkStatus();
}

void PackFloats(std::span<const float> values, ps::Precision precision, uint8_t* out) {
  if (precision != ps::BFLOAT16) {
    if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
    return;
  }
  uint16_t piece[kPiece];
  while (!values.empty()) {
    const size_t n = std::min(values.size(), kPiece);
    Shorten(values.data(), n, piece);
    std::memcpy(out, piece, n * sizeof(uint16_t));
    out += n * sizeof(uint16_t);
    values = values.subspan(n);
  }
}

void AppendFloats(FrameWriter& writer, std::span<const float> values, ps::Precision precision) {
  PackFloats(values, precision, writer.Take(values.size() * FloatBytes(precision)));
}

absl::Status ReadFloats(FrameReader& reader, ps::Precision precision, std::span<float> out) {
  if (precision != ps::BFLOAT16) return reader.Read(out.data(), out.size_bytes());
  uint16_t piece[kPiece];
  while (!out.empty()) {
    const size_t n = std::min(out.size(), kPiece);
    RETURN_IF_ERROR(reader.Read(piece, n * sizeof(uint16_t)));
    Lengthen(piece, n, out.data());
    out = out.subspan(n);
  }
  return absl::OkStatus();
}

void AppendRows(FrameWriter& writer, const base::RowsView<const float>& rows, size_t begin, size_t end,
                ps::Precision precision) {
  const auto width = static_cast<size_t>(rows.width);
  if (rows.stride == rows.width)
    return AppendFloats(writer, {rows.row(static_cast<int64_t>(begin)), (end - begin) * width}, precision);
  for (size_t i = begin; i < end; ++i) AppendFloats(writer, {rows.row(static_cast<int64_t>(i)), width}, precision);
}

absl::Status ReadRows(FrameReader& reader, ps::Precision precision, const base::RowsView<float>& rows, size_t begin,
                      size_t end) {
  const auto width = static_cast<size_t>(rows.width);
  if (rows.stride == rows.width)
    return ReadFloats(reader, precision, {rows.row(static_cast<int64_t>(begin)), (end - begin) * width});
  for (size_t i = begin; i < end; ++i)
    RETURN_IF_ERROR(ReadFloats(reader, precision, {rows.row(static_cast<int64_t>(i)), width}));
  return absl::OkStatus();
}

}  // namespace regatta::wire
