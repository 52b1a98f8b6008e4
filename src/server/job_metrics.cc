#include "server/job_metrics.h"

#include <array>
#include <chrono>

#include "absl/strings/ascii.h"
#include "table/table_metrics.h"

namespace regatta::server {
namespace {

double Value(const metrics::Counter& counter) { return static_cast<double>(counter.value()); }

void CollectTables(const HostedJob& job, metrics::Exposition& out) {
  for (int i = 0; i < job.sparse_tables(); ++i) table::CollectTable(job.sparse(i), out);
  table::CollectTable(job.dense(), out);
}

void CollectRequests(const Traffic& traffic, metrics::Exposition& out) {
  out.Counter("regatta_server_bytes_total", "Bytes of lanes.", Value(traffic.bytes_in), {{"direction", "in"}});
  out.Counter("regatta_server_bytes_total", "", Value(traffic.bytes_out), {{"direction", "out"}});
  out.Counter("regatta_server_keys_total", "Keys of sparse requests.", Value(traffic.keys_pulled), {{"verb", "pull"}});
  out.Counter("regatta_server_keys_total", "", Value(traffic.keys_pushed), {{"verb", "push"}});
  out.Counter("regatta_server_refused_total", "Requests that were answered with an error.", Value(traffic.refused));
  for (size_t verb = 0; verb < traffic.latency.size(); ++verb) {
    const metrics::Histogram& seconds = traffic.latency[verb];
    const uint64_t count = seconds.count();
    if (count == 0) continue;
    const metrics::Labels labels = {{"verb", absl::AsciiStrToLower(ps::Verb_Name(static_cast<ps::Verb>(verb)))}};
    out.Counter("regatta_server_requests_total", "Requests of lanes, by verb.", static_cast<double>(count), labels);
    out.Seconds("regatta_server_request_seconds",
                "From a request to its reply. In sync a pull's contains the wait for the steps before it.", seconds,
                labels);
  }
}

void CollectSkew(const HostedJob& job, metrics::Exposition& out) {
  const Traffic& traffic = job.traffic();
  const auto sparse = static_cast<size_t>(job.spec().lanes.sparse_lanes);
  for (size_t lane = 0; lane < sparse; ++lane)
    out.Counter("regatta_server_lane_keys_total", "Keys pulled and pushed, by sparse lane.",
                Value(traffic.lane_keys[lane]), {{"lane", absl::StrCat(lane)}});
  out.Gauge("regatta_server_shard_skew",
            "Keys pulled from the busiest virtual shard over the mean of this server's shards, from every 64th "
            "pull of a lane; 0 before the first.",
            traffic.shards.Skew(job.shards()));
}

void CollectModes(const Traffic& traffic, metrics::Exposition& out) {
  out.Seconds("regatta_server_sync_wait_seconds", "Sync: how long a pull waited for the steps of others.",
              traffic.sync_wait);
  out.Counts("regatta_server_staleness_updates",
             "Async, half_async: updates of a lane between a step's pull and its push, the worker's own included.",
             traffic.staleness);
}

void CollectWorkers(const HostedJob& job, metrics::Exposition& out) {
  std::array<int, static_cast<size_t>(MemberState::kLost) + 1> states{};
  const auto now = std::chrono::steady_clock::now();
  for (const Member& member : job.roster().members()) {
    ++states[static_cast<size_t>(member.state)];
    if (member.state != MemberState::kHere) continue;
    const metrics::Labels labels = {{"worker", absl::StrCat(member.id.rank)}};
    out.Gauge("regatta_server_worker_silence_seconds", "Since the worker's last heartbeat.",
              std::chrono::duration<double>(now - member.heard).count(), labels);
    out.Gauge("regatta_server_worker_epoch", "The worker's epoch.", static_cast<double>(member.progress.epoch()),
              labels);
    out.Gauge("regatta_server_worker_steps", "Batches that the worker has trained on since it began.",
              static_cast<double>(member.progress.steps()), labels);
    out.Gauge("regatta_server_worker_samples", "Samples that the worker has trained on since it began.",
              static_cast<double>(member.progress.samples()), labels);
    out.Gauge("regatta_server_worker_samples_per_second", "The worker's speed lately, by its heartbeat.",
              member.progress.samples_per_second(), labels);
  }
  for (const MemberState state :
       {MemberState::kAwaited, MemberState::kHere, MemberState::kAway, MemberState::kDone, MemberState::kLost})
    out.Gauge("regatta_server_workers", "Workers of the job, by state.", states[static_cast<size_t>(state)],
              {{"state", Name(state)}});
}

}  // namespace

void CollectJob(const HostedJob& job, metrics::Exposition& out) {
  CollectTables(job, out);
  CollectRequests(job.traffic(), out);
  CollectSkew(job, out);
  CollectModes(job.traffic(), out);
  CollectWorkers(job, out);
}

}  // namespace regatta::server
