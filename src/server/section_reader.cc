#include "server/section_reader.h"

#include <algorithm>
#include <span>
#include <vector>

#include "wire/packing.h"

namespace regatta::server {

absl::Status CheckPrecision(const ps::FrameHeader& header) {
  if (ps::Precision_IsValid(header.precision())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no precision ", header.precision()));
}

uint64_t CountKeys(const ps::FrameHeader& header) {
  uint64_t keys = 0;
  for (const ps::Section& section : header.sections()) keys += section.keys();
  return keys;
}

absl::Status SectionReader::Check(const ps::FrameHeader& header) const {
  if (header.sections_size() > job_.sparse_tables())
    return absl::InvalidArgumentError("the request has more sections than the job has tables");
  RETURN_IF_ERROR(CheckPrecision(header));
  std::vector<bool> seen(static_cast<size_t>(job_.sparse_tables()));
  for (const ps::Section& section : header.sections()) {
    if (section.table() >= seen.size())
      return absl::InvalidArgumentError(absl::StrCat("there is no table ", section.table()));
    if (seen[section.table()])
      return absl::InvalidArgumentError(absl::StrCat("table ", section.table(), " comes twice in a request"));
    seen[section.table()] = true;
  }
  const uint64_t keys = CountKeys(header);
  if (keys > wire::kMaxKeysAFrame)
    return absl::ResourceExhaustedError(absl::StrCat(keys, " keys in a request; the limit is ", wire::kMaxKeysAFrame));
  return absl::OkStatus();
}

absl::Status SectionReader::ReadKeys(wire::FrameReader& frame, const ps::Section& section, KeyCheck check,
                                     base::RawVector<base::Key>& keys) const {
  const size_t first = keys.size();
  const size_t key_bytes = section.key_bytes() == 0 ? sizeof(base::Key) : section.key_bytes();
  keys.resize(first + section.keys());
  RETURN_IF_ERROR(wire::ReadKeys(frame, key_bytes, std::span(keys).subspan(first)));
  int64_t least = first == 0 ? shards_.begin : base::ShardOf(keys[first - 1]);
  const size_t stride = check == KeyCheck::kAll ? 1 : std::max<size_t>(section.keys(), 2) - 1;
  for (size_t i = first; i < keys.size(); i += stride) {
    const int64_t shard = base::ShardOf(keys[i]);
    if (shard < least || shard >= shards_.end)
      return absl::InvalidArgumentError(absl::StrCat("key ", keys[i], " is of virtual shard ", shard, ", where ", least,
                                                     " to ", shards_.end - 1,
                                                     " may come: a lane's keys are its own, grouped by shard"));
    least = shard;
  }
  return absl::OkStatus();
}

}  // namespace regatta::server
