#include "settings/security.h"

#include "settings/runner_section.h"

namespace regatta::settings {

absl::StatusOr<cluster::Access> ReadSecurity(base::Config& config, const TrainArgs& args) {
  cluster::Access access(cluster::Network::kLoopbackOnly, args.credentials);
  ASSIGN_OR_RETURN(const bool insecure, config.Bool("runner.security.insecure", false));
  if (insecure || args.insecure) access.network = cluster::Network::kTrusted;
  for (const cluster::CredentialName& name : cluster::kCredentialNames) {
    ASSIGN_OR_RETURN(const std::string path, config.String(absl::StrCat("runner.security.", name.key), ""));
    std::string& file = access.files.*name.file;
    if (file.empty()) file = ResolvePath(config.folder(), path);
  }
  return access;
}

}  // namespace regatta::settings
