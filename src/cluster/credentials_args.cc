#include "cluster/credentials_args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "absl/strings/str_split.h"
#include "base/command_line.h"
#include "cluster/endpoint.h"

namespace regatta::cluster {
namespace {

constexpr int kMaxDays = 3650;

constexpr char kCredentialsFooter[] =
    "Servers and workers on several machines prove themselves to each other: TLS with a certificate on both sides,\n"
    "and a token with every call. DIR gets all of it, and is the same on every machine:\n"
    "  ca.crt  tls.crt      the authority and the certificate: no secrets\n"
    "  tls.key token        secrets of every server and worker\n"
    "  admin_token          secret of the servers and of worker 0, which saves and loads whole tables\n"
    "  ca.key               signs certificates; no process needs it: keep it elsewhere, or delete it\n"
    "Examples:\n"
    "  regatta credentials init ~/.regatta/job1 --host 10.0.0.1 --host 10.0.0.2\n"
    "  regatta credentials init creds --host '*.job1.default.svc' --days 30\n"
    "Name every host of the servers' list (PADDLE_PSERVERS_IP_PORT_LIST) as it stands there; localhost, 127.0.0.1 and\n"
    "::1 are always in. Then copy DIR to the machines (scp -p) and set there what this command prints:\n"
    "  export REGATTA_TOKEN_FILE=DIR/token REGATTA_TLS_CERT=DIR/tls.crt REGATTA_TLS_KEY=DIR/tls.key "
    "REGATTA_TLS_CA=DIR/ca.crt\n"
    "or --token_file, --tls_cert, --tls_key, --tls_ca, or runner.security.* in the YAML. docs/security.md tells more.\n"
    "Exit codes: 0 made; 1 it cannot be written; 2 wrong usage, or DIR is there already.";

// "*.name" too: a certificate may be good for all names of a level.
absl::StatusOr<std::string> ParseCertificateHost(const std::string& text) {
  if (!text.starts_with("*.")) return ParseHost(text);
  ASSIGN_OR_RETURN(const std::string rest, ParseHost(text.substr(2)));
  if (rest.find_first_not_of("0123456789.:") == std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a name"));
  return absl::StrCat("*.", rest);
}

absl::Status TakeHosts(const std::vector<std::string>& words, std::vector<std::string>& hosts) {
  hosts = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& word : words) {
    for (const absl::string_view part : absl::StrSplit(word, ',')) {
      absl::StatusOr<std::string> host = ParseCertificateHost(std::string(part));
      if (!host.ok()) return base::Annotate(host.status(), "regatta credentials init: --host");
      if (IsWildcard(*host))
        return absl::InvalidArgumentError(absl::StrCat("regatta credentials init: --host: ", *host,
                                                       " is an address to listen on; name what workers connect to"));
      if (std::find(hosts.begin(), hosts.end(), *host) == hosts.end()) hosts.push_back(*std::move(host));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CredentialsArgs> ParseCredentialsArgs(int argc, const char* const* argv) {
  CredentialsArgs args;
  std::vector<std::string> hosts;
  CLI::App app{"Make what proves the processes of a cluster to each other: certificate, keys and tokens.",
               "regatta credentials init"};
  app.footer(kCredentialsFooter);
  app.allow_extras();
  app.add_option("DIR", args.folder, "the folder to make")->type_name("");
  app.add_option("--host", hosts, "a server's address or name; may be repeated")
      ->type_name("NAME_OR_IP")
      ->expected(1)
      ->take_all();
  app.add_option("--days", args.days, "how long the certificates are good")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str()
      ->type_name("N");
  app.add_flag("--overwrite", args.overwrite, "replace the credentials that DIR holds");
  const std::string_view verb = argc > 1 ? argv[1] : "--help";
  if (verb == "--help" || verb == "-h") {
    args.help = app.help();
    return args;
  }
  if (verb != "init")
    return absl::InvalidArgumentError(
        absl::StrCat("regatta credentials: unknown word '", base::View(verb), "'; want: regatta credentials init DIR"));
  ASSIGN_OR_RETURN(args.help, base::ParseWords(app, argc - 1, argv + 1));
  if (!args.help.empty()) return args;
  RETURN_IF_ERROR(base::CheckNothingRemains(app));
  if (args.folder.empty())
    return absl::InvalidArgumentError("regatta credentials init: which folder? regatta credentials init DIR");
  RETURN_IF_ERROR(TakeHosts(hosts, args.hosts));
  return args;
}

}  // namespace regatta::cluster
