// What proves the processes of a cluster to each other: a token, which says who may call, and the certificate, key and
// authority of TLS. A process has all four or none; a second token, the admin's, may come on top. They are files:
// flags, the configuration and the environment carry paths, never a secret. Thread-safety: plain values, pure functions
// of the files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cluster/core_dumps.h"

namespace CLI {
class App;
}

namespace regatta::cluster {

// Paths; "" = not said.
struct CredentialFiles {
  std::string token = {};        // --token_file, runner.security.token_file, REGATTA_TOKEN_FILE
  std::string cert = {};         // --tls_cert, …
  std::string key = {};          // --tls_key, …
  std::string ca = {};           // --tls_ca, …
  std::string admin_token = {};  // --admin_token_file, …: optional

  bool operator==(const CredentialFiles&) const = default;
};

// The same five in the order above, under all their names.
struct CredentialName {
  std::string CredentialFiles::*file;
  const char* flag;
  const char* key;  // below runner.security
  const char* variable;
  const char* about;
};
inline constexpr CredentialName kCredentialNames[] = {
    {&CredentialFiles::token, "--token_file", "token_file", "REGATTA_TOKEN_FILE",
     "the token that lets a process in; with TLS, see regatta credentials --help"},
    {&CredentialFiles::cert, "--tls_cert", "tls_cert", "REGATTA_TLS_CERT", "this process's certificate (PEM)"},
    {&CredentialFiles::key, "--tls_key", "tls_key", "REGATTA_TLS_KEY", "the key of the certificate (PEM)"},
    {&CredentialFiles::ca, "--tls_ca", "tls_ca", "REGATTA_TLS_CA", "the authority that signed everybody's certificate"},
    {&CredentialFiles::admin_token, "--admin_token_file", "admin_token_file", "REGATTA_ADMIN_TOKEN_FILE",
     "the token of those who may read and replace whole tables: servers and worker 0"},
};

// What was read from them.
struct Credentials {
  CredentialFiles files;    // for messages
  std::string token;        // every worker's
  std::string admin_token;  // "" = there is one role: the token is the admin's too
  std::string cert;         // PEM
  std::string key;          // PEM
  std::string ca;           // PEM

  // What this process says when it calls.
  const std::string& own_token() const { return admin_token.empty() ? token : admin_token; }
};

// A flag each.
void AddCredentialOptions(CLI::App& app, CredentialFiles& files);

// `said` where it says something, else the variable.
CredentialFiles ReadCredentialFiles(const std::function<std::optional<std::string>(const std::string&)>& getenv,
                                    const CredentialFiles& said);

// The files' contents; null where none is named. Errors name the file and what to do, never a secret: one that is
// missing, or that others can read, a token that is short. Whether certificate and key fit is asked by
// wire/certificate.h.
absl::StatusOr<std::shared_ptr<const Credentials>> LoadCredentials(const CredentialFiles& files,
                                                                   CoreDumps dumps = CoreDumps::kForbid);

// `files` as flags, "--token_file=/abs/token", and as variables of a child process; relative paths are made absolute.
std::vector<std::string> CredentialFlags(const CredentialFiles& files);
std::vector<std::pair<std::string, std::string>> CredentialVariables(const CredentialFiles& files);

}  // namespace regatta::cluster
