// What it costs CTR-DNN that a server logs what it acknowledges: jobs that are alike but for runner.ack.
#include "absl/strings/str_cat.h"
#include "bench/e2e/workload.h"
#include "bench/measure.h"
#include "bench/server_process.h"

namespace regatta::bench {
namespace {

// A server, with a data_dir where it needs one, and its worker.
class AckedJob {
 public:
  AckedJob(const std::string& data, const std::string& ack)
      : server_(1,
                ack == "memory" ? std::vector<std::string>{} : std::vector{"--data_dir=" + folder_.path() + "/data"}),
        worker_(folder_.path(), WithAck(ack, InMode("async", CtrDnnYaml(data, 2))), 2,
                WorkerOf(server_.endpoint(), 0, 1)) {
    worker_.Pass();
  }
  double Pass() { return worker_.Pass(); }

 private:
  TemporaryFolder folder_;
  ServerProcess server_;
  Workload worker_;
};

bool Main(Extent extent) {
  const bool quick = extent == Extent::kQuick;
  const int samples = quick ? 60'000 : 200'000, rounds = quick ? 7 : 11;
  TemporaryFolder folder;
  const std::string data = folder.path() + "/train.txt";
  WriteSlotText(data, CtrDnnShape(samples), 1);
  PinTo(2);
  AckedJob memory(data, "memory");
  bool ok = true;
  for (const auto& [ack, bar] : {std::pair{"logged", 0.9}, {"synced", 0.5}}) {
    AckedJob kept(data, ack);
    ok &= Print(Compare(
        absl::StrCat("server + worker of 2 threads (async), pushes ", ack, " / in memory"), "samples/s", bar, rounds,
        [&] { return kept.Pass(); }, [&] { return memory.Pass(); }));
  }
  return ok;
}

}  // namespace
}  // namespace regatta::bench

int main(int argc, char** argv) { return regatta::bench::RunBench(argc, argv, &regatta::bench::Main); }
