#include "cluster/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"

namespace regatta::cluster {
namespace {

constexpr size_t kMinTokenBytes = 32;
constexpr size_t kMaxTokenBytes = 4096;  // gRPC's metadata has 8 KiB
constexpr uint64_t kMaxFileBytes = 1 << 20;

enum class Privacy { kSecret, kPublic };

std::string NamesOf(const CredentialName& name) {
  return absl::StrCat(name.flag, ", runner.security.", name.key, " or ", name.variable);
}

absl::Status CheckWhole(const CredentialFiles& files) {
  std::vector<std::string> missing;
  const char* given = nullptr;
  for (const CredentialName& name : kCredentialNames) {
    if (!(files.*name.file).empty())
      given = name.flag + 2;
    else if (name.file != &CredentialFiles::admin_token)
      missing.push_back(absl::StrCat(name.flag + 2, " (", NamesOf(name), ")"));
  }
  if (given == nullptr || missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("credentials come together: ", given, " is given, and missing is ",
                                                 absl::StrJoin(missing, ", and "),
                                                 "; `regatta credentials init DIR` makes all of them"));
}

// Asked of the open file: a path may be changed between two looks.
absl::Status CheckPrivate(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return base::ErrnoStatus("cannot look at", path);
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is a secret that others can read (its mode is %04o): chmod 600 %s", path, info.st_mode & 07777, path));
}

absl::StatusOr<std::string> ReadCredential(const CredentialName& name, const std::string& path, Privacy privacy) {
  const absl::StatusOr<int> fd = base::OpenForReading(path);
  if (!fd.ok()) return base::Annotate(fd.status(), name.flag + 2);
  absl::Status status = privacy == Privacy::kSecret ? CheckPrivate(*fd, path) : absl::OkStatus();
  absl::StatusOr<std::string> bytes = status.ok() ? base::ReadOpenFile(*fd, path, kMaxFileBytes) : status;
  close(*fd);
  if (!bytes.ok()) return base::Annotate(bytes.status(), name.flag + 2);
  return bytes;
}

// The token's text is never in the message.
absl::Status CheckToken(const CredentialName& name, const std::string& path, const std::string& token) {
  const auto printable = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (token.size() >= kMinTokenBytes && token.size() <= kMaxTokenBytes &&
      std::all_of(token.begin(), token.end(), printable))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name.flag + 2, ": ", path, " holds no token: want one line of ", kMinTokenBytes, " to ", kMaxTokenBytes,
      " printable characters without blanks, it has ", token.size(), "; `regatta credentials init DIR` makes one"));
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

}  // namespace

void AddCredentialOptions(CLI::App& app, CredentialFiles& files) {
  for (const CredentialName& name : kCredentialNames)
    app.add_option(name.flag, files.*name.file, name.about)->type_name("FILE");
}

CredentialFiles ReadCredentialFiles(const std::function<std::optional<std::string>(const std::string&)>& getenv,
                                    const CredentialFiles& said) {
  CredentialFiles files = said;
  for (const CredentialName& name : kCredentialNames) {
    if (!(files.*name.file).empty()) continue;
    files.*name.file = getenv(name.variable).value_or("");
    absl::StripAsciiWhitespace(&(files.*name.file));
  }
  return files;
}

absl::StatusOr<std::shared_ptr<const Credentials>> LoadCredentials(const CredentialFiles& files, CoreDumps dumps) {
  if (files == CredentialFiles{}) return nullptr;
  RETURN_IF_ERROR(CheckWhole(files));
  if (dumps == CoreDumps::kForbid) ForbidCoreDumps();
  auto credentials = std::make_shared<Credentials>();
  credentials->files = files;
  const struct {
    std::string CredentialFiles::*file;
    std::string Credentials::*into;
    Privacy privacy;
  } kParts[] = {{&CredentialFiles::token, &Credentials::token, Privacy::kSecret},
                {&CredentialFiles::cert, &Credentials::cert, Privacy::kPublic},
                {&CredentialFiles::key, &Credentials::key, Privacy::kSecret},
                {&CredentialFiles::ca, &Credentials::ca, Privacy::kPublic},
                {&CredentialFiles::admin_token, &Credentials::admin_token, Privacy::kSecret}};
  for (size_t i = 0; i < std::size(kParts); ++i) {
    const std::string& path = files.*kParts[i].file;
    if (path.empty()) continue;  // the admin's token
    ASSIGN_OR_RETURN(std::string bytes, ReadCredential(kCredentialNames[i], path, kParts[i].privacy));
    absl::StripTrailingAsciiWhitespace(&bytes);
    const bool token = kParts[i].into == &Credentials::token || kParts[i].into == &Credentials::admin_token;
    if (token) RETURN_IF_ERROR(CheckToken(kCredentialNames[i], path, bytes));
    (*credentials).*kParts[i].into = token ? std::move(bytes) : bytes + "\n";
  }
  if (credentials->token == credentials->admin_token) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.token, " and ", files.admin_token, " hold the same token; the admin's must be another"));
  }
  return std::shared_ptr<const Credentials>(std::move(credentials));
}

std::vector<std::string> CredentialFlags(const CredentialFiles& files) {
  std::vector<std::string> flags;
  for (const CredentialName& name : kCredentialNames)
    if (const std::string& path = files.*name.file; !path.empty())
      flags.push_back(absl::StrCat(name.flag, "=", Absolute(path)));
  return flags;
}

std::vector<std::pair<std::string, std::string>> CredentialVariables(const CredentialFiles& files) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const CredentialName& name : kCredentialNames)
    if (const std::string& path = files.*name.file; !path.empty())
      variables.emplace_back(name.variable, Absolute(path));
  return variables;
}

}  // namespace regatta::cluster
