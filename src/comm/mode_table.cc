#include "comm/mode_table.h"

#include <glog/logging.h>

#include <cstddef>
#include <iterator>

#include "comm/async.h"
#include "comm/geo.h"
#include "comm/half_async.h"
#include "comm/sync.h"

namespace regatta::comm {
namespace {

using Made = absl::StatusOr<std::unique_ptr<Communicator>>;

Made MakeAsync(client::PsClient& client, const CommunicatorOptions& options) {
  return std::make_unique<Async>(client, options.threads, options.staleness, options.resumed);
}

Made MakeSync(client::PsClient& client, const CommunicatorOptions& options) {
  return std::make_unique<Sync>(client, options.agree, options.threads, options.first_step, options.resumed);
}

Made MakeHalfAsync(client::PsClient& client, const CommunicatorOptions& options) {
  return std::make_unique<HalfAsync>(client, options.threads, options.half_async_merge, options.staleness,
                                     options.resumed);
}

Made MakeGeo(client::PsClient& client, const CommunicatorOptions& options) {
  if (options.resumed.has_value())
    LOG(WARNING) << "this worker goes on in geo with the servers' values: what its predecessor had not exchanged is "
                 << "lost, and the state of its rules begins anew";
  return Geo::Create(client, options.tables,
                     {.threads = options.threads,
                      .workers = options.workers,
                      .interval = options.geo_interval,
                      .combine = options.geo_combine,
                      .nan_policy = options.nan_policy});
}

struct ModeMaker {
  base::Mode mode;
  Made (*make)(client::PsClient& client, const CommunicatorOptions& options);
};

constexpr ModeMaker kMakers[] = {
    {base::Mode::kAsync, &MakeAsync},
    {base::Mode::kSync, &MakeSync},
    {base::Mode::kHalfAsync, &MakeHalfAsync},
    {base::Mode::kGeo, &MakeGeo},
};

constexpr bool MakersMatchModes() {
  if (std::size(kMakers) != std::size(base::kModes)) return false;
  for (size_t i = 0; i < std::size(kMakers); ++i)
    if (kMakers[i].mode != base::kModes[i].mode) return false;
  return true;
}
static_assert(MakersMatchModes(), "kMakers has a row for every row of base::kModes, in the same order");

}  // namespace

Made MakeCommunicator(base::Mode mode, client::PsClient& client, const CommunicatorOptions& options) {
  return kMakers[static_cast<size_t>(mode)].make(client, options);
}

}  // namespace regatta::comm
