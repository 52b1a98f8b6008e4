// A vector of plain values for what is written over at once: new elements are not cleared, and its memory begins at a
// cache line, so that rows of 16 floats take one line each instead of two.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace regatta::base {

template <typename T>
struct RawAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  RawAllocator() = default;
  template <typename U>
  RawAllocator(const RawAllocator<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const RawAllocator&, const RawAllocator&) { return true; }
};

template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace regatta::base
