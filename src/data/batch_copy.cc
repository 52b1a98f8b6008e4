#include "data/batch_copy.h"

#include "base/multiversion.h"

namespace regatta::data {
namespace {

REGATTA_MULTIVERSION
void Rebase(const uint32_t* from, size_t n, uint32_t add, uint32_t* to) {
  for (size_t i = 0; i < n; ++i) to[i] = from[i] + add;
}

template <typename T>
void AppendRange(const Column<T>& from, size_t begin, size_t count, std::vector<T>* to) {
  if (!from.empty()) to->insert(to->end(), from.data() + begin, from.data() + begin + count);
}

}  // namespace

void ReserveLike(const SampleBlock& block, int samples, Batch* batch) {
  const size_t n = static_cast<size_t>(samples);
  if (block.size == 0) return;
  // A quarter more than the block's average line, so that batches of lines of varying length seldom grow.
  const size_t keys = block.keys.size() * n / static_cast<size_t>(block.size);
  batch->keys.reserve(keys + keys / 4);
  if (!block.values.empty()) batch->values.reserve(keys + keys / 4);
  batch->offsets.reserve(n * static_cast<size_t>(block.slots) + 1);
  batch->dense.reserve(n * static_cast<size_t>(block.dense_dim));
  batch->labels.reserve(n * static_cast<size_t>(block.label_dim));
}

void AppendSamples(const SampleBlock& block, int begin, int count, Batch* batch) {
  const size_t first = static_cast<size_t>(begin), n = static_cast<size_t>(count);
  const size_t slots = static_cast<size_t>(block.slots), dense_dim = static_cast<size_t>(block.dense_dim),
               label_dim = static_cast<size_t>(block.label_dim);
  batch->slots = block.slots;
  batch->dense_dim = block.dense_dim;
  batch->label_dim = block.label_dim;
  if (batch->offsets.empty()) batch->offsets.push_back(0);
  const uint32_t key_begin = block.SampleBegin(first), key_end = block.SampleBegin(first + n);
  const uint32_t add = static_cast<uint32_t>(batch->keys.size()) - key_begin;
  const size_t bags = n * slots, old_bags = batch->offsets.size();
  batch->offsets.resize(old_bags + bags);
  Rebase(block.ends.data() + first * slots, bags, add, batch->offsets.data() + old_bags);
  AppendRange(block.keys, key_begin, key_end - key_begin, &batch->keys);
  AppendRange(block.values, key_begin, key_end - key_begin, &batch->values);
  AppendRange(block.dense, first * dense_dim, n * dense_dim, &batch->dense);
  AppendRange(block.labels, first * label_dim, n * label_dim, &batch->labels);
  AppendRange(block.weights, first, n, &batch->weights);
  AppendRange(block.users, first, n, &batch->users);
  batch->size += count;
  const uint64_t size = static_cast<uint64_t>(block.size);
  batch->bytes += block.disk_bytes * (first + n) / size - block.disk_bytes * first / size;
}

}  // namespace regatta::data
