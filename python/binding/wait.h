// Calls of C++ that may take long: the interpreter goes on meanwhile, and Ctrl+C ends those that ask
// Interruptible::Interrupted().
// Thread-safety: with the interpreter's lock held.
#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"
#include "binding/interrupt.h"
#include "binding/status.h"

namespace regatta::binding {

template <typename Call>
absl::Status Wait(const Call& call) {
  const Interruptible interruptible;
  nanobind::gil_scoped_release release;
  return call();
}

template <typename Call>
void WaitOrRaise(const Call& call) {
  RaiseIfError(Wait(call));
}

}  // namespace regatta::binding
