// Little-endian numbers in a string, for metrics that travel in checkpoints and between workers: bits are exact.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace regatta::metrics {

template <typename T>
void PutBytes(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

// 7 bits a byte, the low ones first: small numbers take one.
inline void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Reads what PutBytes and PutVarint wrote; past the end every read fails.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  absl::Status Get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() < sizeof(T)) return absl::DataLossError("metrics: the bytes end too early");
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return absl::OkStatus();
  }
  absl::Status GetVarint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      RETURN_IF_ERROR(Get(byte));
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return absl::OkStatus();
    }
    return absl::DataLossError("metrics: a number has too many bytes");
  }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

}  // namespace regatta::metrics
