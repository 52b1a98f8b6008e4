// A Status becomes an exception of regattarec.errors, with the same text. The class is named after the code:
// INVALID_ARGUMENT → InvalidArgumentError.
// Thread-safety: with the interpreter's lock held.
#pragma once

#include <utility>

#include "base/status.h"

namespace regatta::binding {

[[noreturn]] void Raise(const absl::Status& status);

inline void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}

}  // namespace regatta::binding
