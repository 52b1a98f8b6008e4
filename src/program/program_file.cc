#include "program/program_file.h"

#include <cstring>

#include "base/crc32c.h"
#include "program/message_reader.h"
#include "program/message_writer.h"

namespace regatta::program {

namespace {

// The line ends are there to be broken by whoever takes the bytes for text.
constexpr std::string_view kMagic("RGPROG\r\n", 8);
constexpr size_t kHeaderBytes = kMagic.size() + 8;
constexpr size_t kMostBytes = size_t{1} << 30;

void AppendUint32(std::string& bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
}

uint32_t Uint32At(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t ChecksumOf(std::string_view payload) { return base::Crc32c(payload.data(), payload.size()); }

}  // namespace

std::string SerializePayload(const Program& program) { return MessageOf(program).SerializeAsString(); }

std::string SerializeProgram(const Program& program) {
  const std::string payload = SerializePayload(program);
  std::string bytes(kMagic);
  AppendUint32(bytes, kProgramVersion);
  AppendUint32(bytes, ChecksumOf(payload));
  return bytes + payload;
}

absl::StatusOr<std::unique_ptr<Program>> ParsePayload(std::string_view payload) {
  if (payload.size() > kMostBytes)
    return absl::InvalidArgumentError(absl::StrCat("it has ", payload.size(), " bytes; want ", kMostBytes, " at most"));
  ProgramMessage message;
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
    return absl::DataLossError("its messages cannot be read: the bytes are damaged");
  return ProgramOf(message);
}

absl::StatusOr<std::unique_ptr<Program>> ParseProgram(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kMagic))
    return absl::InvalidArgumentError(
        "these bytes are no Regatta program; want a file that save_inference_model wrote");
  const uint32_t version = Uint32At(bytes, kMagic.size());
  if (version != kProgramVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the program has format version ", version,
                                                   ", and this Regatta reads ", kProgramVersion,
                                                   "; use the Regatta that wrote it, or a newer one"));
  }
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (Uint32At(bytes, kMagic.size() + 4) != ChecksumOf(payload))
    return absl::DataLossError(
        "the program's checksum does not match its bytes: it is damaged; write or copy it again");
  absl::StatusOr<std::unique_ptr<Program>> program = ParsePayload(payload);
  if (!program.ok()) return base::Annotate(program.status(), "program");
  return program;
}

}  // namespace regatta::program
