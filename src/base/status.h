// Errors are values: absl::Status and absl::StatusOr, with context added on the way up.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace regatta::base {

// The same code with "context: " put in front of the message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(absl::string_view(context.data(), context.size()), ": ", status.message()));
}

// std::string_view → absl::string_view (two types in Debian's absl).
inline absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

// An error about errno after a failed system call on `path`.
absl::Status ErrnoStatus(std::string_view what, std::string_view path);

}  // namespace regatta::base

#define REGATTA_CONCAT_INNER(a, b) a##b
#define REGATTA_CONCAT(a, b) REGATTA_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                          \
  do {                                                 \
    if (absl::Status s_ = (expr); !s_.ok()) return s_; \
  } while (0)

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_INNER(REGATTA_CONCAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  lhs = std::move(tmp).value()
