#include "exec/scope.h"

#include <algorithm>
#include <atomic>

namespace regatta::exec {

namespace {

uint64_t NextStamp() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Scope::Scope(Scope* parent) : parent_(parent), stamp_(NextStamp()) {}

Scope& Scope::root() {
  Scope* scope = this;
  while (scope->parent_ != nullptr) scope = scope->parent_;
  return *scope;
}

const Value* Scope::FindHere(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second.get();
}

const Value* Scope::Find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_)
    if (const Value* value = scope->FindHere(name)) return value;
  return nullptr;
}

Value* Scope::FindHere(std::string_view name) { return const_cast<Value*>(std::as_const(*this).FindHere(name)); }
Value* Scope::Find(std::string_view name) { return const_cast<Value*>(std::as_const(*this).Find(name)); }

Value& Scope::Var(std::string_view name) {
  if (Value* value = FindHere(name)) return *value;
  stamp_ = NextStamp();
  return *values_.emplace(name, std::make_unique<Value>()).first->second;
}

void Scope::Erase(std::string_view name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return;
  values_.erase(found);
  stamp_ = NextStamp();
}

std::vector<std::string> Scope::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

Scope& Scope::NewChild() {
  children_.push_back(std::unique_ptr<Scope>(new Scope(this)));
  return *children_.back();
}

uint64_t Scope::stamp() const {
  uint64_t stamp = 0;  // the largest is another one as soon as one of them is
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) stamp = std::max(stamp, scope->stamp_);
  return stamp;
}

}  // namespace regatta::exec
