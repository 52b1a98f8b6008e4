// A job of one server that lasts in a folder: begun there, or gone on with from its newest checkpoint and the log, as
// PsService does it. For tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/hosted_job.h"
#include "server/journal.h"
#include "server/local_saves.h"

namespace regatta::server {

struct LastingJob {
  std::unique_ptr<Journal> journal;  // outlives the job
  absl::StatusOr<std::unique_ptr<HostedJob>> job = absl::UnknownError("not opened");
};

inline LastingJob OpenLastingJob(const std::string& folder, const JobSpec& spec) {
  LastingJob opened;
  opened.journal = Journal::Open(folder).value();
  std::unique_ptr<TableShare> tables = TableShare::Create(spec.tables, {0, 1}).value();
  ps::ServerState state;
  if (opened.journal->entries().empty()) {
    ps::JournalEntry entry;
    entry.mutable_job()->set_protocol(1);
    EXPECT_TRUE(opened.journal->Write(entry).ok());
  } else if (auto saved = LocalSaves(opened.journal->folder()).LoadNewest(spec.tables, {0, 1});
             saved.ok() && saved->has_value()) {
    tables = std::move((*saved)->tables);
    state = std::move((*saved)->state);
  }
  opened.job = HostedJob::Create(spec, std::move(tables), opened.journal.get(), state);
  return opened;
}

}  // namespace regatta::server
