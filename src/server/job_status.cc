#include "server/job_status.h"

#include <chrono>

namespace regatta::server {
namespace {

void FillTables(const HostedJob& job, ps::StatusReply& reply) {
  for (int i = 0; i < job.sparse_tables(); ++i) {
    ps::TableStatus* table = reply.add_tables();
    table->set_name(job.sparse(i).config().name);
    table->set_rows(job.sparse(i).rows());
    table->set_memory_bytes(job.sparse(i).memory_bytes());
  }
  reply.set_dense_parameters(static_cast<uint64_t>(job.dense().size()));
}

void FillWorkers(const HostedJob& job, ps::StatusReply& reply) {
  const auto now = std::chrono::steady_clock::now();
  for (const Member& member : job.roster().members()) {
    ps::WorkerStatus* worker = reply.add_members();
    worker->set_rank(static_cast<uint32_t>(member.id.rank));
    worker->set_state(Name(member.state));
    worker->set_where(member.id.where);
    if (member.state == MemberState::kHere)
      worker->set_silence(std::chrono::duration<double>(now - member.heard).count());
    *worker->mutable_progress() = member.progress;
  }
}

void FillTraffic(const HostedJob& job, ps::StatusReply& reply) {
  const Traffic& traffic = job.traffic();
  reply.set_pulls(traffic.pulls.value());
  reply.set_pushes(traffic.pushes.value());
  reply.set_dense_pulls(traffic.dense_pulls.value());
  reply.set_dense_pushes(traffic.dense_pushes.value());
  reply.set_keys_pulled(traffic.keys_pulled.value());
  reply.set_keys_pushed(traffic.keys_pushed.value());
  reply.set_bytes_in(traffic.bytes_in.value());
  reply.set_bytes_out(traffic.bytes_out.value());
  reply.set_refused(traffic.refused.value());
  reply.set_keys_per_second(job.keys_per_second());
  reply.set_staleness(traffic.staleness.mean());
  reply.set_staleness_max(traffic.staleness.max());
  reply.set_sync_wait(static_cast<double>(traffic.sync_wait.sum()) * 1e-9);
  reply.set_shard_skew(traffic.shards.Skew(job.shards()));
}

}  // namespace

void FillStatus(const HostedJob& job, ps::StatusReply& reply) {
  reply.set_mode(Name(job.spec().mode));
  reply.set_server(static_cast<uint32_t>(job.server()));
  reply.set_servers(static_cast<uint32_t>(job.spec().lanes.servers));
  reply.set_workers(static_cast<uint32_t>(job.spec().workers));
  FillTables(job, reply);
  FillWorkers(job, reply);
  FillTraffic(job, reply);
}

}  // namespace regatta::server
