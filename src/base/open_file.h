// How files are opened, so that what others can plant in a folder neither stops nor misleads a program: a FIFO is
// refused instead of waited for, and a symbolic link under a name that the program makes up is not followed.
// Thread-safety: the functions are concurrent. A descriptor that is returned belongs to the caller.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace regatta::base {

enum class NamedBy : uint8_t {
  kProgram,  // its name is made up: LOCK, data-000, x.tmp. A symbolic link of this name is none of ours
  kUser      // somebody asked for it by name: links are followed, devices and FIFOs are written through
};

// A regular file, or a link to one. Anything else: INVALID_ARGUMENT "<path> is not a regular file (a FIFO)", at once.
absl::StatusOr<int> OpenForReading(const std::string& path);

// A regular file that the program itself made and uses again. `flags` as of open(2), without O_TRUNC; a symbolic link
// or another kind of file is an error.
absl::StatusOr<int> OpenOwn(const std::string& path, int flags, mode_t mode = 0);

// A new, empty file for writing. What had the name is removed, not followed.
absl::StatusOr<int> CreateOwn(const std::string& path, mode_t mode);

// OK: `path`, a folder that the program itself made, is a folder and no symbolic link. NOT_FOUND: nothing has the name.
// Anything else: INVALID_ARGUMENT, which says what it is and to remove it. Somebody who may write to the folder above
// can still exchange it afterwards.
absl::Status CheckOwnFolder(const std::string& path);

// INVALID_ARGUMENT where `fd`, which was opened as `path`, is no regular file.
absl::Status CheckRegularFile(int fd, const std::string& path);

}  // namespace regatta::base
