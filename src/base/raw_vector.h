// A vector whose new elements are not cleared: for bytes that are read into it at once.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace regatta::base {

template <typename T>
struct RawAllocator : std::allocator<T> {
  RawAllocator() = default;
  template <typename U>
  RawAllocator(const RawAllocator<U>&) {}
  template <typename U>
  struct rebind {
    using other = RawAllocator<U>;
  };
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};

template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace regatta::base
