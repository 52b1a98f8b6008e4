#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace regatta::base {

absl::Status ErrnoStatus(std::string_view what, std::string_view path) {
  const int error = errno;
  const std::string message = absl::StrCat(View(what), " ", View(path), ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnknownError(message);
  }
}

}  // namespace regatta::base
