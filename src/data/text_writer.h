// Writes a text file, plain or compressed.
// Thread-safety: belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/source/byte_source.h"

namespace regatta::data {

class TextWriter {
 public:
  virtual ~TextWriter() = default;

  // The file appears, or replaces the old one, at Close; a writer that ends without one leaves no trace.
  static absl::StatusOr<std::unique_ptr<TextWriter>> Create(const std::string& path, Compression compression);

  virtual absl::Status Write(std::string_view text) = 0;
  // Must be called last.
  virtual absl::Status Close() = 0;
};

}  // namespace regatta::data
