#include "server/credentials_folder.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "cluster/environment.h"
#include "wire/certificate.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTokenBytes = 32;
constexpr mode_t kSecret = 0600, kPublic = 0644;

constexpr char kAuthority[] = "ca.crt", kAuthorityKey[] = "ca.key", kCertificate[] = "tls.crt", kKey[] = "tls.key",
               kToken[] = "token", kAdminToken[] = "admin_token";
constexpr const char* kFiles[] = {kAuthority, kAuthorityKey, kCertificate, kKey, kToken, kAdminToken};

// From the kernel; waits until it has randomness.
absl::StatusOr<std::string> NewToken() {
  char bytes[kTokenBytes];
  size_t have = 0;
  while (have < sizeof bytes) {
    const ssize_t n = getrandom(bytes + have, sizeof bytes - have, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus("cannot read random bytes from", "the kernel");
    have += static_cast<size_t>(n);
  }
  return absl::StrCat(absl::BytesToHexString(absl::string_view(bytes, sizeof bytes)), "\n");
}

absl::Status Write(const std::string& path, const std::string& bytes, mode_t mode) {
  RETURN_IF_ERROR(base::Failpoint("file.write"));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kSecret);
  if (fd < 0) return base::ErrnoStatus("cannot create", path);
  size_t written = 0;
  absl::Status status;
  while (status.ok() && written < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      status = base::ErrnoStatus("cannot write", path);
    else
      written += static_cast<size_t>(n);
  }
  if (status.ok() && (fchmod(fd, mode) != 0 || fsync(fd) != 0)) status = base::ErrnoStatus("cannot sync", path);
  close(fd);
  return status;
}

absl::Status Fill(const std::string& folder, const cluster::CredentialsArgs& args) {
  ASSIGN_OR_RETURN(const wire::KeyedCertificate authority, wire::MakeAuthority(args.days));
  ASSIGN_OR_RETURN(const wire::KeyedCertificate member, wire::MakeCertificate(authority, args.hosts, args.days));
  ASSIGN_OR_RETURN(const std::string token, NewToken());
  ASSIGN_OR_RETURN(const std::string admin_token, NewToken());
  const auto in = [&folder](const char* name) { return absl::StrCat(folder, "/", name); };
  RETURN_IF_ERROR(Write(in(kAuthority), authority.cert, kPublic));
  RETURN_IF_ERROR(Write(in(kAuthorityKey), authority.key, kSecret));
  RETURN_IF_ERROR(Write(in(kCertificate), member.cert, kPublic));
  RETURN_IF_ERROR(Write(in(kKey), member.key, kSecret));
  RETURN_IF_ERROR(Write(in(kToken), token, kSecret));
  RETURN_IF_ERROR(Write(in(kAdminToken), admin_token, kSecret));
  return base::SyncFolder(folder);
}

// `folder` is about to be removed: nothing but credentials may be in it.
absl::Status CheckReplaceable(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error)))
    return absl::AlreadyExistsError(absl::StrCat(folder, " is there, and is no folder; choose another name"));
  fs::directory_iterator files(folder, error);
  if (error) return absl::AlreadyExistsError(absl::StrCat("cannot read ", folder, ": ", error.message()));
  for (const fs::directory_entry& entry : files) {
    const std::string name = entry.path().filename().string();
    if (std::find(std::begin(kFiles), std::end(kFiles), name) == std::end(kFiles))
      return absl::AlreadyExistsError(
          absl::StrCat(folder, " holds ", name, ", which is no part of credentials: it is not replaced"));
  }
  return absl::OkStatus();
}

// Puts `fresh` where the user wants it.
absl::Status MoveIntoPlace(const std::string& fresh, const std::string& folder, bool overwrite) {
  if (!overwrite) {
    RETURN_IF_ERROR(base::Failpoint("file.rename"));
    if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) != 0)
      return base::ErrnoStatus("cannot make", folder);
    return base::SyncFolder(fs::path(folder).parent_path().string());
  }
  RETURN_IF_ERROR(base::ExchangeDurably(fresh, folder));
  return base::RemoveTree(fresh);
}

// An absolute path without a slash at its end.
std::string Resolve(const std::string& folder) {
  std::error_code error;
  std::string path = fs::absolute(folder, error).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

cluster::CredentialFiles FilesIn(const std::string& folder) {
  const std::string path = Resolve(folder);
  return {.token = absl::StrCat(path, "/", kToken),
          .cert = absl::StrCat(path, "/", kCertificate),
          .key = absl::StrCat(path, "/", kKey),
          .ca = absl::StrCat(path, "/", kAuthority),
          .admin_token = absl::StrCat(path, "/", kAdminToken)};
}

absl::Status MakeCredentials(const cluster::CredentialsArgs& args) {
  const std::string folder = Resolve(args.folder);
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(folder, error));
  if (exists && !args.overwrite)
    return absl::AlreadyExistsError(
        absl::StrCat(folder, " is there already; --overwrite replaces the credentials in it, which ends those in use"));
  if (exists) RETURN_IF_ERROR(CheckReplaceable(folder));
  RETURN_IF_ERROR(base::MakeFolders(fs::path(folder).parent_path().string()));
  ASSIGN_OR_RETURN(const cluster::CoreDumps dumps, cluster::ReadCoreDumps(cluster::ProcessEnvironment()));
  if (dumps == cluster::CoreDumps::kForbid) cluster::ForbidCoreDumps();
  std::string fresh = absl::StrCat(folder, ".new.XXXXXX");
  if (mkdtemp(fresh.data()) == nullptr) return base::ErrnoStatus("cannot create", fresh);  // mode 0700
  absl::Status status = Fill(fresh, args);
  if (status.ok()) status = MoveIntoPlace(fresh, folder, exists);
  if (!status.ok()) base::RemoveTree(fresh).IgnoreError();
  return status;
}

absl::StatusOr<std::string> DescribeCredentials(const cluster::CredentialsArgs& args) {
  const std::string folder = Resolve(args.folder);
  const cluster::CredentialFiles files = FilesIn(folder);
  ASSIGN_OR_RETURN(const std::string cert, base::ReadFile(files.cert));
  ASSIGN_OR_RETURN(const std::string end, wire::EndOf(cert));
  std::string text =
      absl::StrCat("made ", folder, ", good until ", end, " for ", absl::StrJoin(args.hosts, ", "), "\n");
  absl::StrAppend(&text,
                  "  ca.crt, tls.crt   the authority and the certificate: no secrets\n"
                  "  tls.key, token    secret: every server and worker needs them\n"
                  "  admin_token       secret: the servers and worker 0 need it\n"
                  "  ca.key            secret: nobody needs it to train; keep it elsewhere, or delete it\n"
                  "On every machine, with the folder copied there (its modes kept: scp -p):\n");
  for (const cluster::CredentialName& name : cluster::kCredentialNames) {
    absl::StrAppend(&text, "  export ", name.variable, "=", files.*name.file,
                    name.file == &cluster::CredentialFiles::admin_token ? "    # servers and worker 0 only" : "", "\n");
  }
  return text;
}

}  // namespace regatta::server
