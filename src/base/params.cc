#include "base/params.h"

namespace regatta::base {

int64_t Params::Int(std::string_view name, IntRange range, int64_t fallback) {
  return Take<int64_t>(config_.Int(Path(name), fallback, range), fallback);
}

double Params::Double(std::string_view name, DoubleRange range, double fallback) {
  return Take<double>(config_.Double(Path(name), fallback, range), fallback);
}

bool Params::Bool(std::string_view name, bool fallback) {
  return Take<bool>(config_.Bool(Path(name), fallback), fallback);
}

std::string Params::String(std::string_view name, std::string_view fallback) {
  return Take<std::string>(config_.String(Path(name), fallback), std::string(fallback));
}

std::vector<int64_t> Params::IntList(std::string_view name, IntRange range, const std::vector<int64_t>& fallback) {
  return Take<std::vector<int64_t>>(config_.IntList(Path(name), fallback, range), fallback);
}

std::vector<double> Params::DoubleList(std::string_view name, DoubleRange range, const std::vector<double>& fallback) {
  return Take<std::vector<double>>(config_.DoubleList(Path(name), fallback, range), fallback);
}

std::vector<std::string> Params::StringList(std::string_view name, const std::vector<std::string>& fallback) {
  return Take<std::vector<std::string>>(config_.StringList(Path(name), fallback), fallback);
}

}  // namespace regatta::base
