// What the answers of all servers to a worker's Connect come to.
// Thread-safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "client/job_layout.h"
#include "client/resume_point.h"
#include "wire/ps.pb.h"

namespace regatta::client {

// FAILED_PRECONDITION if two servers started from different saves: each would have its own part of another model. The
// names are those of the servers.
absl::Status CheckSameSave(std::string_view first_name, const ps::LoadedSave& first, std::string_view other_name,
                           const ps::LoadedSave& other);

// Where the worker's rank resumes: `replies` are those of all servers, in their order. DATA_LOSS or INVALID_ARGUMENT if
// a position cannot be.
absl::StatusOr<ResumePoint> ResumePointOf(std::span<const ps::ConnectReply> replies, const JobLayout& layout);

}  // namespace regatta::client
