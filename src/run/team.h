// What the workers of a job do together: all-gather rounds, and asking all of them to stop. rounds.h declares the
// rounds of a job and what is made of them. A process without servers is a team of one (alone_team.h); workers with
// servers meet over them (fleet/server_team.h).
// Thread-safety: one thread, but for AskToStop and stop_asked, which are concurrent.
// Invariant: the answer of a round is the same in every worker, and in a process that asks for it again.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "client/resume_point.h"

namespace regatta::run {

// A round is used once: no two rounds of a job have the same name and number.
struct RoundId {
  std::string name;
  uint64_t number = 0;
};

class Team {
 public:
  using Payloads = std::map<int, std::string>;  // by rank

  virtual ~Team() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The first worker keeps the saves and reports for all.
  bool chief() const { return rank() == 0; }

  // Returns everybody's payload when every worker that is still there has come. ABORTED if the first worker has left
  // the job, because nobody would save. If a payload is an error, everybody gets one, the others with the name of its
  // worker; the round is then not over, and may be used again.
  virtual absl::StatusOr<Payloads> AllGather(const RoundId& round, const absl::StatusOr<std::string>& payload) = 0;
  // Whether the round was over before this process came: it replaces another one, which may have known the answer.
  virtual bool Completed(const RoundId& round) const = 0;
  // Where the process was that this one replaces; null if it replaces none.
  virtual const client::ResumePoint* resume_point() const = 0;

  // Asks all other workers to stop at their next step; and whether a worker has asked for it.
  virtual void AskToStop() = 0;
  virtual bool stop_asked() const = 0;
};

}  // namespace regatta::run
