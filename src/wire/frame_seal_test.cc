#include "wire/frame_seal.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/frame.h"

namespace regatta::wire {
namespace {

grpc::ByteBuffer Frame(size_t body) {
  ps::FrameHeader header;
  header.set_id(7);
  FrameWriter writer(header, body);
  writer.Append(std::string(body, 'x').data(), body);
  return writer.Finish();
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer Cut(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.emplace_back(bytes.substr(at, piece));
  return grpc::ByteBuffer(pieces.data(), pieces.size());
}

TEST(FrameSeal, WhatWasSentPassesHoweverItIsCut) {
  for (const size_t body : {size_t{0}, size_t{3}, size_t{20'000}}) {
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{8192}, size_t{1 << 20}}) {
      FrameSeal out, in;
      for (int i = 0; i < 3; ++i) {
        grpc::ByteBuffer sealed = Cut(Bytes(out.Put(Frame(body))), piece);
        ASSERT_EQ(in.Check(sealed), absl::OkStatus());
        FrameReader reader(sealed);
        ASSERT_EQ(reader.Open(), absl::OkStatus());
        EXPECT_EQ(reader.header().id(), 7u);
        EXPECT_EQ(reader.body_left(), body);
      }
    }
  }
}

// Another language's protobuf reads it.
TEST(FrameSeal, IsAFieldOfTheMessage) {
  ps::Frame parsed;
  ASSERT_TRUE(parsed.ParseFromString(Bytes(FrameSeal().Put(Frame(5)))));
  EXPECT_EQ(parsed.body(), "xxxxx");
  EXPECT_NE(parsed.checksum(), 0u);
}

TEST(FrameSeal, EveryFlippedBitIsFound) {
  const std::string whole = Bytes(FrameSeal().Put(Frame(40)));
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string bytes = whole;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ 1 << i % 8);
    EXPECT_EQ(FrameSeal().Check(Cut(bytes, bytes.size())).code(), absl::StatusCode::kUnavailable) << i;
  }
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(FrameSeal().Check(Cut(whole.substr(0, length), whole.size())).ok()) << length;
}

TEST(FrameSeal, LostAndRepeatedFramesAreFound) {
  FrameSeal out;
  const grpc::ByteBuffer first = out.Put(Frame(4)), second = out.Put(Frame(4));
  EXPECT_FALSE(FrameSeal().Check(second).ok());
  FrameSeal in;
  EXPECT_TRUE(in.Check(first).ok());
  EXPECT_FALSE(in.Check(first).ok());
}

}  // namespace
}  // namespace regatta::wire
