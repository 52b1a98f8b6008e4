#include "client/connect_replies.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "wire/lane_progress.h"

namespace regatta::client {
namespace {

std::string DescribeSave(const ps::LoadedSave& save) {
  if (save.identity() == 0) return "no save";
  return absl::StrFormat("a save of epoch %d, step %d (%016x)", save.epochs(), save.steps(), save.identity());
}

}  // namespace

absl::Status CheckSameSave(std::string_view first_name, const ps::LoadedSave& first, std::string_view other_name,
                           const ps::LoadedSave& other) {
  if (first.identity() == other.identity()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(base::View(first_name), " started from ", DescribeSave(first), ", ",
                                                    base::View(other_name), " from ", DescribeSave(other),
                                                    "; start all servers from copies of one save, or from none"));
}

// Lanes that have nothing of the last pass yet have none of its batches. Without dense parameters the dense lanes get
// steps only if the mode makes steps together.
absl::StatusOr<ResumePoint> ResumePointOf(std::span<const ps::ConnectReply> replies, const JobLayout& layout) {
  ResumePoint point;
  uint64_t pass = 0;
  for (const ps::ConnectReply& reply : replies)
    for (const ps::LaneProgress& lane : reply.lanes()) pass = std::max(pass, lane.pass());
  std::optional<base::DataPosition> common;
  std::optional<uint64_t> step;
  for (const ps::ConnectReply& reply : replies) {
    if (point.predecessor.empty()) point.predecessor = base::Printable(reply.before());
    for (int i = 0; i < reply.lanes_size(); ++i) {
      const ps::LaneProgress& lane = reply.lanes(i);
      base::DataPosition position{pass, 0, 0};
      if (lane.pass() == pass) {
        ASSIGN_OR_RETURN(position, wire::FromWire(lane));
      }
      if (i == layout.lanes.dense_lane()) point.dense.push_back(position);
      if (i == layout.lanes.dense_lane() && layout.dense_size == 0 && !layout.steps_together) continue;
      common = common.has_value() ? common->Common(position) : position;
      step = std::min(step.value_or(lane.next_step()), lane.next_step());
    }
    for (const ps::Meeting& met : reply.met()) point.completed.emplace(met.name(), met.round());
  }
  point.position = common.value_or(base::DataPosition{});
  point.step = step.value_or(0);
  return point;
}

}  // namespace regatta::client
