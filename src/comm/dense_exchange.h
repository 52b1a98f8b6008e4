// The dense parameters of the modes that do not wait: gradients of all threads are added up and pushed in the
// background, and every push brings fresh parameters back. While one exchange is under way the next gradients are
// added. Thread-safety: all methods are concurrent but Start and Finish, which are called while no step is in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/step.h"
#include "client/ps_client.h"

namespace regatta::comm {

class DenseExchange {
 public:
  // A Commit waits when `window` steps have not been pushed yet.
  DenseExchange(client::PsClient& client, uint64_t window);
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
  absl::Status Exchange(const base::StepGrads& grads);

  client::PsClient& client_;
  const uint64_t window_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<float> sum_ ABSL_GUARDED_BY(mu_);
  base::StepGrads meta_ ABSL_GUARDED_BY(mu_);  // of what sum_ holds: the last step, all samples
  uint64_t steps_ ABSL_GUARDED_BY(mu_) = 0;    // in sum_
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const std::vector<float>> latest_ ABSL_GUARDED_BY(mu_);
  std::vector<float> sending_;  // the thread's
  std::thread thread_;
};

}  // namespace regatta::comm
