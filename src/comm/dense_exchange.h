// The dense parameters of the modes that do not wait: gradients of `merge` steps (of all threads, as a rule) are added
// up and pushed in the background, and every few steps fresh parameters are fetched. While one exchange is under way
// the next gradients are added. Gradients with different learning rates are not added up: a step with another rate
// waits until what came before it is on its way. Thread-safety: all methods are concurrent but Start and Finish, which
// are called while no step is in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/step.h"
#include "client/ps_client.h"
#include "comm/resumed.h"

namespace regatta::comm {

struct DenseExchangeOptions {
  uint64_t merge = 1;   // steps that are pushed as one at least
  uint64_t window = 1;  // an Add waits while so many steps have not been pushed
  uint64_t fetch = 1;   // steps between two fetches
};

class DenseExchange {
 public:
  DenseExchange(client::PsClient& client, const DenseExchangeOptions& options,
                const std::optional<Resumed>& resumed = std::nullopt);
  ~DenseExchange();

  // Fetches the parameters.
  absl::Status Start(base::StepKind kind);
  // The newest parameters, which stay as they are while they are held.
  std::shared_ptr<const std::vector<float>> Latest();
  absl::Status Add(const base::StepGrads& grads);
  // Pushes what is left and waits for it.
  absl::Status Finish();

 private:
  void Run();
  // Of a step that the worker makes again in the place of one that died: which servers have its dense part.
  enum class DenseState : uint8_t { kNone, kSome, kAll };
  DenseState DenseStateOf(const base::StepGrads& grads) const;
  bool MayAddLocked(const base::StepGrads& grads) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Push(const base::StepGrads& meta);
  absl::Status Fetch(const base::StepGrads& meta);

  client::PsClient& client_;
  const DenseExchangeOptions options_;
  const std::optional<Resumed> resumed_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<float> sum_ ABSL_GUARDED_BY(mu_);
  base::StepGrads meta_ ABSL_GUARDED_BY(mu_);           // of what sum_ holds: the last step, all samples
  std::vector<uint64_t> batches_ ABSL_GUARDED_BY(mu_);  // the same: all of them
  uint64_t steps_ ABSL_GUARDED_BY(mu_) = 0;             // in sum_
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool flushing_ ABSL_GUARDED_BY(mu_) = false;  // what is there goes, however little
  bool closed_ ABSL_GUARDED_BY(mu_) = false;    // the same, because the next gradient has another learning rate
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const std::vector<float>> latest_ ABSL_GUARDED_BY(mu_);
  std::vector<float> sending_;             // the thread's
  std::vector<uint64_t> sending_batches_;  // the same
  uint64_t since_fetch_ = 0;               // steps; the thread's
  std::thread thread_;
};

}  // namespace regatta::comm
