// <vector> without C++20's constexpr, to be included before anything else where clang compiles libtorch's headers.
// ATen/core/List.h uses std::vector<c10::IValue> before c10::IValue is defined. Clang instantiates constexpr members
// where they are used, and there they have nothing to destroy or index yet; GCC waits for the end of the file, as clang
// does for members that are not constexpr. Only libstdc++ from GCC 12 on needs it.
#ifndef REGATTA_VECTOR_BEFORE_TORCH_H
#define REGATTA_VECTOR_BEFORE_TORCH_H
#pragma GCC system_header

#include <algorithm>
#include <memory>
#include <string>

#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_bits  // <algorithm> has declared this one function of vector<bool>, as constexpr
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr

#endif
