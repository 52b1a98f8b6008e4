#include "binding/status.h"

#include <nanobind/nanobind.h>

#include <string>

namespace regatta::binding {
namespace {

namespace nb = nanobind;

const char* ErrorClass(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kCancelled:
      return "CancelledError";
    case absl::StatusCode::kInvalidArgument:
      return "InvalidArgumentError";
    case absl::StatusCode::kDeadlineExceeded:
      return "DeadlineExceededError";
    case absl::StatusCode::kNotFound:
      return "NotFoundError";
    case absl::StatusCode::kAlreadyExists:
      return "AlreadyExistsError";
    case absl::StatusCode::kPermissionDenied:
      return "PermissionDeniedError";
    case absl::StatusCode::kUnauthenticated:
      return "UnauthenticatedError";
    case absl::StatusCode::kResourceExhausted:
      return "ResourceExhaustedError";
    case absl::StatusCode::kFailedPrecondition:
      return "FailedPreconditionError";
    case absl::StatusCode::kAborted:
      return "AbortedError";
    case absl::StatusCode::kOutOfRange:
      return "OutOfRangeError";
    case absl::StatusCode::kUnimplemented:
      return "UnimplementedError";
    case absl::StatusCode::kUnavailable:
      return "UnavailableError";
    case absl::StatusCode::kDataLoss:
      return "DataLossError";
    default:
      return "InternalError";
  }
}

}  // namespace

void Raise(const absl::Status& status) {
  // A signal that ended the call has the last word: Ctrl+C is a KeyboardInterrupt.
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const nb::object error = nb::module_::import_("regattarec.errors").attr(ErrorClass(status.code()));
  PyErr_SetString(error.ptr(), std::string(status.message()).c_str());
  throw nb::python_error();
}

}  // namespace regatta::binding
