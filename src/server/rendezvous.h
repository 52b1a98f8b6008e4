// Where workers meet: each brings bytes under a name and leaves, when all that are expected have come, with
// everybody's. Barriers and reductions are made of it. A name may be used again after everybody has left.
// Thread-safety: all methods are concurrent.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "server/roster.h"

namespace regatta::server {

class Rendezvous {
 public:
  explicit Rendezvous(Roster& roster);

  using Payloads = std::map<int, std::string>;  // by rank
  // `cancelled` is asked now and then; CANCELLED when it says so. The job's failure ends every wait. DEADLINE_EXCEEDED,
  // naming who is missing, after `timeout` (0 = none).
  absl::StatusOr<std::shared_ptr<const Payloads>> Meet(int rank, const std::string& name, std::string payload,
                                                       std::chrono::duration<double> timeout,
                                                       const std::function<bool()>& cancelled);

 private:
  struct Round {
    Payloads payloads;
    bool complete = false;
  };
  bool CompleteLocked(const Round& round) const;
  std::string MissingLocked(const Round& round) const;
  void Look();

  Roster& roster_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, std::shared_ptr<Round>> rounds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::server
