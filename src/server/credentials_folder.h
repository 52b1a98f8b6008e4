// The folder that `regatta credentials init` makes: an authority, a certificate and key, the two tokens.
// Thread-safety: plain functions; two that make one folder at a time leave one's whole.
#pragma once

#include <string>

#include "base/status.h"
#include "cluster/credentials.h"
#include "cluster/credentials_args.h"

namespace regatta::server {

// Where the processes' parts of it lie.
cluster::CredentialFiles FilesIn(const std::string& folder);

// Afterwards the folder is whole and durable, mode 0700, its secrets 0600; on an error it is as before. ALREADY_EXISTS
// without args.overwrite; a folder that holds anything else is never replaced.
absl::Status MakeCredentials(const cluster::CredentialsArgs& args);

// What to tell the user: what was made, what is secret, the lines to set. No secret is in it.
absl::StatusOr<std::string> DescribeCredentials(const cluster::CredentialsArgs& args);

}  // namespace regatta::server
