// A job as Prometheus reads it: regatta_server_* and regatta_table_*; docs/observing.md lists them.
// Thread-safety: a pure function of what is counted.
#pragma once

#include "metrics/exposition.h"
#include "server/hosted_job.h"

namespace regatta::server {

void CollectJob(const HostedJob& job, metrics::Exposition& out);

}  // namespace regatta::server
