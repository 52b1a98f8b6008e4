#include "server/open_push.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/learning_rate.h"
#include "wire/packing.h"

namespace regatta::server {
namespace {

constexpr uint64_t kFramesAhead = 8;
constexpr uint64_t kKeptBytes = 4 << 20;  // of a push that was applied

absl::Status CheckSamples(const ps::FrameHeader& header, uint64_t gradients) {
  if (header.samples() > wire::kMaxSamplesAPush || (header.samples() == 0 && gradients > 0))
    return absl::InvalidArgumentError(absl::StrCat("the gradients are sums over ", header.samples(),
                                                   " samples; a push has 1 to ", wire::kMaxSamplesAPush));
  return absl::OkStatus();
}

absl::StatusOr<float> ReadFloat(wire::FrameReader& frame) {
  float value = 0;
  RETURN_IF_ERROR(frame.Read(&value, sizeof value));
  return value;
}

}  // namespace

// Whether the frame goes on with the open push; otherwise it begins one. Logs of protocol 3 do not count frames.
absl::StatusOr<bool> OpenPush::Continues(const ps::FrameHeader& header, RequestOrigin origin) const {
  if (header.part() == 0 && header.more() && origin == RequestOrigin::kWorker)
    return absl::InvalidArgumentError("a frame of several does not say which one it is");
  if (header.part() == 0) return open_ && number_ == 0 && header.id() > id_ && part_.step == header.step();
  if (header.part() == 1) return false;
  if (open_ && number_ + 1 == header.part() && header.id() > id_ && part_.step == header.step() &&
      part_.pass == header.pass() && part_.samples == header.samples())
    return true;
  return absl::FailedPreconditionError(absl::StrCat("frame ", header.part(), " of a push of step ", header.step(),
                                                    " does not follow frame ", header.part() - 1, " of it"));
}

void OpenPush::Begin(const ps::FrameHeader& header, Width width) {
  part_.pass = header.pass();
  part_.step = header.step();
  part_.samples = header.samples();
  part_.logged = 0;
  part_.tables.resize(static_cast<size_t>(job_.sparse_tables()));
  for (int i = 0; i < job_.sparse_tables(); ++i) {
    TablePart& table = part_.tables[static_cast<size_t>(i)];
    table.table = i;
    table.width = (job_.sparse(i).*width)();
    table.keys.clear();
    table.rows.clear();
    table.named = false;
    table.learning_rate.reset();
  }
}

void OpenPush::Applied() {
  uint64_t bytes = 0;
  for (const TablePart& table : part_.tables)
    bytes += table.keys.capacity() * sizeof(base::Key) + table.rows.capacity() * sizeof(float);
  if (bytes > kKeptBytes) return Drop();
  Close();
  part_.held.Release();
}

absl::StatusOr<uint64_t> OpenPush::CheckSize(const ps::FrameHeader& header) const {
  uint64_t keys = 0, bytes = 0;
  for (const TablePart& table : part_.tables) {
    keys += table.keys.size();
    bytes += table.keys.size() * sizeof(base::Key) + table.rows.size() * sizeof(float);
  }
  for (const ps::Section& section : header.sections()) {
    const TablePart& table = part_.tables[section.table()];
    if (section.width() != static_cast<uint32_t>(table.width))
      return absl::InvalidArgumentError(absl::StrCat("rows of ", section.width(), " floats for table ",
                                                     job_.sparse(table.table).config().name, ", which takes ",
                                                     table.width));
    keys += section.keys();
    bytes += section.keys() * (sizeof(base::Key) + uint64_t{section.width()} * sizeof(float));
  }
  if (keys > wire::kMaxKeysAPush)
    return absl::ResourceExhaustedError(
        absl::StrCat(keys, " keys in the frames of one push; the limit is ", wire::kMaxKeysAPush));
  if (bytes > wire::kMaxPushBytes)
    return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes in the frames of one push; the limit is ",
                                                     wire::kMaxPushBytes,
                                                     ": use smaller batches, more servers or more lanes"));
  return bytes;
}

void OpenPush::Reserve(const ps::FrameHeader& header, uint64_t frames) {
  for (const ps::Section& section : header.sections()) {
    TablePart& table = part_.tables[section.table()];
    table.keys.reserve(frames * section.keys());
    table.rows.reserve(frames * section.keys() * section.width());
  }
}

absl::Status OpenPush::ReadSections(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  for (const ps::Section& section : header.sections()) {
    TablePart& table = part_.tables[section.table()];
    RETURN_IF_ERROR(sections_.ReadKeys(frame, section, KeyCheck::kAll, table.keys));
    const size_t floats = size_t{section.keys()} * section.width();
    const size_t first = table.rows.size();
    table.rows.resize(first + floats);
    RETURN_IF_ERROR(wire::ReadFloats(frame, header.precision(), std::span(table.rows).subspan(first)));
    RETURN_IF_ERROR(ReadRate(frame, section, table));
  }
  return frame.ExpectEnd();
}

