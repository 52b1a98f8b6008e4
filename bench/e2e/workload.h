// The workloads of the end-to-end benchmarks: text files made on the spot, and the job that the runner would build of
// a YAML, run pass by pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/cores.h"
#include "cluster/cluster_spec.h"

namespace regatta::bench {

// How the ids of a slot are drawn.
enum class Ids { kUniform, kLogUniform };
// Whether all slots draw from one set of ids, or each from a set of its own.
enum class Sets { kShared, kOfEachSlot };
// Whether a job streams the text pass by pass or parses it once, before the first.
enum class Reading { kStream, kInMemory };

struct Shape {
  int samples = 100'000;
  int slots = 26;
  int ids_a_slot = 1;
  int dense = 13;
  uint64_t vocabulary = 1'000'000;  // distinct ids over all slots
  Ids ids = Ids::kUniform;
  Sets sets = Sets::kShared;
};

// CTR-DNN's data: one log-uniform id a slot of half a million.
Shape CtrDnnShape(int samples);
// MULTIHOT's: 20 log-uniform ids a slot, each slot with its share of `rows`.
Shape MultihotShape(int samples, uint64_t rows);

// A folder of its own, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Slot text with labels that depend on the ids a little.
void WriteSlotText(const std::string& path, const Shape& shape, uint64_t seed);

// The same samples for readers that have no parser: the counts samples, slots, ids a slot, dense, vocabulary as int64;
// then labels and dense features as float32, and ids counted from 0 within their slot's set (or the shared one) as
// int64; all sample-major, in this machine's byte order.
void WriteBinary(const std::string& path, const Shape& shape, uint64_t seed);

// CTR-DNN (26 slots, dim 10, 400-400-400, batch 1000, Adam 1e-4) over `data`.
std::string CtrDnnYaml(const std::string& data, int threads, Reading reading = Reading::kStream);
// The same job with servers.
std::string InMode(const std::string& mode, std::string yaml);
// The same job with runner.ack.
std::string WithAck(const std::string& ack, std::string yaml);
// A worker of a job with one server.
cluster::ClusterSpec WorkerOf(const std::string& endpoint, int worker, int workers);
// MULTIHOT (26 slots × 20 ids, dim 16, 128-64, batch 1000, shared adagrad) over `data`, in memory.
std::string MultihotYaml(const std::string& data, int threads);

// A job and a trainer on it; what they are made of is workload.cc's, and so is the reading of libtorch's headers.
class Workload {
 public:
  // CHECKs: the benchmark's own files are never wrong. With a worker's place it joins the servers there.
  Workload(const std::string& folder, const std::string& yaml, int threads, const cluster::ClusterSpec& place = {});
  ~Workload();

  // Fills every table with the rows of ids [0, rows).
  void Fill(uint64_t rows);
  // Trains one pass; samples a second.
  double Pass();
  // From now on TrainFor(…, kTaken) takes a checkpoint of the job every `seconds`, into `folder`. The only worker.
  void TakeCheckpoints(const std::string& folder, double seconds);
  enum class Checkpoints { kTaken, kNone };
  // Trains pass after pass for so long; samples a second.
  double TrainFor(double seconds, Checkpoints checkpoints);
  int checkpoints() const { return checkpoints_; }  // begun so far
  // Saves the model as it is, for servers to start from.
  void SaveTo(const std::string& folder);
  uint64_t samples_a_pass() const { return samples_a_pass_; }  // of the last one
  uint64_t rows() const;
  uint64_t wire_bytes() const;  // both ways, so far

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  int checkpoints_ = 0;
  uint64_t pass_ = 0;
  uint64_t samples_a_pass_ = 0;
};

// The matrix products of a network alone: three a layer, the first layer's input gradient included, into tensors that
// are there already. `layers` is the widths from input to output.
class Gemms {
 public:
  Gemms(int64_t batch, const std::vector<int64_t>& layers);
  // Samples a second over `batches`, by `threads` threads at once.
  double Run(int batches, int threads);

 private:
  int64_t batch_;
  std::vector<int64_t> layers_;
};

// How much a benchmark measures: --quick is smaller data and fewer rounds.
enum class Extent { kFull, kQuick };

// The main of a benchmark: the CPU's kernels and the library's defaults as a training process sets them, then `body`,
// which returns whether every bar was reached. The exit status.
int RunBench(int argc, char** argv, bool (*body)(Extent));

}  // namespace regatta::bench
