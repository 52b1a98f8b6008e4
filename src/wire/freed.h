// Deletes what a C library made by the library's own function: std::unique_ptr<BIO, Freed<&BIO_free_all>>.
// Thread-safety: a plain value.
#pragma once

namespace regatta::wire {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace regatta::wire
