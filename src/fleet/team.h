// What a run does together with the other workers of its job. A process that trains alone is a team of one: everything
// here is then done at once.
// Thread-safety: one thread, but for AskToStop and stop_asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/resume_point.h"

namespace regatta::fleet {

class WorkerNode;

class Team {
 public:
  // Null: alone.
  explicit Team(WorkerNode* worker) : worker_(worker) {}

  bool alone() const { return worker_ == nullptr; }
  // The first worker keeps the saves and reports for all.
  bool chief() const;
  int size() const;

  // Everybody's payload under `name`, by rank. ABORTED where the first worker has left the job: nobody would save.
  // Without a round it is the next of the name. Where a payload is an error everybody gets one, the others with the
  // name of its worker; when the job goes on later, they try the round again.
  absl::StatusOr<std::map<int, std::string>> AllGather(const std::string& name,
                                                       const absl::StatusOr<std::string>& payload,
                                                       std::optional<uint64_t> round = {});
  // The first worker's payload, or its error, which names it.
  absl::StatusOr<std::string> Broadcast(const std::string& name, const absl::StatusOr<std::string>& payload,
                                        std::optional<uint64_t> round = {});
  absl::StatusOr<uint64_t> AllReduceMax(const std::string& name, uint64_t value);
  // Whether anybody says yes.
  absl::StatusOr<bool> Any(const std::string& name, bool yes);
  // OK when everybody is; otherwise the first error, which names its worker.
  absl::Status AllOk(const std::string& name, const absl::Status& mine);

  // Whether the round was over before this process came: it comes in the place of another one.
  bool Completed(const std::string& name, uint64_t round = 0) const;
  // Where that one stood; null unless there was one.
  const client::ResumePoint* resume_point() const;

  void AskToStop();
  bool stop_asked() const;

 private:
  WorkerNode* const worker_;
};

}  // namespace regatta::fleet
