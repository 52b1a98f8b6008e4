#include "data/generator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/mutex.h"
#include "data/sample_format.h"
#include "data/text_writer.h"

namespace regatta::data {
namespace {

// Test samples are draws of the same truth from a stream of their own.
constexpr uint64_t kTestStream = uint64_t{1} << 48;
constexpr uint64_t kFlushBytes = 1 << 20;

// One of train and test: its samples and where they go.
struct Part {
  std::string name;
  uint64_t first = 0;
  uint64_t samples = 0;
  int files = 1;
  std::vector<float> probabilities;
  std::vector<uint8_t> clicks;

  uint64_t Begin(int file) const { return samples * static_cast<uint64_t>(file) / static_cast<uint64_t>(files); }
};

class Run {
 public:
  Run(const GeneratorOptions& options, const GroundTruth& truth, const SampleFormat& format,
      const std::function<void(uint64_t, uint64_t)>& progress)
      : options_(options), truth_(truth), format_(format), progress_(progress) {
    train_ = {"train", 0, options.samples, options.files, {}, {}};
    test_ = {"test", kTestStream, options.test_samples, options.test_files, {}, {}};
  }

  absl::Status Write();
  Part& train() { return train_; }
  Part& test() { return test_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Job {
    Part* part;
    int file;
  };
  absl::Status Prepare(Part& part);
  absl::Status WriteFile(Part& part, int file);
  void Work();
  void Report(uint64_t samples);

  const GeneratorOptions& options_;
  const GroundTruth& truth_;
  const SampleFormat& format_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  Part train_, test_;
  std::vector<Job> jobs_;
  std::atomic<size_t> next_job_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<bool> failed_{false};
  base::Mutex mu_;
  std::vector<std::string> written_ ABSL_GUARDED_BY(mu_);
  uint64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

absl::Status Run::Prepare(Part& part) {
  if (part.samples == 0) return absl::OkStatus();
  RETURN_IF_ERROR(base::MakeFolders(absl::StrCat(options_.out, "/", part.name)));
  part.probabilities.resize(part.samples);
  part.clicks.resize(part.samples);
  for (int file = 0; file < part.files; ++file) jobs_.push_back({&part, file});
  return absl::OkStatus();
}

absl::Status Run::WriteFile(Part& part, int file) {
  const char* const ending = options_.compression == Compression::kGzip   ? ".gz"
                             : options_.compression == Compression::kZstd ? ".zst"
                                                                          : "";
  const std::string path = absl::StrFormat("%s/%s/part-%05d%s", options_.out, part.name, file, ending);
  ASSIGN_OR_RETURN(auto writer, TextWriter::Create(path, options_.compression));
  TrueSample sample;
  std::string text;
  uint64_t reported = part.Begin(file);
  const uint64_t end = part.Begin(file + 1);
  for (uint64_t i = part.Begin(file); i < end && !failed_; ++i) {
    truth_.Draw(part.first + i, &sample);
    format_.Append(sample, &text);
    part.probabilities[i] = static_cast<float>(sample.probability);
    part.clicks[i] = sample.click;
    if (text.size() < kFlushBytes && i + 1 < end) continue;
    RETURN_IF_ERROR(writer->Write(text));
    bytes_ += text.size();
    text.clear();
    Report(i + 1 - reported);
    reported = i + 1;
  }
  if (failed_) return absl::OkStatus();  // another file did, and this one is not finished
  RETURN_IF_ERROR(writer->Close());
  base::MutexLock lock(mu_);
  written_.push_back(path);
  return absl::OkStatus();
}

void Run::Report(uint64_t samples) {
  base::MutexLock lock(mu_);
  done_ += samples;
  if (progress_) progress_(done_, options_.samples + options_.test_samples);
}

void Run::Work() {
  while (!failed_) {
    const size_t job = next_job_++;
    if (job >= jobs_.size()) return;
    const absl::Status status = WriteFile(*jobs_[job].part, jobs_[job].file);
    if (status.ok()) continue;
    base::MutexLock lock(mu_);
    if (status_.ok()) status_ = status;
    failed_ = true;
  }
}

absl::Status Run::Write() {
  RETURN_IF_ERROR(base::MakeFolders(options_.out));
  RETURN_IF_ERROR(Prepare(train_));
  RETURN_IF_ERROR(Prepare(test_));
  std::vector<std::thread> threads;
  for (int i = 1; i < options_.threads; ++i) threads.emplace_back([this] { Work(); });
  Work();
  for (std::thread& thread : threads) thread.join();
  base::MutexLock lock(mu_);
  // Some of the files are no dataset, and a full disk wants its room back.
  if (!status_.ok())
    for (const std::string& path : written_) base::RemoveTree(path).IgnoreError();
  return status_;
}

Ceiling CeilingOf(const Part& part) {
  Ceiling ceiling;
  ceiling.samples = part.samples;
  double loss = 0;
  for (size_t i = 0; i < part.clicks.size(); ++i) {
    const double p = std::clamp<double>(part.probabilities[i], 1e-12, 1 - 1e-12);
    ceiling.clicks += part.clicks[i];
    loss -= part.clicks[i] ? std::log(p) : std::log1p(-p);
  }
  if (part.samples > 0) ceiling.logloss = loss / static_cast<double>(part.samples);
  ceiling.auc = ExactAuc(part.probabilities, part.clicks);
  return ceiling;
}

nlohmann::json ToJson(const Ceiling& ceiling) {
  nlohmann::json json = {
      {"samples", ceiling.samples}, {"clicks", ceiling.clicks}, {"auc", ceiling.auc}, {"logloss", ceiling.logloss}};
  return json;
}

// The held-out samples' ceiling is the one to compare with, where there are any.
absl::Status WriteCeiling(const GeneratorOptions& options, const GeneratorResult& result) {
  const Ceiling& main = result.test.samples > 0 ? result.test : result.train;
  const TruthOptions& truth = options.truth;
  nlohmann::json json = ToJson(main);
  json["train"] = ToJson(result.train);
  if (result.test.samples > 0) json["test"] = ToJson(result.test);
  json["seed"] = truth.seed;
  json["format"] = options.format;
  json["settings"] = {{"slots", truth.slots},
                      {"dense", truth.dense},
                      {"ids", truth.ids},
                      {"ids_per_slot", truth.ids_per_slot},
                      {"zipf", truth.zipf},
                      {"missing", truth.missing},
                      {"click_rate", truth.click_rate},
                      {"signal", truth.signal},
                      {"dense_share", truth.dense_share},
                      {"cross_share", truth.cross_share},
                      {"files", options.files}};
  return base::WriteFileAtomically(options.out + "/ceiling.json", json.dump(2) + "\n");
}

}  // namespace

double ExactAuc(const std::vector<float>& probabilities, const std::vector<uint8_t>& clicks) {
  std::vector<uint64_t> order(probabilities.size());
  // Probabilities are not negative, so their bits order as they do; the click rides in the low word.
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = uint64_t{std::bit_cast<uint32_t>(probabilities[i])} << 32 | clicks[i];
  std::sort(order.begin(), order.end());
  double ordered = 0;
  uint64_t positives = 0, negatives = 0;
  for (size_t i = 0; i < order.size();) {
    uint64_t tied[2] = {0, 0};
    const uint64_t value = order[i] >> 32;
    for (; i < order.size() && order[i] >> 32 == value; ++i) ++tied[order[i] & 1];
    ordered += static_cast<double>(tied[1]) * (static_cast<double>(negatives) + 0.5 * static_cast<double>(tied[0]));
    positives += tied[1];
    negatives += tied[0];
  }
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return ordered / static_cast<double>(positives) / static_cast<double>(negatives);
}

absl::StatusOr<GeneratorResult> Generate(const GeneratorOptions& options,
                                         const std::function<void(uint64_t, uint64_t)>& progress) {
  if (options.out.empty()) return absl::InvalidArgumentError("--out names no folder");
  if (options.files < 1 || options.test_files < 1 || options.files > 100'000 || options.test_files > 100'000)
    return absl::InvalidArgumentError("--files and --test-files must be 1 to 100000");
  if (options.threads < 1 || options.threads > 1024) return absl::InvalidArgumentError("--threads must be 1 to 1024");
  if (options.samples >= kTestStream) return absl::InvalidArgumentError("--samples is too large");
  ASSIGN_OR_RETURN(const GroundTruth truth, GroundTruth::Make(options.truth));
  ASSIGN_OR_RETURN(const SampleFormat format, SampleFormat::Make(options.format, truth, options.truth));
  Run run(options, truth, format, progress);
  RETURN_IF_ERROR(run.Write());
  GeneratorResult result;
  result.train = CeilingOf(run.train());
  result.test = CeilingOf(run.test());
  result.bytes = run.bytes();
  RETURN_IF_ERROR(WriteCeiling(options, result));
  return result;
}

}  // namespace regatta::data
