#include "table/dense_table.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/gradient.h"
#include "base/learning_rate.h"
#include "table/initializer.h"

namespace regatta::table {
namespace {

std::string Named(const DenseTableConfig& config) { return absl::StrCat("table ", config.name); }

// The end of the parameter that begins at `offset`.
absl::StatusOr<int64_t> EndOf(const DenseParameterConfig& parameter, int64_t offset) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  int64_t size = 1;
  for (int64_t d : parameter.shape) {
    if (d < 1 || d > kLimit / size) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", parameter.name, ": a dimension of its shape cannot be ", d));
    }
    size *= d;
  }
  if (size > kLimit - offset) {
    return absl::InvalidArgumentError(absl::StrCat("parameter ", parameter.name, ": the table is too large"));
  }
  return offset + size;
}

absl::StatusOr<std::vector<int64_t>> Offsets(const DenseTableConfig& config) {
  std::vector<int64_t> offsets = {0};
  std::set<std::string> names;
  for (const DenseParameterConfig& parameter : config.parameters) {
    if (parameter.name.empty()) return absl::InvalidArgumentError("a parameter has no name");
    if (!names.insert(parameter.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two parameters are named ", parameter.name));
    }
    ASSIGN_OR_RETURN(const int64_t end, EndOf(parameter, offsets.back()));
    offsets.push_back(end);
  }
  return offsets;
}

absl::StatusOr<std::vector<float>> InitialValues(const DenseTableConfig& config, std::span<const int64_t> offsets) {
  std::vector<float> values(static_cast<size_t>(offsets.back()));
  for (size_t i = 0; i < config.parameters.size(); ++i) {
    const DenseParameterConfig& parameter = config.parameters[i];
    const auto initializer = Initializer::Create(parameter.init, parameter.shape);
    if (!initializer.ok()) return base::Annotate(initializer.status(), absl::StrCat("parameter ", parameter.name));
    initializer->Fill(
        ParameterStream(parameter.name, config.seed),
        std::span(values).subspan(static_cast<size_t>(offsets[i]), static_cast<size_t>(offsets[i + 1] - offsets[i])));
  }
  return values;
}

}  // namespace

absl::StatusOr<int64_t> DenseTable::SizeOf(const DenseTableConfig& config) {
  auto offsets = Offsets(config);
  if (!offsets.ok()) return base::Annotate(offsets.status(), Named(config));
  return offsets->back();
}

absl::StatusOr<std::unique_ptr<DenseTable>> DenseTable::Create(const DenseTableConfig& config) {
  ASSIGN_OR_RETURN(const int64_t size, SizeOf(config));
  return CreateBlock(config, 0, size);
}

absl::StatusOr<std::unique_ptr<DenseTable>> DenseTable::CreateBlock(const DenseTableConfig& config, int64_t begin,
                                                                    int64_t end) {
  auto offsets = Offsets(config);
  if (!offsets.ok()) return base::Annotate(offsets.status(), Named(config));
  auto values = InitialValues(config, *offsets);
  if (!values.ok()) return base::Annotate(values.status(), Named(config));
  if (begin < 0 || end < begin || end > offsets->back()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(config), ": elements ", begin, " to ", end, " are not among ", offsets->back()));
  }
  std::vector<float> block(values->begin() + begin, values->begin() + end);
  auto rule = MakeDenseRule(config.rule);
  if (!rule.ok()) return base::Annotate(rule.status(), Named(config));
  const auto schedule = Schedule::Create(config.schedule);
  if (!schedule.ok()) return base::Annotate(schedule.status(), Named(config));
  return std::unique_ptr<DenseTable>(
      new DenseTable(config, *std::move(rule), *schedule, *std::move(offsets), begin, std::move(block)));
}

DenseTable::DenseTable(const DenseTableConfig& config, std::unique_ptr<DenseRule> rule, const Schedule& schedule,
                       std::vector<int64_t> offsets, int64_t begin, std::vector<float> values)
    : config_(config),
      rule_(std::move(rule)),
      schedule_(schedule),
      offsets_(std::move(offsets)),
      begin_(begin),
      values_(std::move(values)),
      states_(static_cast<size_t>(rule_->state_count()), std::vector<float>(values_.size(), 0.0f)) {}

void DenseTable::Snapshot(std::span<float> out) const {
  base::MutexLock lock(mu_);
  std::copy(values_.begin(), values_.end(), out.begin());
}

DenseCopy DenseTable::Copy() const {
  base::MutexLock lock(mu_);
  return {values_, states_, updates_};
}

