// TLS certificates by OpenSSL: made for a cluster, and judged before they are used. Keys are elliptic, P-256.
// Thread-safety: pure functions of their arguments, the clock and the kernel's randomness.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/credentials.h"

namespace regatta::wire {

struct KeyedCertificate {
  std::string cert;  // PEM
  std::string key;   // PEM, not encrypted
};

// An authority of a cluster of its own; it signs certificates and nothing else.
absl::StatusOr<KeyedCertificate> MakeAuthority(int days);
// A certificate for servers and workers alike, good for `hosts`: addresses and names, "*.name" allowed.
absl::StatusOr<KeyedCertificate> MakeCertificate(const KeyedCertificate& authority,
                                                 const std::vector<std::string>& hosts, int days);

// That the certificate is in its time and signed by the authority, and the key is its own. Errors name the file and
// what to do.
absl::Status CheckCertificate(const cluster::Credentials& credentials);

// "2027-11-16", of the first certificate of a PEM.
absl::StatusOr<std::string> EndOf(const std::string& cert);

}  // namespace regatta::wire
