#include "metrics/exposition.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace regatta::metrics {
namespace {

enum class Quotes : uint8_t { kPlain, kEscaped };

// A backslash, a line break and, in a label's value, a quote would end the text early.
std::string Escape(std::string_view text, Quotes quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes == Quotes::kEscaped) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  // Whole numbers in full: a counter of bytes has more digits than %g shows.
  if (value == std::floor(value) && std::fabs(value) < 9e15) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.9g", value);
}

// {a="1",b="2"}, or nothing. `le` is a bucket's bound; "" = none.
std::string LabelText(const Labels& labels, std::string_view le) {
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    absl::StrAppend(&out, out.empty() ? "{" : ",", base::View(name), "=\"", Escape(value, Quotes::kEscaped), "\"");
  };
  for (const auto& [name, value] : labels) add(name, value);
  if (!le.empty()) add("le", le);
  if (!out.empty()) out += "}";
  return out;
}

void AppendSample(std::string& out, std::string_view name, const char* suffix, const std::string& labels,
                  double value) {
  absl::StrAppend(&out, base::View(name), suffix, labels, " ", Number(value), "\n");
}

}  // namespace

Exposition::Family& Exposition::FamilyOf(std::string_view name, std::string_view help, const char* type) {
  if (const auto known = index_.find(name); known != index_.end()) return families_[known->second];
  index_.emplace(std::string(name), families_.size());
  families_.push_back({std::string(name), std::string(help), type, {}});
  return families_.back();
}

void Exposition::Counter(std::string_view name, std::string_view help, double value, const Labels& labels) {
  AppendSample(FamilyOf(name, help, "counter").samples, name, "", LabelText(labels, ""), value);
}

void Exposition::Gauge(std::string_view name, std::string_view help, double value, const Labels& labels) {
  AppendSample(FamilyOf(name, help, "gauge").samples, name, "", LabelText(labels, ""), value);
}

void Exposition::Seconds(std::string_view name, std::string_view help, const Histogram& nanoseconds,
                         const Labels& labels) {
  static const std::vector<uint64_t> bounds = [] {
    std::vector<uint64_t> made;
    for (uint64_t decade = 10'000; decade <= 10'000'000'000; decade *= 10)
      for (const uint64_t share : {1, 2, 3, 5}) made.push_back(decade * share);
    made.push_back(100'000'000'000);
    return made;
  }();
  Buckets(name, help, nanoseconds, bounds, 1e-9, labels);
}

void Exposition::Counts(std::string_view name, std::string_view help, const Histogram& values, const Labels& labels) {
  static const std::vector<uint64_t> bounds = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  Buckets(name, help, values, bounds, 1, labels);
}

void Exposition::Buckets(std::string_view name, std::string_view help, const Histogram& histogram,
                         const std::vector<uint64_t>& bounds, double unit, const Labels& labels) {
  std::string& out = FamilyOf(name, help, "histogram").samples;
  uint64_t below = 0;
  int next = 0;  // the histogram's first bucket that is not counted yet
  for (const uint64_t bound : bounds) {
    for (; next < Histogram::kBuckets && Histogram::BucketMax(next) <= bound; ++next) below += histogram.InBucket(next);
    AppendSample(out, name, "_bucket", LabelText(labels, Number(static_cast<double>(bound) * unit)),
                 static_cast<double>(below));
  }
  for (; next < Histogram::kBuckets; ++next) below += histogram.InBucket(next);
  AppendSample(out, name, "_bucket", LabelText(labels, "+Inf"), static_cast<double>(below));
  AppendSample(out, name, "_sum", LabelText(labels, ""), static_cast<double>(histogram.sum()) * unit);
  AppendSample(out, name, "_count", LabelText(labels, ""), static_cast<double>(below));
}

std::string Exposition::Text() const {
  std::string text;
  for (const Family& family : families_)
    absl::StrAppend(&text, "# HELP ", family.name, " ", Escape(family.help, Quotes::kPlain), "\n# TYPE ", family.name,
                    " ", family.type, "\n", family.samples);
  return text;
}

}  // namespace regatta::metrics