absl::Status DenseTable::Push(std::span<const base::DenseGrad> grads, const PushOptions& options,
                              std::optional<float> rate) {
  RETURN_IF_ERROR(base::Annotate(CheckCover(grads), Named(config_) + ": push"));
  if (options.samples == 0) {
    return absl::InvalidArgumentError(Named(config_) + ": push: the gradients are sums over 0 samples");
  }
  RETURN_IF_ERROR(CheckLearningRate(rate));
  bool finite = true;
  for (const base::DenseGrad& grad : grads) {
    if (options.finite || base::AllFinite(grad.values)) continue;
    if (options.nan_policy == NanPolicy::kAbort) return CheckFinite(grad);
    finite = false;
  }
  base::MutexLock lock(mu_);
  if (!finite && options.nan_policy == NanPolicy::kSkip) {
    ++skipped_;
    return absl::OkStatus();
  }
  std::vector<float> clipped(finite ? 0 : values_.size());
  const float learning_rate =
      rate.value_or(static_cast<float>(schedule_.LearningRate(rule_->learning_rate(), options.step)));
  for (const base::DenseGrad& grad : grads) {
    const float* values = grad.values.data();
    if (!clipped.empty()) {
      base::CopyFinite(grad.values, clipped.data() + grad.offset);
      values = clipped.data() + grad.offset;
    }
    std::vector<float*> states;
    for (std::vector<float>& state : states_) states.push_back(state.data() + grad.offset);
    rule_->Apply({values_.data() + grad.offset, states.data(), values, static_cast<int64_t>(grad.values.size()),
                  static_cast<float>(options.samples), learning_rate, updates_});
  }
  ++updates_;
  return absl::OkStatus();
}

absl::Status DenseTable::Add(std::span<const float> differences, NanPolicy nan_policy) {
  if (differences.size() != values_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(config_), ": add: ", differences.size(), " values for ", values_.size(), " elements"));
  }
  const bool finite = base::AllFinite(differences);
  if (!finite && nan_policy == NanPolicy::kAbort) return CheckFinite({0, differences});
  base::MutexLock lock(mu_);
  if (!finite && nan_policy == NanPolicy::kSkip) {
    ++skipped_;
    return absl::OkStatus();
  }
  std::vector<float> clipped(finite ? 0 : differences.size());
  if (!finite) {
    base::CopyFinite(differences, clipped.data());
    differences = clipped;
  }
  for (size_t i = 0; i < differences.size(); ++i) values_[i] += differences[i];
  return absl::OkStatus();
}

uint64_t DenseTable::updates() const {
  base::MutexLock lock(mu_);
  return updates_;
}

uint64_t DenseTable::skipped_gradients() const {
  base::MutexLock lock(mu_);
  return skipped_;
}

absl::Status DenseTable::Load(std::span<const float> values, std::span<const std::vector<float>> states,
                              uint64_t updates) {
  if (values.size() != values_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(config_), ": load: ", values.size(), " values for ", values_.size(), " elements"));
  }
  if (states.size() != states_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(Named(config_), ": load: ", states.size(), " state vectors, rule ",
                                                   config_.rule.name, " has ", states_.size()));
  }
  for (const std::vector<float>& state : states) {
    if (state.size() == values_.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(Named(config_), ": load: a state vector of ", state.size(),
                                                   " values for ", values_.size(), " elements"));
  }
  base::MutexLock lock(mu_);
  std::copy(values.begin(), values.end(), values_.begin());
  for (size_t i = 0; i < states.size(); ++i) states_[i] = states[i];
  updates_ = updates;
  return absl::OkStatus();
}

// Pieces may come in any order.
absl::Status DenseTable::CheckCover(std::span<const base::DenseGrad> grads) const {
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (const base::DenseGrad& grad : grads) {
    if (!grad.values.empty()) pieces.emplace_back(grad.offset, static_cast<int64_t>(grad.values.size()));
  }
  std::sort(pieces.begin(), pieces.end());
  int64_t covered = 0;
  for (const auto& [offset, count] : pieces) {
    if (offset != covered) {
      return absl::InvalidArgumentError(absl::StrCat("a gradient begins at element ", offset, " where ", covered,
                                                     " is due: every element must be covered once"));
    }
    if (count > size() - covered) {
      return absl::InvalidArgumentError(
          absl::StrCat("a gradient of ", count, " elements at ", offset, " ends behind the table's ", size()));
    }
    covered += count;
  }
  if (covered == size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the gradients cover ", covered, " of ", size(), " elements"));
}

absl::Status DenseTable::CheckLearningRate(std::optional<float> rate) const {
  absl::Status checked = base::CheckLearningRate(rate);
  if (checked.ok()) checked = CheckRateOf(config_.rule, rate);
  return checked.ok() ? checked : base::Annotate(checked, Named(config_));
}

absl::Status DenseTable::CheckFinite(const base::DenseGrad& grad) const {
  if (base::AllFinite(grad.values)) return absl::OkStatus();
  const size_t within = base::FirstNonFinite(grad.values);
  const int64_t element = begin_ + grad.offset + static_cast<int64_t>(within);
  const size_t parameter =
      static_cast<size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), element) - offsets_.begin()) - 1;
  return absl::FailedPreconditionError(absl::StrCat(
      Named(config_), ": the gradient of ", config_.parameters[parameter].name, " holds ", grad.values[within],
      " at element ", element - offsets_[parameter], "; nothing was applied (nan_policy abort)"));
}

}  // namespace regatta::table
