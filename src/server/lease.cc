#include "server/lease.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/printable.h"
#include "log/end_mark.h"
#include "log/log_seal.h"

namespace regatta::server {
namespace fs = std::filesystem;
namespace {

constexpr char kTerm[] = "term-";
constexpr char kOwner[] = "/OWNER";
constexpr mode_t kPrivateFolder = 0700;
constexpr size_t kMaxOwnerBytes = 4096;
constexpr double kExpiryFactor = 1.5;  // leases that a silent holder is given: clocks need not run alike
constexpr std::chrono::milliseconds kLeasePoll(20);
constexpr std::chrono::seconds kSay(3);
constexpr std::chrono::seconds kLongestPause(1);  // between renewals

using Seconds = std::chrono::duration<double>;

// It goes on while the machine sleeps.
std::chrono::nanoseconds Now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string TermFolder(const std::string& data_dir, uint64_t term) { return absl::StrCat(data_dir, "/", kTerm, term); }

// Who has a term, as its OWNER tells. Unreadable: zeros.
struct Owner {
  std::string host;
  int64_t pid = 0;
  uint64_t boot = 0;
  double lease = 0;

  std::string Name() const { return pid == 0 ? "a server" : absl::StrCat("process ", pid, " on ", host); }
};

std::string Format(const Owner& owner, uint64_t renewals) {
  return absl::StrFormat("host %s\npid %d\nboot %016x\nlease %.3f\nrenewals %020d\n", owner.host, owner.pid, owner.boot,
                         owner.lease, renewals);
}

Owner Self(const LeaseOptions& options) {
  static const std::string host = HostName();
  static const uint64_t boot = log::BootIdentity();
  return {host, getpid(), boot, options.length.count()};
}

int64_t Until(std::chrono::nanoseconds start, const LeaseOptions& options) {
  return (start + std::chrono::duration_cast<std::chrono::nanoseconds>(options.length)).count();
}

Owner Parse(absl::string_view text) {
  std::map<std::string, std::string> words;
  for (const absl::string_view line : absl::StrSplit(text, '\n'))
    words.insert(static_cast<std::pair<std::string, std::string>>(absl::StrSplit(line, absl::MaxSplits(' ', 1))));
  Owner owner;
  owner.host = base::Printable(words["host"].substr(0, 255));
  const bool whole = absl::SimpleAtoi(words["pid"], &owner.pid) && absl::SimpleHexAtoi(words["boot"], &owner.boot) &&
                     absl::SimpleAtod(words["lease"], &owner.lease) && owner.lease > 0 && owner.lease <= 86'400;
  return whole ? owner : Owner{};
}

constexpr uint64_t kMostTerms = uint64_t{1} << 48;

// Nothing where there is none. `older` gets the folders of those before.
absl::StatusOr<std::optional<uint64_t>> NewestTerm(const std::string& data_dir,
                                                   std::vector<std::string>* older = nullptr) {
  std::map<uint64_t, std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_dir, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    uint64_t term = 0;
    if (!absl::ConsumePrefix(&number, kTerm) || !absl::SimpleAtoi(number, &term)) continue;
    if (term > kMostTerms)
      return absl::FailedPreconditionError(absl::StrCat(
          entry.path().string(), " is no folder of a server's: terms are counted up one by one; remove it"));
    found[term] = entry.path().string();
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", data_dir, ": ", error.message()));
  if (found.empty()) return std::nullopt;
  const uint64_t newest = found.rbegin()->first;
  found.erase(newest);
  for (const auto& [term, path] : found)
    if (older != nullptr) older->push_back(path);
  return newest;
}

// Whether nothing is in the folder but what servers make there.
bool HoldsTermsOnly(const std::string& data_dir) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_dir, error))
    if (!entry.path().filename().string().starts_with(kTerm)) return false;
  return !error;
}

// Afterwards `data_dir` is there, for this user alone: the rows of the model are in it. A folder of the user's that
// holds other things too keeps its mode; the terms in it are private in any case.
absl::Status MakePrivate(const std::string& data_dir) {
  std::error_code error;
  const fs::path path = fs::absolute(data_dir, error).lexically_normal();
  RETURN_IF_ERROR(base::MakeFolders((path.has_filename() ? path : path.parent_path()).parent_path().string()));
  if (mkdir(data_dir.c_str(), kPrivateFolder) == 0) return absl::OkStatus();
  if (errno != EEXIST) return base::ErrnoStatus("cannot create folder", data_dir);
  struct stat info {};
  if (stat(data_dir.c_str(), &info) != 0) return base::ErrnoStatus("cannot look at", data_dir);
  if (!S_ISDIR(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(data_dir, " is not a folder"));
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  const bool ours = info.st_uid == geteuid() && (info.st_mode & S_ISVTX) == 0 && HoldsTermsOnly(data_dir);
  if (ours && chmod(data_dir.c_str(), kPrivateFolder) == 0) return absl::OkStatus();
  if ((info.st_mode & 022) != 0)
    LOG(WARNING) << "others may write to the folder " << data_dir << ": give the server a folder of its own";
  return absl::OkStatus();
}

// Earlier versions left the mode of a term to the umask.
absl::Status CloseToOthers(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    const absl::Status failed = base::ErrnoStatus("cannot open", folder);
    RETURN_IF_ERROR(base::CheckOwnFolder(folder));
    return failed;
  }
  const bool done = fchmod(fd, kPrivateFolder) == 0;
  const absl::Status failed = base::ErrnoStatus("cannot set the mode of", folder);
  close(fd);
  return done ? absl::OkStatus() : failed;
}

