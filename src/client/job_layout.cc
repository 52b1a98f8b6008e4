#include "client/job_layout.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/job_policy.h"
#include "base/mode.h"
#include "table/accessor/accessor_factory.h"
#include "table/dense_table.h"

namespace regatta::client {

absl::StatusOr<JobLayout> JobLayout::Of(const ClientOptions& options) {
  const std::optional<base::Mode> mode = base::ModeNamed(options.job.mode());
  if (!mode.has_value())
    return absl::InvalidArgumentError(absl::StrCat("mode: there is no '", options.job.mode(), "'"));
  JobLayout layout;
  layout.steps_together = base::TraitsOf(*mode).steps_together();
  layout.tracks = base::ValueIn(base::kLossPolicies, options.job.on_worker_loss()) == base::LossPolicy::kAwait;
  layout.lanes = {static_cast<int>(options.servers.size()), static_cast<int>(options.job.sparse_lanes())};
  for (const table::SparseTableConfig& config : options.tables.sparse) {
    ASSIGN_OR_RETURN(const auto accessor, table::MakeAccessor(config));
    layout.pull_widths.push_back(accessor->pull_width());
    layout.push_widths.push_back(accessor->push_width());
  }
  ASSIGN_OR_RETURN(layout.dense_size, table::DenseTable::SizeOf(options.tables.dense));
  return layout;
}

}  // namespace regatta::client
