// The text that Prometheus reads: families of samples with HELP and TYPE lines, in the order in which they were first
// named. Samples of one family may be added from several places; its lines stand together all the same.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/histogram.h"

namespace regatta::metrics {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Exposition {
 public:
  // `name` is [a-z_]+; a counter's ends in _total. `help` is that of the family's first sample.
  void Counter(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  void Gauge(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  // Nanoseconds, shown as seconds: buckets from 10 µs to 100 s, four to a power of ten. A value less than 1/16
  // below a bucket's bound may count in the next one, because the histogram's own buckets are that wide.
  void Seconds(std::string_view name, std::string_view help, const Histogram& nanoseconds, const Labels& labels = {});
  // Whole numbers: buckets 0, 1, 2, 4, … 4096.
  void Counts(std::string_view name, std::string_view help, const Histogram& values, const Labels& labels = {});

  std::string Text() const;

 private:
  struct Family {
    std::string name;
    std::string help;
    const char* type;
    std::string samples;  // lines
  };
  Family& FamilyOf(std::string_view name, std::string_view help, const char* type);
  void Buckets(std::string_view name, std::string_view help, const Histogram& histogram,
               const std::vector<uint64_t>& bounds, double unit, const Labels& labels);

  std::vector<Family> families_;
  std::map<std::string, size_t, std::less<>> index_;  // of a name in families_
};

}  // namespace regatta::metrics
