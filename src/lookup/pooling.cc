#include "lookup/pooling.h"

#include <cmath>
#include <cstring>

#include "base/multiversion.h"

namespace regatta::lookup {
namespace {

using base::RowsView;

// Widths that models use most get loops of constant length, which compile to straight vector code; kAny is the rest.
constexpr int kAny = 0;

template <int kWidth>
inline void AddRow(const float* from, int width, float* to) {
  const int n = kWidth == kAny ? width : kWidth;
  for (int j = 0; j < n; ++j) to[j] += from[j];
}

template <int kWidth>
inline void AddScaledRow(const float* from, float scale, int width, float* to) {
  const int n = kWidth == kAny ? width : kWidth;
  for (int j = 0; j < n; ++j) to[j] += scale * from[j];
}

template <int kWidth>
inline void CopyRow(const float* from, int width, float* to) {
  std::memcpy(to, from, sizeof(float) * (kWidth == kAny ? width : kWidth));
}

constexpr uint32_t kAhead = 16;

// bag / slots by a multiplication: exact for all of 32 bits.
class SampleOf {
 public:
  explicit SampleOf(uint32_t slots) : inverse_(slots == 1 ? 0 : ~uint64_t{0} / slots + 1) {}
  uint32_t operator()(uint32_t bag) const {
    return inverse_ == 0 ? bag : static_cast<uint32_t>(static_cast<unsigned __int128>(inverse_) * bag >> 64);
  }

 private:
  uint64_t inverse_;
};

template <int kWidth>
[[gnu::always_inline]] inline void GatherBody(const KeyPlan& plan, Pooling pooling, const RowsView<const float>& rows,
                                              const BagMatrix<float>& out) {
  const int width = rows.width;
  const uint32_t* row_of = plan.row_of.data();
  const uint32_t ids = static_cast<uint32_t>(plan.row_of.size());
  const uint32_t samples = static_cast<uint32_t>((plan.offsets.size() - 1) / out.slots);
  uint32_t bag = 0;
  for (uint32_t sample = 0; sample < samples; ++sample) {
    float* to = out.data + sample * out.stride;
    for (int slot = 0; slot < out.slots; ++slot, ++bag, to += width) {
      const uint32_t begin = plan.offsets[bag], end = plan.offsets[bag + 1];
      for (uint32_t p = begin; p < end; ++p)
        if (p + kAhead < ids) __builtin_prefetch(rows.row(row_of[p + kAhead]));
      if (begin == end) {
        std::memset(to, 0, sizeof(float) * width);
        continue;
      }
      if (plan.values.empty()) {
        CopyRow<kWidth>(rows.row(row_of[begin]), width, to);
        for (uint32_t p = begin + 1; p < end; ++p) AddRow<kWidth>(rows.row(row_of[p]), width, to);
      } else {
        std::memset(to, 0, sizeof(float) * width);
        for (uint32_t p = begin; p < end; ++p) AddScaledRow<kWidth>(rows.row(row_of[p]), plan.values[p], width, to);
      }
      if (pooling != Pooling::kSum && end - begin > 1) {
        const auto n = static_cast<float>(end - begin);
        const float scale = 1.0f / (pooling == Pooling::kMean ? n : std::sqrt(n));
        for (int j = 0; j < width; ++j) to[j] *= scale;
      }
    }
  }
}

template <int kWidth>
[[gnu::always_inline]] inline void MergeBody(const KeyPlan& plan, Pooling pooling, const BagMatrix<const float>& bags,
                                             const RowsView<float>& out) {
  const int width = out.width;
  const bool weighted = !plan.occurrence_value.empty();
  const SampleOf sample_of(static_cast<uint32_t>(bags.slots));
  const int64_t beside = bags.stride - int64_t{bags.slots} * width;  // of a sample's row, behind its bags
  const uint32_t* occurrence = plan.occurrence.data();
  const auto ids = static_cast<uint32_t>(plan.occurrence.size());
  const auto gradient = [&](uint32_t bag) { return bags.data + int64_t{bag} * width + sample_of(bag) * beside; };
  for (size_t u = 0; u < plan.keys.size(); ++u) {
    float sum[kWidth == kAny ? 1 : kWidth];
    float* to = kWidth == kAny ? out.row(u) : sum;
    for (int j = 0; j < (kWidth == kAny ? width : kWidth); ++j) to[j] = 0;
    for (uint32_t o = plan.occurrence_begin[u]; o < plan.occurrence_begin[u + 1]; ++o) {
      if (o + kAhead < ids) __builtin_prefetch(gradient(occurrence[o + kAhead]));
      const uint32_t bag = occurrence[o];
      const float* from = gradient(bag);
      if (!weighted && pooling == Pooling::kSum) {
        AddRow<kWidth>(from, width, to);
        continue;
      }
      float scale = weighted ? plan.occurrence_value[o] : 1.0f;
      const auto n = static_cast<float>(plan.offsets[bag + 1] - plan.offsets[bag]);
      if (pooling != Pooling::kSum) scale /= pooling == Pooling::kMean ? n : std::sqrt(n);
      AddScaledRow<kWidth>(from, scale, width, to);
    }
    if (kWidth != kAny) CopyRow<kWidth>(sum, width, out.row(u));
  }
}

#define REGATTA_POOLING_WIDTH(W)                                                                               \
  REGATTA_MULTIVERSION void Gather##W(const KeyPlan& plan, Pooling pooling, const RowsView<const float>& rows, \
                                      const BagMatrix<float>& out) {                                           \
    GatherBody<W>(plan, pooling, rows, out);                                                                   \
  }                                                                                                            \
  REGATTA_MULTIVERSION void Merge##W(const KeyPlan& plan, Pooling pooling, const BagMatrix<const float>& bags, \
                                     const RowsView<float>& out) {                                             \
    MergeBody<W>(plan, pooling, bags, out);                                                                    \
  }

REGATTA_POOLING_WIDTH(0)
REGATTA_POOLING_WIDTH(1)
REGATTA_POOLING_WIDTH(8)
REGATTA_POOLING_WIDTH(9)
REGATTA_POOLING_WIDTH(10)
REGATTA_POOLING_WIDTH(16)
REGATTA_POOLING_WIDTH(32)
#undef REGATTA_POOLING_WIDTH

struct Kernels {
  int width;
  void (*gather)(const KeyPlan&, Pooling, const RowsView<const float>&, const BagMatrix<float>&);
  void (*merge)(const KeyPlan&, Pooling, const BagMatrix<const float>&, const RowsView<float>&);
};
constexpr Kernels kKernels[] = {{1, &Gather1, &Merge1},    {8, &Gather8, &Merge8},    {9, &Gather9, &Merge9},
                                {10, &Gather10, &Merge10}, {16, &Gather16, &Merge16}, {32, &Gather32, &Merge32}};

const Kernels& KernelsFor(int width) {
  static constexpr Kernels any = {kAny, &Gather0, &Merge0};
  for (const Kernels& k : kKernels)
    if (k.width == width) return k;
  return any;
}

}  // namespace

void GatherPool(const KeyPlan& plan, Pooling pooling, RowsView<const float> rows, BagMatrix<float> out) {
  KernelsFor(rows.width).gather(plan, pooling, rows, out);
}

void MergeGradients(const KeyPlan& plan, Pooling pooling, BagMatrix<const float> bags, RowsView<float> out) {
  KernelsFor(out.width).merge(plan, pooling, bags, out);
}

}  // namespace regatta::lookup