// What a claimant sees of a term's holder at one moment.
struct Sight {
  bool gone = false;  // the term has another name meanwhile
  bool free = false;  // nobody has it, or nobody who lives
  std::string bytes;  // of OWNER
};

absl::StatusOr<Sight> Inspect(const std::string& data_dir, uint64_t term) {
  Sight sight;
  const std::string folder = TermFolder(data_dir, term);
  const absl::StatusOr<int> opened = base::OpenOwn(folder + kOwner, O_RDWR);
  if (!opened.ok()) {
    if (!absl::IsNotFound(opened.status())) return opened.status();
    sight.gone = !base::Exists(folder);
    sight.free = !sight.gone;
    return sight;
  }
  const int fd = *opened;
  char buffer[kMaxOwnerBytes];
  const ssize_t n = pread(fd, buffer, sizeof buffer, 0);
  sight.bytes.assign(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  // A lock says nothing about another machine, nor about this one's disks before it was started again.
  sight.free = Parse(sight.bytes).boot == log::BootIdentity() && flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return sight;
}

enum class Before : uint8_t {
  kEnded,   // nobody writes there any more
  kAsleep,  // perhaps
  kGone,    // somebody else was faster
};

struct Judgement {
  Before before = Before::kGone;
  std::string bytes = {};  // of the OWNER that it is about; "" = there was none
};

// Waits until the term may be taken.
absl::StatusOr<Judgement> AwaitEnd(const std::string& data_dir, uint64_t term, const LeaseOptions& options) {
  ASSIGN_OR_RETURN(const Sight first, Inspect(data_dir, term));
  if (first.gone) return Judgement{};
  if (first.free) return Judgement{Before::kEnded, first.bytes};
  const Owner owner = Parse(first.bytes);
  const double lease = owner.pid == 0 ? options.length.count() : owner.lease;
  const auto start = Now();
  auto say = start;
  while (true) {
    ASSIGN_OR_RETURN(const Sight sight, Inspect(data_dir, term));
    if (sight.gone) return Judgement{};
    if (sight.free) return Judgement{Before::kEnded, sight.bytes};
    if (sight.bytes != first.bytes)
      return absl::FailedPreconditionError(
          absl::StrCat(data_dir, " is in use by ", Parse(sight.bytes).Name(),
                       ", which renews its lease: stop it first, or give this server another data_dir"));
    const double waited = Seconds(Now() - start).count(), left = kExpiryFactor * lease - waited;
    if (left <= 0) return Judgement{Before::kAsleep, sight.bytes};
    if (Now() >= say && waited > 0.1) {
      LOG(WARNING) << absl::StrFormat("%s is %s's, which does not renew its lease; taken over in %.1f s", data_dir,
                                      owner.Name(), left);
      say = Now() + kSay;
    }
    std::this_thread::sleep_for(kLeasePoll);
  }
}

}  // namespace

Lease::Lease(const std::string& data_dir, uint64_t term, const LeaseOptions& options)
    : data_dir_(data_dir),
      term_(term),
      options_(options),
      folder_(TermFolder(data_dir, term)),
      path_(folder_ + kOwner) {}

absl::StatusOr<std::unique_ptr<Lease>> Lease::Acquire(const std::string& data_dir, const LeaseOptions& options) {
  RETURN_IF_ERROR(MakePrivate(data_dir));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<uint64_t> newest, NewestTerm(data_dir));
    if (!newest.has_value()) {
      if (base::Exists(data_dir + "/log"))
        return absl::FailedPreconditionError(
            absl::StrCat(data_dir, " was written by an earlier version of Regatta; give this server an empty folder"));
      if (mkdir(TermFolder(data_dir, 0).c_str(), kPrivateFolder) != 0 && errno != EEXIST)
        return base::ErrnoStatus("cannot create folder", TermFolder(data_dir, 0));
      continue;
    }
    const uint64_t term = *newest;
    const absl::Status folder = base::CheckOwnFolder(TermFolder(data_dir, term));
    if (absl::IsNotFound(folder)) continue;  // somebody has renamed it
    RETURN_IF_ERROR(folder);
    ASSIGN_OR_RETURN(const Judgement judged, AwaitEnd(data_dir, term, options));
    if (judged.before == Before::kGone) continue;
    std::unique_ptr<Lease> lease(new Lease(data_dir, term + 1, options));
    // Of several who come, one renames it.
    if (rename(TermFolder(data_dir, term).c_str(), lease->folder_.c_str()) != 0) {
      if (errno == ENOENT) continue;
      return base::ErrnoStatus("cannot rename", TermFolder(data_dir, term));
    }
    // One that is not there has been taken by somebody who was faster.
    const absl::Status closed = CloseToOthers(lease->folder_);
    if (!closed.ok() && !absl::IsNotFound(closed)) return closed;
    RETURN_IF_ERROR(base::SyncFolder(data_dir));
    RETURN_IF_ERROR(base::Failpoint("lease.renamed"));
    // Somebody may have come between the look and the renaming: then it is that one who may have files open.
    ASSIGN_OR_RETURN(const Sight now, Inspect(data_dir, term + 1));
    absl::Status taken;
    // Before OWNER names this process: were it killed in between, the next one could not tell that somebody sleeps.
    if (judged.before == Before::kAsleep || now.bytes != judged.bytes) taken = log::SealLogs(lease->folder_ + "/log");
    if (taken.ok()) taken = lease->TakeOffice();
    if (taken.ok()) return lease;
    if (!Inspect(data_dir, term + 1).value_or(Sight{}).gone) return taken;  // unless somebody else was faster
  }
}

