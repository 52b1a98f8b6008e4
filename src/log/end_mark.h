// How far a log has been written, kept beside it in a page that is shared with the kernel: it costs two stores a record
// and is as it was when the process is killed, so that a log that lost its end can be told from one that never had it.
// After a restart of the machine it promises nothing.
// Thread-safety: Set is for one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"

namespace regatta::log {

struct End {
  uint64_t log = 0;    // whose end it is
  uint64_t boot = 0;   // of the machine, when it was written
  uint64_t index = 0;  // of the last record written; 0 = none
};

class EndMark {
 public:
  // NOT_FOUND where there is none. DATA_LOSS where neither of its two copies is whole.
  static absl::StatusOr<End> Read(const std::string& path);
  // Takes the file over, or makes it: then it and its name are on the disk afterwards.
  static absl::StatusOr<EndMark> Open(const std::string& path, const End& end);
  EndMark(EndMark&& other) noexcept : page_(std::exchange(other.page_, nullptr)), end_(other.end_) {}
  EndMark& operator=(EndMark&&) = delete;
  ~EndMark();

  void Set(uint64_t index);

 private:
  EndMark(void* page, const End& end) : page_(page), end_(end) {}

  void* page_;
  End end_;
};

// Of this machine's present run.
uint64_t BootIdentity();

}  // namespace regatta::log
