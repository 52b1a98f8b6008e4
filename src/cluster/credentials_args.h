// The command line of `regatta credentials`, whose words arrive at regatta-pserver behind --credentials.
// Thread-safety: plain values, a pure function.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::cluster {

inline constexpr char kCredentialsMode[] = "--credentials";

struct CredentialsArgs {
  std::string folder;
  std::vector<std::string> hosts;  // what the certificate is good for; always this machine's loopback
  int days = 365;
  bool overwrite = false;
  std::string help;  // not empty: the user asked for help; print this and end well
};

// argv[0] is skipped; the next word is `init`. An error is the user's (exit 2) and says what to do.
absl::StatusOr<CredentialsArgs> ParseCredentialsArgs(int argc, const char* const* argv);

}  // namespace regatta::cluster
