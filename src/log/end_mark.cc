#include "log/end_mark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/crc32c.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"

namespace regatta::log {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kCopies = 2;  // record i goes to copy i % 2: a kill within one leaves the other

struct Copy {
  End end;
  uint32_t crc;
  uint32_t zero;

  uint32_t ComputeCrc() const { return base::Crc32c(this, offsetof(Copy, crc)); }
};
constexpr size_t kStride = 64;

Copy Whole(const End& end) {
  Copy copy{end, 0, 0};
  copy.crc = copy.ComputeCrc();
  return copy;
}

}  // namespace

uint64_t BootIdentity() {
  const auto text = base::ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  return text.ok() ? base::HashBytes(*text) : 0;
}

absl::StatusOr<End> EndMark::Read(const std::string& path) {
  if (!base::Exists(path)) return absl::NotFoundError(absl::StrCat("there is no ", path));
  ASSIGN_OR_RETURN(const std::string bytes, base::ReadOwnFile(path, kPage));
  std::optional<End> newest;
  for (size_t i = 0; i < kCopies && (i + 1) * kStride <= bytes.size(); ++i) {
    Copy copy;
    std::memcpy(&copy, bytes.data() + i * kStride, sizeof copy);
    if (copy.crc != copy.ComputeCrc()) continue;
    if (!newest.has_value() || copy.end.index > newest->index) newest = copy.end;
  }
  if (!newest.has_value()) return absl::DataLossError(absl::StrCat(path, " is damaged: its checksums are wrong"));
  return *newest;
}

absl::StatusOr<EndMark> EndMark::Open(const std::string& path, const End& end) {
  const Copy copy = Whole(end);
  const auto bytes = base::ReadOwnFile(path, kPage);
  if (!bytes.ok() || bytes->size() != kPage) {
    std::string first(kPage, '\0');  // all of it has room on the disk
    for (size_t i = 0; i < kCopies; ++i) std::memcpy(first.data() + i * kStride, &copy, sizeof copy);
    RETURN_IF_ERROR(base::WriteFileAtomically(path, first));
    RETURN_IF_ERROR(base::Failpoint("log.end"));
  }
  ASSIGN_OR_RETURN(const int fd, base::OpenOwn(path, O_RDWR));
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const absl::Status failed = base::ErrnoStatus("cannot map", path);
  close(fd);
  if (page == MAP_FAILED) return failed;
  EndMark mark(page, end);
  for (size_t i = 0; i < kCopies; ++i) std::memcpy(static_cast<char*>(page) + i * kStride, &copy, sizeof copy);
  return mark;
}

EndMark::~EndMark() {
  if (page_ != nullptr) munmap(page_, kPage);
}

void EndMark::Set(uint64_t index) {
  end_.index = index;
  const Copy copy = Whole(end_);
  std::memcpy(static_cast<char*>(page_) + index % kCopies * kStride, &copy, sizeof copy);
}

}  // namespace regatta::log
