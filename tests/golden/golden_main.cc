// Writes a data_dir as a killed server of this version leaves it, with its tables at that moment and after the job has
// gone on: golden FOLDER, or golden FOLDER rates, where pushes bring learning rates. tests/data has what earlier
// versions wrote.
#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "server/log_compactor.h"
#include "server/testing/golden_job.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;

void Save(LogCompactor& compactor) { CHECK(compactor.Save().ok()); }

void Train(GoldenWorkers& workers, LogCompactor& compactor, base::Mode mode) {
  if (mode != base::Mode::kGeo) {
    for (int rank = 0; rank < 2; ++rank) workers.Mark(ps::BEGIN, rank, 0, 0);
  }
  for (uint64_t step = 0; step < 10; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      if (mode == base::Mode::kGeo) {
        workers.Push(rank, 0, step, 1, GoldenWorkers::Whole::kYes, ps::ADD);
        workers.PushDense(rank, 0, step, ps::ADD_DENSE);
      } else if (mode != base::Mode::kSync || step < 9 || rank == 0) {
        workers.Step(rank, 0, step, step % 4 == 3 ? 3 : 1);
      }
    }
    if (step == 2 || step == 5) Save(compactor);
  }
}

void Write(const std::string& folder, base::Mode mode, Rates rates) {
  const std::string live = folder + "/live";
  fs::create_directories(folder);
  const LeaseOptions lease{std::chrono::seconds(1)};
  auto journal = Journal::Open(live, lease).value();
  ps::JournalEntry entry;
  *entry.mutable_job() = GoldenRequest(mode);
  const JobSpec spec = ParseJobSpec(entry.job().job()).value();
  CHECK(journal->Write(entry).ok());
  auto job = HostedJob::Create(spec, TableShare::Create(spec.tables, {0, 1}).value(), journal.get(), {}).value();
  auto compactor = LogCompactor::Start(*job, *journal, {}).value();
  for (int rank = 0; rank < 2; ++rank) CHECK(job->roster().Join(GoldenWorkers::Worker(rank)).ok());
  auto ends = std::make_unique<GoldenWorkers>(*job, 1, rates);  // of the job's lanes: they go before it does
  GoldenWorkers& workers = *ends;
  workers.Load();
  Train(workers, *compactor, mode);
  if (mode == base::Mode::kAsync) workers.Push(0, 0, 10, 2, GoldenWorkers::Whole::kWithoutLast);
  CHECK_EQ(workers.refused(), 0);
  fs::copy(live, folder + "/data_dir", fs::copy_options::recursive);
  std::ofstream(folder + "/at_kill.txt") << GoldenText(*job);
  CHECK_EQ(ContinueGolden(*job, rates), 0);
  std::ofstream(folder + "/continued.txt") << GoldenText(*job);
  compactor.reset();
  ends.reset();
  job.reset();
  journal.reset();
  fs::remove_all(live);
}

}  // namespace
}  // namespace regatta::server

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  const bool rated = argc == 3 && std::string(argv[2]) == "rates";
  if (argc != 2 && !rated) {
    std::fprintf(stderr, "golden: usage: golden FOLDER [rates]\n");
    return 2;
  }
  using regatta::base::Mode;
  const auto rates = rated ? regatta::server::Rates::kOwn : regatta::server::Rates::kNone;
  for (const Mode mode : {Mode::kAsync, Mode::kSync, Mode::kGeo}) {
    if (rated && mode == Mode::kGeo) continue;  // its servers get differences
    regatta::server::Write(std::string(argv[1]) + "/" + regatta::base::Name(mode) + regatta::server::SuffixOf(rates),
                           mode, rates);
  }
  return 0;
}
