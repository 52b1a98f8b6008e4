// A job of one server with small tables (one, unless said otherwise) and its first worker here, for tests and fuzzing
// of what a lane serves.
#pragma once

#include <glog/logging.h>

#include <memory>

#include "server/hosted_job.h"

namespace regatta::server {

inline constexpr int kSmallDim = 3;
inline constexpr int kSmallDense = 5;
inline const Identity kFirstWorker{0, 1, "here"};

inline std::unique_ptr<HostedJob> SmallJob(base::Mode mode = base::Mode::kAsync, int workers = 1, int tables = 1,
                                           int sparse_lanes = 1) {
  JobSpec spec;
  spec.mode = mode;
  spec.workers = workers;
  spec.lanes.sparse_lanes = sparse_lanes;
  table::SparseTableConfig sparse;
  sparse.name = "t";
  sparse.dim = kSmallDim;
  sparse.rule.name = "sgd";
  for (; tables > 0; --tables, sparse.name += "t") spec.tables.sparse.push_back(sparse);
  spec.tables.dense.rule.name = "sgd";
  spec.tables.dense.parameters = {{"w", {kSmallDense}, {}}};
  auto job = HostedJob::Create(spec, 0);
  CHECK(job.ok()) << job.status();
  CHECK((*job)->roster().Join(kFirstWorker).ok());
  return *std::move(job);
}

}  // namespace regatta::server