absl::Status Lease::TakeOffice() {
  const auto start = Now();
  const std::string fresh = absl::StrCat(path_, ".", getpid());
  ASSIGN_OR_RETURN(fd_, base::CreateOwn(fresh, 0600));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) return base::ErrnoStatus("cannot lock", fresh);
  const std::string bytes = Format(Self(options_), 0);
  struct stat info {};
  if (pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) || fstat(fd_, &info) != 0)
    return base::ErrnoStatus("cannot write", fresh);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  if (rename(fresh.c_str(), path_.c_str()) != 0) return base::ErrnoStatus("cannot rename", fresh);
  std::vector<std::string> older;  // what servers that were asleep have made since
  RETURN_IF_ERROR(NewestTerm(data_dir_, &older).status());
  for (const std::string& path : older) RETURN_IF_ERROR(base::RemoveTree(path));
  valid_until_ = Until(start, options_);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

Lease::~Lease() {
  if (thread_.joinable()) {
    {
      base::MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
    if (Check().ok()) unlink(path_.c_str());
  }
  if (fd_ >= 0) close(fd_);
}

void Lease::Run() {
  const auto pause = std::min<Seconds>(kLongestPause, options_.length / 4);
  base::MutexLock lock(mu_);
  while (!stopping_ && lost_.ok()) {
    changed_.WaitFor(mu_, std::chrono::duration_cast<std::chrono::nanoseconds>(pause));
    if (stopping_) return;
    if (const absl::Status renewed = RenewLocked(); !renewed.ok()) LOG(WARNING) << renewed.message();
  }
}

bool Lease::Stands() const {
  struct stat info {};
  errno = 0;
  return stat(path_.c_str(), &info) == 0 && info.st_ino == inode_ && info.st_dev == device_;
}

absl::Status Lease::Check() {
  if (Stands() && Now().count() < valid_until_) return absl::OkStatus();
  base::MutexLock lock(mu_);
  return RenewLocked();
}

absl::Status Lease::VerifyLocked() {
  RETURN_IF_ERROR(lost_);
  if (Stands()) return absl::OkStatus();
  if (errno != 0 && errno != ENOENT && errno != ESTALE)
    return absl::UnavailableError(base::ErrnoStatus("cannot look at", path_).message());
  const auto found = NewestTerm(data_dir_);
  const uint64_t now = found.ok() ? found->value_or(0) : 0;
  if (now > term_) {
    const std::string folder = TermFolder(data_dir_, now);
    const bool own = base::CheckOwnFolder(folder).ok();
    const Owner owner = Parse(own ? base::ReadOwnFile(folder + kOwner, kMaxOwnerBytes).value_or("") : "");
    const bool told = owner.pid != 0 && owner.pid != getpid();  // it writes its name a little later
    lost_ = absl::UnavailableError(absl::StrFormat(
        "%s has been taken over by %s: this server did not renew its lease of %.1f s, and serves no more", data_dir_,
        told ? owner.Name() : "another server", options_.length.count()));
  } else {
    lost_ = absl::UnavailableError(absl::StrCat(path_, " has been removed: this server serves no more"));
  }
  valid_until_ = 0;
  changed_.NotifyAll();
  return lost_;
}

// By its path: a file system of several machines looks again when a file is opened, and tells the others when it is
// closed.
absl::Status Lease::RenewLocked() {
  const auto start = Now();
  RETURN_IF_ERROR(VerifyLocked());
  const std::string bytes = Format(Self(options_), renewals_ + 1);
  const absl::StatusOr<int> fd = base::OpenOwn(path_, O_WRONLY);
  struct stat info {};
  const bool written = fd.ok() && fstat(*fd, &info) == 0 && info.st_ino == inode_ && info.st_dev == device_ &&
                       pwrite(*fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  const absl::Status failed =
      absl::UnavailableError((fd.ok() ? base::ErrnoStatus("cannot renew", path_) : fd.status()).message());
  if (fd.ok()) close(*fd);
  RETURN_IF_ERROR(VerifyLocked());
  if (!written) return failed;
  ++renewals_;
  valid_until_ = Until(start, options_);
  return absl::OkStatus();
}

}  // namespace regatta::server
