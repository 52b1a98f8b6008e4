// The data plane of a worker's connection: a PsClient over gRPC. It splits every request by lane, sends the parts, and
// puts the replies where they belong.
// Thread-safety: as PsClient.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client_options.h"
#include "client/job_control.h"
#include "client/job_layout.h"
#include "client/lane.h"
#include "client/ps_client.h"

namespace regatta::client {

class GrpcClient final : public PsClient {
 public:
  // Opens the lanes of a worker that has joined; a server that goes away meanwhile is waited for. Borrows `control`,
  // whose heartbeat looks after lanes that get no answer.
  static absl::StatusOr<std::unique_ptr<GrpcClient>> Open(const ClientOptions& options, const JobLayout& layout,
                                                          JobControl& control);
  ~GrpcClient() override;

  int sparse_tables() const override { return static_cast<int>(layout_.pull_widths.size()); }
  int pull_width(int table) const override { return layout_.pull_widths[static_cast<size_t>(table)]; }
  int push_width(int table) const override { return layout_.push_widths[static_cast<size_t>(table)]; }
  int64_t dense_size() const override { return layout_.dense_size; }
  void Pull(const StepTag& tag, std::span<const base::TableKeys> keys, std::span<const base::RowsView<float>> out,
            Call& call) override;
  void PullDense(const StepTag& tag, std::span<float> out, Call& call) override;
  void Push(const base::StepGrads& grads, Call& call) override;
  void PushDense(const base::StepGrads& grads, Call& call) override;
  void Add(std::span<const base::TableGrads> differences, Call& call) override;
  void AddDense(std::span<const float> differences, Call& call) override;
  void Combine(const Rounds& rounds, std::span<const base::TableGrads> differences, Call& call) override;
  void CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) override;
  void BeginPass(const StepTag& tag, const base::DataPosition& learnt, Call& call) override;
  void LeavePass(const StepTag& tag, Call& call) override;

  // Drops every row of every server, while nobody trains.
  void Clear(Call& call);

  const wire::LaneMap& lanes() const { return layout_.lanes; }
  Lane& lane(int server, int index) { return *lanes_[static_cast<size_t>(server)][static_cast<size_t>(index)]; }
  const table::ModelConfig& tables() const { return tables_; }
  int servers() const { return layout_.lanes.servers; }
  const LaneTraffic& traffic(int server) const { return *traffic_[static_cast<size_t>(server)]; }

 private:
  GrpcClient(const ClientOptions& options, const JobLayout& layout, JobControl& control);
  absl::Status OpenLanes(const ClientOptions& options);
  // What is inferred is what was learnt, to the bit.
  ps::Precision PrecisionOf(base::StepKind kind) const {
    return kind == base::StepKind::kTrain ? precision_ : ps::FLOAT32;
  }
  template <typename Fn>
  void ForEachLane(const Fn& fn);
  ps::FrameHeader HeaderOf(ps::Verb verb, const base::StepGrads& grads) const;
  void SendMark(const ps::FrameHeader& mark, Call& call);
  void SendSections(ps::FrameHeader header, std::span<const base::TableGrads> tables, Call& call);
  void SendBlocks(ps::FrameHeader header, std::span<const base::DenseGrad> pieces, std::optional<float> rate,
                  Call& call);

  const JobLayout layout_;
  const table::ModelConfig tables_;
  const ps::Precision precision_;  // while training
  JobControl& control_;
  std::vector<std::unique_ptr<LaneTraffic>> traffic_;      // a server each
  std::vector<std::vector<std::unique_ptr<Lane>>> lanes_;  // [server][lane]; constant after Open
};

}  // namespace regatta::client
