// Keyword arguments of Python as the fields of options.
//   Keywords keywords(given);
//   keywords.Take("size", options.size);
// Thread-safety: with the interpreter's lock held.
#pragma once

#include <nanobind/nanobind.h>

#include "absl/strings/str_cat.h"
#include "binding/status.h"

namespace regatta::binding {

class Keywords {
 public:
  explicit Keywords(const nanobind::kwargs& given) : given_(given) {}

  // Leaves `out` alone if the keyword was not given or is None. An exception names a value that it cannot be.
  template <typename T>
  void Take(const char* name, T& out) const {
    if (!given_.contains(name)) return;
    const nanobind::handle value = given_[name];
    if (!value.is_none() && !nanobind::try_cast(value, out))
      Raise(absl::InvalidArgumentError(absl::StrCat(name, ": ", nanobind::repr(value).c_str(), " cannot be")));
  }

 private:
  const nanobind::kwargs& given_;
};

}  // namespace regatta::binding
