// Values by name. A scope looks names up in itself and then in those around it; a program's persistable variables live
// in the scope that the user gives.
// Thread-safety: Find is concurrent; what makes or erases variables needs the scope alone.
// Invariant: a value's address stays as long as the variable is in the scope.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/value.h"

namespace regatta::exec {

class Scope {
 public:
  Scope() : Scope(nullptr) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Scope* parent() { return parent_; }
  // The outermost scope around this.
  Scope& root();

  // nullptr if there is none.
  Value* FindHere(std::string_view name);
  const Value* FindHere(std::string_view name) const;
  // In this scope or those around it; nullptr if there is none.
  Value* Find(std::string_view name);
  const Value* Find(std::string_view name) const;

  // The value in this scope; an empty one is made if there is none.
  Value& Var(std::string_view name);
  // Nothing if there is none.
  void Erase(std::string_view name);
  // In the order of the names.
  std::vector<std::string> Names() const;

  // Lives until DropChildren, or as long as this.
  Scope& NewChild();
  void DropChildren() { children_.clear(); }

  // Becomes larger with every Var that makes a value and every Erase, here or around, and with every new scope. As long
  // as a scope's stamp stays, its Find gives the same addresses.
  uint64_t stamp() const;

 private:
  explicit Scope(Scope* parent);

  Scope* const parent_;
  uint64_t stamp_;
  std::map<std::string, std::unique_ptr<Value>, std::less<>> values_;
  std::vector<std::unique_ptr<Scope>> children_;
};

}  // namespace regatta::exec
