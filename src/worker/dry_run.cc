#include "worker/dry_run.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "worker/batch_text.h"

namespace regatta::worker {

absl::Status DryRun(Job& job) {
  std::string text = absl::StrCat("# configuration\n", settings::ConfigText(job.config), "\n# tables\n");
  for (const table::SparseTable* table : job.embedded().sparse())
    absl::StrAppendFormat(&text, "%s: dim %d, rule %s, %d floats a row, about %d bytes a row with its index\n",
                          table->config().name, table->config().dim, table->config().rule.name, table->row_width(),
                          fleet::EstimateRowBytes(*table));
  const table::DenseTable& dense = *job.embedded().dense();
  for (const table::DenseParameterConfig& parameter : dense.config().parameters)
    absl::StrAppendFormat(&text, "dense %s: [%s]\n", parameter.name, absl::StrJoin(parameter.shape, ", "));
  absl::StrAppendFormat(&text, "dense: %d parameters, rule %s\n", dense.size(), dense.config().rule.name);

  ASSIGN_OR_RETURN(const JobData data, OpenData(job, DataUse::kTrain));
  RETURN_IF_ERROR(data.dataset->BeginPass({}));
  auto batch = data.dataset->Next();
  absl::Status read = batch.status();
  if (read.ok() && *batch != nullptr) {
    absl::StrAppendFormat(&text,
                          "\n# first batch of %d files: %d samples, %d ids, %d dense features; its first lines\n",
                          data.files.size(), (*batch)->size, (*batch)->keys.size(), (*batch)->dense_dim);
    text += BatchText(**batch, data.schema, 2);
  }
  std::fputs(text.c_str(), stdout);
  absl::Status ended = data.dataset->EndPass();
  RETURN_IF_ERROR(read);
  return *batch == nullptr ? ended : absl::OkStatus();
}

}  // namespace regatta::worker
