// A growable array of plain values that never initialises what it grows by and never shrinks unless asked: parsers
// write through raw pointers, and large ones grow by mremap.
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace regatta::data {

template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;
  Column(Column&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Column& operator=(Column&& other) noexcept {
    std::swap(data_, other.data_), std::swap(size_, other.size_), std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Column() { std::free(data_); }

  // Room for n more values behind the last one; Added says how many were written.
  T* Room(size_t n) {
    if (size_ + n > capacity_) [[unlikely]]
      Reserve(size_ + n > 2 * capacity_ ? size_ + n : 2 * capacity_);
    return data_ + size_;
  }
  void Added(size_t n) { size_ += n; }
  void Append(const T* values, size_t n) {
    if (n == 0) return;
    std::memcpy(Room(n), values, n * sizeof(T));
    size_ += n;
  }
  void Append(T value) {
    *Room(1) = value;
    ++size_;
  }
  void Clear() { size_ = 0; }
  void ShrinkToFit() {
    if (size_ == capacity_) return;
    if (size_ == 0) {
      std::free(std::exchange(data_, nullptr));
      capacity_ = 0;
    } else {
      Reserve(size_);
    }
  }

  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  void Reserve(size_t capacity) {
    void* grown = std::realloc(data_, capacity * sizeof(T));
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace regatta::data
