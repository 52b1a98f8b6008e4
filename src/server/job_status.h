// A job as the Status verb tells it.
// Thread-safety: a pure function of what is counted.
#pragma once

#include "server/hosted_job.h"
#include "wire/ps.pb.h"

namespace regatta::server {

void FillStatus(const HostedJob& job, ps::StatusReply& reply);

}  // namespace regatta::server
