#include "table/accessor/plain_accessor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "table/initializer.h"

namespace regatta::table {
namespace {

constexpr int kMaxDim = 1 << 16;

// memcpy of a few floats without the call: rows are short.
inline void CopyRow(const float* from, int width, float* to) {
  int i = 0;
  for (; i + 8 <= width; i += 8) std::memcpy(to + i, from + i, 8 * sizeof(float));
  for (; i + 2 <= width; i += 2) std::memcpy(to + i, from + i, 2 * sizeof(float));
  if (i < width) to[i] = from[i];
}

class PlainAccessor final : public Accessor {
 public:
  PlainAccessor(const SparseTableConfig& config, const Initializer& initializer, std::unique_ptr<SparseRule> rule)
      : dim_(config.dim),
        row_width_(config.dim + rule->StateSize(config.dim)),
        stream_(TableStream(config.name, config.seed)),
        initializer_(initializer),
        rule_(std::move(rule)) {}

  int pull_width() const override { return dim_; }
  int push_width() const override { return dim_; }
  int row_width() const override { return row_width_; }
  PushColumns columns() const override { return {}; }
  double learning_rate() const override { return rule_->learning_rate(); }

  void Pull(const PullBlock& block) const override {
    switch (dim_) {  // the usual widths copy without a loop
      case 8:
        return PullRows<8>(block);
      case 16:
        return PullRows<16>(block);
      case 32:
        return PullRows<32>(block);
      default:
        return PullRows<0>(block);
    }
  }

  void Push(const PushBlock& block) const override {
    InitCreated(block);
    RowUpdate update = block.update;
    update.dim = dim_;
    rule_->Apply(update);
  }

  void Add(const PushBlock& block) const override {
    InitCreated(block);
    for (int i = 0; i < block.update.count; ++i) {
      float* row = block.update.rows[i];
      if (row == nullptr) continue;
      const float* difference = block.update.grads.row(i);
      for (int j = 0; j < dim_; ++j) row[j] += difference[j];
    }
  }

  void Assign(const PushBlock& block) const override {
    InitCreated(block);
    for (int i = 0; i < block.update.count; ++i)
      if (block.update.rows[i] != nullptr) CopyRow(block.update.grads.row(i), dim_, block.update.rows[i]);
  }

 private:
  // kDim 0: any.
  template <int kDim>
  void PullRows(const PullBlock& block) const {
    for (size_t i = 0; i < block.keys.size(); ++i) {
      float* out = block.out.row(static_cast<int64_t>(i));
      if (block.rows[i] != nullptr) {
        CopyRow(block.rows[i], kDim == 0 ? dim_ : kDim, out);
      } else if (block.kind == base::StepKind::kTrain) {
        InitWeights(block.keys[i], out);
      } else {
        std::fill_n(out, dim_, 0.0f);
      }
    }
  }

  void InitCreated(const PushBlock& block) const {
    for (uint64_t created = block.created; created != 0; created &= created - 1) {
      const int i = __builtin_ctzll(created);
      float* row = block.update.rows[i];
      InitWeights(block.keys[i], row);
      rule_->InitState(dim_, row + dim_);
    }
  }

  void InitWeights(base::Key key, float* out) const {
    initializer_.Fill(RowStream(stream_, key), {out, static_cast<size_t>(dim_)});
  }

  const int dim_;
  const int row_width_;
  const uint64_t stream_;
  const Initializer initializer_;
  const std::unique_ptr<SparseRule> rule_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Accessor>> MakePlainAccessor(const SparseTableConfig& config) {
  if (config.dim < 1 || config.dim > kMaxDim) {
    return absl::InvalidArgumentError(absl::StrCat("dim must be between 1 and ", kMaxDim, ", got ", config.dim));
  }
  ASSIGN_OR_RETURN(const Initializer initializer, Initializer::Create(config.init));
  ASSIGN_OR_RETURN(std::unique_ptr<SparseRule> rule, MakeSparseRule(config.rule));
  return std::unique_ptr<Accessor>(new PlainAccessor(config, initializer, std::move(rule)));
}

}  // namespace regatta::table
