// The executor against libtorch: a training step of fit_a_line (13 → 1, batch 20, SGD), and the same step written by
// hand with libtorch's operators and autograd. --quick measures fewer rounds.
#include <cstdlib>
#include <string_view>

#include "bench/measure.h"
#include "exec/executor.h"
#include "program/layers/dense.h"
#include "program/optimizers/optimizer.h"

namespace regatta {
namespace {

using exec::Value;
using program::Variable;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "exec_bench: %s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

class FitALine {
 public:
  FitALine() {
    startup_.set_random_seed(1);
    Variable* x = OrDie(program::layers::Data(builder_, "x", {.shape = {13}}));
    Variable* y = OrDie(program::layers::Data(builder_, "y", {.shape = {1}}));
    Variable* predicted = OrDie(program::layers::Fc(builder_, {x}, {.size = 1}));
    Variable* costs = OrDie(program::layers::SquareErrorCost(builder_, predicted, y));
    cost_ = OrDie(program::layers::Mean(builder_, costs))->name;
    program::Optimizer sgd = OrDie(program::Optimizer::Make({.type = "SGD", .learning_rate = 1e-6}));
    OrDie(sgd.Minimize(builder_, main_.global_block().Find(cost_)));
    OrDie(exec::RunProgram(startup_, scope_, {}, {}));
  }

  exec::Executor Prepare() { return exec::Executor(OrDie(exec::PreparedProgram::Make(main_, {"x", "y"}, {cost_}))); }
  exec::Scope& scope() { return scope_; }

 private:
  program::Program main_, startup_;
  program::NameGenerator names_;
  program::ProgramBuilder builder_{main_, startup_, names_};
  std::string cost_;
  exec::Scope scope_;
};

// The same step in libtorch.
class ByHand {
 public:
  float Step(const torch::Tensor& x, const torch::Tensor& y) {
    const torch::Tensor error = at::add(at::mm(x, w_), b_) - y;
    const torch::Tensor cost = at::mean(error * error).reshape({1});
    cost.backward();
    {
      const torch::NoGradGuard no_record;
      for (torch::Tensor* parameter : {&w_, &b_}) {
        parameter->add_(parameter->grad(), -1e-6);
        parameter->mutable_grad() = torch::Tensor();
      }
    }
    return *cost.data_ptr<float>();
  }

 private:
  torch::Tensor w_ = at::rand({13, 1}).set_requires_grad(true);
  torch::Tensor b_ = at::zeros({1}).set_requires_grad(true);
};

int Main(bool quick) {
  at::set_num_threads(1);
  const int steps = quick ? 2000 : 10000;
  FitALine line;
  exec::Executor executor = line.Prepare();
  ByHand by_hand;
  const torch::Tensor x = at::rand({20, 13}), y = at::rand({20, 1});
  const std::vector<Value> feeds = {Value(x), Value(y)};
  float sum = 0;
  const auto run = [&] {
    for (int i = 0; i < steps; ++i)
      sum += *OrDie(executor.Run(line.scope(), feeds))[0].dense()->tensor.data_ptr<float>();
  };
  const auto by_hand_run = [&] {
    for (int i = 0; i < steps; ++i) sum += by_hand.Step(x, y);
  };
  const bench::Row row = bench::Compare(
      "fit_a_line step", "steps/s", 0.8, quick ? 5 : 11, [&] { return steps / bench::Seconds(run); },
      [&] { return steps / bench::Seconds(by_hand_run); });
  std::printf("# %.1f us a step; by hand %.1f us (%g)\n", 1e6 / row.thing, 1e6 / row.bound, sum > 0 ? 1.0 : 0.0);
  return bench::Print(row) ? 0 : 1;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) { return regatta::Main(argc > 1 && std::string_view(argv[1]) == "--quick"); }
