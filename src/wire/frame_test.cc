#include "wire/frame.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "wire/packing.h"

namespace regatta::wire {
namespace {

ps::FrameHeader Header() {
  ps::FrameHeader header;
  header.set_verb(ps::PUSH);
  header.set_id(7);
  header.set_step(1'000'000'007);
  header.add_sections()->set_keys(3);
  return header;
}

// The same bytes cut into slices of `piece` bytes, as a network delivers them.
grpc::ByteBuffer Cut(const grpc::ByteBuffer& whole, size_t piece) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(whole.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  std::vector<grpc::Slice> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.emplace_back(bytes.substr(at, piece));
  return grpc::ByteBuffer(pieces.data(), pieces.size());
}

TEST(Frame, ComesOutAsItWentInHoweverItIsCut) {
  std::vector<float> rows(600);
  std::iota(rows.begin(), rows.end(), 0.5f);
  FrameWriter writer(Header(), rows.size() * sizeof(float));
  writer.Append(rows.data(), 100 * sizeof(float));
  writer.Append(rows.data() + 100, 500 * sizeof(float));
  const grpc::ByteBuffer whole = writer.Finish();
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, size_t{100'000}}) {
    grpc::ByteBuffer buffer = Cut(whole, piece);
    FrameReader reader(buffer);
    ASSERT_EQ(reader.Open(), absl::OkStatus());
    EXPECT_EQ(reader.header().SerializeAsString(), Header().SerializeAsString());
    EXPECT_EQ(reader.body_left(), rows.size() * sizeof(float));
    std::vector<float> spread(20 * 31, -1.0f);
    ASSERT_EQ(ReadRows(reader, ps::FLOAT32, {spread.data(), 31, 30}, 0, 20), absl::OkStatus());
    EXPECT_EQ(reader.ExpectEnd(), absl::OkStatus());
    for (size_t i = 0; i < 20; ++i) {
      for (size_t j = 0; j < 30; ++j) EXPECT_EQ(spread[i * 31 + j], rows[i * 30 + j]);
      EXPECT_EQ(spread[i * 31 + 30], -1.0f) << "what lies between rows is left alone";
    }
  }
}

// Another language's protobuf reads and writes the same frames.
TEST(Frame, IsTheProtobufMessage) {
  FrameWriter writer(Header(), 5);
  writer.Append("hello", 5);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(writer.Finish().Dump(&slices).ok());
  ps::Frame parsed;
  ASSERT_TRUE(parsed.ParseFromArray(slices[0].begin(), static_cast<int>(slices[0].size())));
  EXPECT_EQ(parsed.body(), "hello");
  EXPECT_EQ(parsed.header().step(), 1'000'000'007u);

  const grpc::Slice slice(parsed.SerializeAsString());
  grpc::ByteBuffer buffer(&slice, 1);
  FrameReader reader(buffer);
  ASSERT_EQ(reader.Open(), absl::OkStatus());
  char body[5];
  ASSERT_EQ(reader.Read(body, 5), absl::OkStatus());
  EXPECT_EQ(std::string(body, 5), "hello");
}

TEST(Frame, TheBodyIsAligned) {
  for (uint64_t id = 1; id < uint64_t{1} << 40; id *= 9) {
    ps::FrameHeader header = Header();
    header.set_id(id);
    FrameWriter writer(header, 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(writer.Take(64)) % kAlignment, 0u);
  }
}

TEST(Frame, EveryCutOrWrongLengthIsAnError) {
  FrameWriter writer(Header(), 40);
  std::memset(writer.Take(40), 7, 40);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(writer.Finish().Dump(&slices).ok());
  const std::string bytes(reinterpret_cast<const char*>(slices[0].begin()), slices[0].size());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const grpc::Slice slice(bytes.substr(0, length));
    grpc::ByteBuffer buffer(&slice, 1);
    FrameReader reader(buffer);
    absl::Status status = reader.Open();
    char body[40];
    if (status.ok()) status = reader.Read(body, 40);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length;
  }
  const grpc::Slice longer(bytes + "x");
  grpc::ByteBuffer buffer(&longer, 1);
  EXPECT_EQ(FrameReader(buffer).Open().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace regatta::wire