// Of a section, or none. All frames of a push say the same of a table.
absl::Status OpenPush::ReadRate(wire::FrameReader& frame, const ps::Section& section, TablePart& table) {
  std::optional<float> rate;
  if (section.rate()) {
    ASSIGN_OR_RETURN(rate, ReadFloat(frame));
  }
  const table::SparseTable& target = job_.sparse(table.table);
  RETURN_IF_ERROR(target.CheckLearningRate(rate));
  if (table.named && rate != table.learning_rate)
    return absl::InvalidArgumentError(absl::StrCat("table ", target.config().name, ": the frames of a push bring ",
                                                   base::DescribeLearningRate(table.learning_rate), " and ",
                                                   base::DescribeLearningRate(rate)));
  table.named = true;
  table.learning_rate = rate;
  return absl::OkStatus();
}

absl::Status OpenPush::Append(wire::FrameReader& frame, RequestOrigin origin) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(sections_.Check(header));
  RETURN_IF_ERROR(CheckSamples(header, CountKeys(header)));
  ASSIGN_OR_RETURN(const bool continues, Continues(header, origin));
  if (!continues) Begin(header, &table::SparseTable::push_width);
  ASSIGN_OR_RETURN(const uint64_t bytes, CheckSize(header));
  RETURN_IF_ERROR(part_.held.Hold(memory_, bytes, origin));
  if (header.part() == 1 && header.more()) Reserve(header, std::min(kFramesAhead, wire::kMaxPushBytes / (bytes + 1)));
  RETURN_IF_ERROR(ReadSections(frame));
  open_ = header.more();
  id_ = header.id();
  number_ = header.part();
  return absl::OkStatus();
}

absl::Status OpenPush::ReadAlone(wire::FrameReader& frame, Width width) {
  RETURN_IF_ERROR(sections_.Check(frame.header()));
  Close();
  part_.held.Release();
  Begin(frame.header(), width);
  RETURN_IF_ERROR(CheckSize(frame.header()).status());
  return ReadSections(frame);
}

absl::Status OpenPush::ReadGradients(wire::FrameReader& frame) {
  RETURN_IF_ERROR(CheckSamples(frame.header(), CountKeys(frame.header())));
  return ReadAlone(frame, &table::SparseTable::push_width);
}

absl::Status OpenPush::ReadDifferences(wire::FrameReader& frame) {
  return ReadAlone(frame, &table::SparseTable::pull_width);
}

absl::Status OpenPush::ReadBlock(wire::FrameReader& frame, RequestOrigin origin) {
  const auto floats = static_cast<size_t>(job_.dense().size());
  RETURN_IF_ERROR(CheckPrecision(frame.header()));
  const ps::Precision precision = frame.header().precision();
  const size_t rate_bytes = frame.header().rate() ? sizeof(float) : 0;
  const bool push = frame.header().verb() == ps::PUSH_DENSE;
  if (push && floats > 0 && frame.body_left() == 0) return ReadNothing(frame.header());
  if (frame.body_left() != floats * wire::FloatBytes(precision) + rate_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(frame.body_left(), " bytes for a block of ", floats, " dense parameters"));
  if (job_.spec().traits().staging == base::Staging::kSteps)
    RETURN_IF_ERROR(part_.held.Hold(memory_, floats * sizeof(float), origin));
  part_.pass = frame.header().pass();
  part_.step = frame.header().step();
  part_.samples = frame.header().samples();
  part_.logged = 0;
  part_.dense.resize(floats);
  if (push) RETURN_IF_ERROR(CheckSamples(frame.header(), floats));
  RETURN_IF_ERROR(wire::ReadFloats(frame, precision, part_.dense));
  part_.dense_learning_rate.reset();
  if (!frame.header().rate()) return absl::OkStatus();
  ASSIGN_OR_RETURN(part_.dense_learning_rate, ReadFloat(frame));
  return job_.dense().CheckLearningRate(part_.dense_learning_rate);
}

// A step that learnt nothing of the dense parameters.
absl::Status OpenPush::ReadNothing(const ps::FrameHeader& header) {
  if (header.rate()) return absl::InvalidArgumentError("a learning rate without a gradient");
  RETURN_IF_ERROR(CheckSamples(header, 0));
  part_.pass = header.pass();
  part_.step = header.step();
  part_.samples = header.samples();
  part_.logged = 0;
  part_.dense.clear();
  part_.dense_learning_rate.reset();
  return absl::OkStatus();
}

}  // namespace regatta::server
