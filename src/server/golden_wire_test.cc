// The wire as version 4 of the protocol speaks it: recorded frames are answered with the same bytes, this version's
// workers send the same frames, and no field or value has another number. What is logged is made of the same frames.
// REGATTA_WRITE_GOLDEN=1 writes the files anew (for a new version, into a new folder; the old one stays).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "server/testing/golden_job.h"

namespace regatta::server {
namespace {

const std::string kFolder = REGATTA_TEST_DATA "/wire_v4/";

// A job of two workers that holds nothing yet.
std::unique_ptr<HostedJob> Begin(base::Mode mode) {
  auto job = HostedJob::Create(ParseJobSpec(GoldenRequest(mode).job()).value(), 0).value();
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(job->roster().Join(GoldenWorkers::Worker(rank)).ok());
  return job;
}

struct WireCase {
  base::Mode mode;
  Rates rates = Rates::kNone;

  std::string name() const { return absl::StrCat(Name(mode), SuffixOf(rates)); }
};

// A line a request: rank, lane, verb, the frame and the answer in hexadecimal.
std::string Exchange(const WireCase& of) {
  const base::Mode mode = of.mode;
  const auto job = Begin(mode);
  GoldenWorkers workers(*job, 1, of.rates);
  std::string lines;
  workers.RecordWith([&](int rank, int lane, ps::Verb verb, const std::string& request, const std::string& reply) {
    absl::StrAppend(&lines, rank, " ", lane, " ", ps::Verb_Name(verb), " ", absl::BytesToHexString(request), " ",
                    absl::BytesToHexString(reply), "\n");
  });
  workers.Load();
  for (int rank = 0; rank < 2; ++rank) workers.Mark(ps::BEGIN, rank, 0, 0);
  const bool geo = mode == base::Mode::kGeo;
  for (uint64_t step = 0; step < 2; ++step)
    for (int rank = 0; rank < 2; ++rank) {
      workers.Push(rank, 0, step, step == 1 ? 2 : 1, GoldenWorkers::Whole::kYes, geo ? ps::ADD : ps::PUSH);
      workers.PushDense(rank, 0, step, geo ? ps::ADD_DENSE : ps::PUSH_DENSE);
    }
  for (int rank = 0; rank < 2; ++rank) workers.Mark(ps::LEAVE, rank, 0, 2);
  workers.Read(0, 1);
  EXPECT_EQ(workers.refused(), 0);
  return lines;
}

// Every field and value of ps.proto: "FrameHeader.step 3 uint64".
std::set<std::string> Numbers() {
  std::set<std::string> lines;
  const google::protobuf::FileDescriptor& file = *ps::FrameHeader::descriptor()->file();
  for (int m = 0; m < file.message_type_count(); ++m) {
    const google::protobuf::Descriptor& message = *file.message_type(m);
    for (int f = 0; f < message.field_count(); ++f) {
      const google::protobuf::FieldDescriptor& field = *message.field(f);
      lines.insert(absl::StrCat(message.name(), ".", field.name(), " ", field.number(), " ", field.type_name(),
                                field.is_repeated() ? " repeated" : ""));
    }
  }
  for (int e = 0; e < file.enum_type_count(); ++e)
    for (int v = 0; v < file.enum_type(e)->value_count(); ++v)
      lines.insert(absl::StrCat(file.enum_type(e)->name(), ".", file.enum_type(e)->value(v)->name(), " ",
                                file.enum_type(e)->value(v)->number()));
  return lines;
}

class GoldenWireTest : public testing::TestWithParam<WireCase> {
 protected:
  static std::string Recorded() {
    const std::string path = kFolder + GetParam().name() + ".txt";
    if (std::getenv("REGATTA_WRITE_GOLDEN")) std::ofstream(path) << Exchange(GetParam());
    return base::ReadFile(path).value();
  }
};

TEST_P(GoldenWireTest, RecordedFramesAreAnsweredWithTheSameBytes) {
  const auto job = Begin(GetParam().mode);
  GoldenWorkers workers(*job, 1);
  int frames = 0;
  for (const absl::string_view line : absl::StrSplit(Recorded(), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    ASSERT_EQ(words.size(), 5u) << line;
    const std::string reply = workers.Ask(std::stoi(words[0]), std::stoi(words[1]), absl::HexStringToBytes(words[3]));
    EXPECT_EQ(absl::BytesToHexString(reply), words[4]) << words[2];
    ++frames;
  }
  EXPECT_GT(frames, 100);
}

TEST_P(GoldenWireTest, WorkersStillSendTheSameFrames) { EXPECT_EQ(Exchange(GetParam()), Recorded()); }

INSTANTIATE_TEST_SUITE_P(Modes, GoldenWireTest,
                         testing::Values(WireCase{base::Mode::kAsync}, WireCase{base::Mode::kSync},
                                         WireCase{base::Mode::kGeo}, WireCase{base::Mode::kAsync, Rates::kOwn},
                                         WireCase{base::Mode::kSync, Rates::kOwn}),
                         [](const auto& info) { return info.param.name(); });

TEST(GoldenWire, NoFieldHasAnotherNumber) {
  const std::string path = kFolder + "numbers.txt";
  const std::set<std::string> now = Numbers();
  if (std::getenv("REGATTA_WRITE_GOLDEN")) {
    std::ofstream file(path);
    for (const std::string& line : now) file << line << "\n";
  }
  std::vector<std::string> golden = absl::StrSplit(base::ReadFile(path).value(), '\n', absl::SkipEmpty());
  EXPECT_GT(golden.size(), 100u);
  // Fields that version 4 got later.
  const std::string later = base::ReadFile(kFolder + "numbers_later.txt").value();
  for (const absl::string_view line : absl::StrSplit(later, '\n', absl::SkipEmpty())) golden.emplace_back(line);
  for (const std::string& line : golden) EXPECT_TRUE(now.contains(line)) << line;
}

}  // namespace
}  // namespace regatta::server
