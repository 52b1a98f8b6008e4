// The workers of a job with servers: rounds go over the first server, which remembers them.
// Thread-safety: as run::Team.
#pragma once

#include "fleet/worker_node.h"
#include "run/team.h"

namespace regatta::fleet {

class ServerTeam : public run::Team {
 public:
  explicit ServerTeam(WorkerNode& worker) : worker_(worker) {}

  int rank() const override { return worker_.rank(); }
  int size() const override { return worker_.workers(); }
  absl::StatusOr<Payloads> AllGather(const run::RoundId& round, const absl::StatusOr<std::string>& payload) override;
  bool Completed(const run::RoundId& round) const override;
  const client::ResumePoint* resume_point() const override;
  void AskToStop() override { worker_.AskToStop(); }
  bool stop_asked() const override { return worker_.stop_asked(); }

 private:
  WorkerNode& worker_;
};

}  // namespace regatta::fleet
