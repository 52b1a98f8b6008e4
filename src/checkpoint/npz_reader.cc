#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "checkpoint/npz.h"

namespace regatta::checkpoint {
namespace {

constexpr uint64_t kMaxDirectoryBytes = 64 << 20;
constexpr uint64_t kMaxInflation = 1032;  // deflate cannot do more
constexpr uint64_t kFirstPiece = 1 << 20, kLargestPiece = 256 << 20;
constexpr uint64_t kMaxHeaderBytes = 64 << 10;  // of a .npy

template <typename T>
T At(const std::string& bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError(absl::StrCat("not a readable .npz: ", base::View(what)));
}

class MemorySource final : public NpzReader::Source {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return Damaged("it ends too early");
    if (size > 0) std::memcpy(out, bytes_.data() + offset, size);
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
};

class FileSource final : public NpzReader::Source {
 public:
  FileSource(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  ~FileSource() override { close(fd_); }
  uint64_t size() const override { return size_; }
  absl::Status ReadAt(uint64_t offset, void* out, size_t size) const override {
    char* to = static_cast<char*>(out);
    while (size > 0) {
      const ssize_t n = pread(fd_, to, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::ErrnoStatus("cannot read", path_);
      if (n == 0) return Damaged("it ends too early");
      to += n;
      offset += static_cast<uint64_t>(n);
      size -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_;
};

// A .npy without its data.
struct NpyHeader {
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;  // of the header
};

absl::StatusOr<std::string> ReadString(const NpzReader::Source& source, uint64_t offset, uint64_t size) {
  if (offset > source.size() || size > source.size() - offset) return Damaged("it points behind its end");
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(source.ReadAt(offset, bytes.data(), bytes.size()));
  return bytes;
}

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

absl::StatusOr<Directory> FindDirectory(const NpzReader::Source& source) {
  const uint64_t tail = std::min<uint64_t>(source.size(), 22 + UINT16_MAX);
  ASSIGN_OR_RETURN(const std::string end, ReadString(source, source.size() - tail, tail));
  const size_t at = end.rfind("PK\x05\x06");
  if (at == std::string::npos || end.size() - at < 22) return Damaged("it has no zip directory");
  Directory d{At<uint32_t>(end, at + 16), At<uint32_t>(end, at + 12), At<uint16_t>(end, at + 10)};
  const uint64_t record = source.size() - tail + at;
  if (d.offset != UINT32_MAX && d.bytes != UINT32_MAX && d.entries != UINT16_MAX) return d;
  if (record < 20) return Damaged("its zip64 locator is missing");
  ASSIGN_OR_RETURN(const std::string locator, ReadString(source, record - 20, 20));
  if (locator.compare(0, 4, "PK\x06\x07") != 0) return Damaged("its zip64 locator is missing");
  ASSIGN_OR_RETURN(const std::string wide, ReadString(source, At<uint64_t>(locator, 8), 56));
  if (wide.compare(0, 4, "PK\x06\x06") != 0) return Damaged("its zip64 directory is missing");
  return Directory{At<uint64_t>(wide, 48), At<uint64_t>(wide, 40), At<uint64_t>(wide, 32)};
}

// The first `wanted` of `bytes`; fewer where `compressed` is only the beginning of the data, and not all are wanted.
// The result grows as bytes arrive: what is claimed alone costs no memory.
absl::StatusOr<std::string> Inflate(const std::string& compressed, uint64_t bytes, uint64_t wanted) {
  const bool whole = wanted == bytes;
  std::string out;
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return absl::InternalError("zlib cannot start");
  uint64_t in_done = 0, out_done = 0;
  int rc = Z_OK;
  while (rc == Z_OK && (whole || out_done < wanted)) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data() + in_done));
    z.avail_in = static_cast<uInt>(std::min<uint64_t>(compressed.size() - in_done, 1 << 30));
    const uint64_t piece = std::min(wanted - out_done, std::clamp<uint64_t>(out_done, kFirstPiece, kLargestPiece));
    out.resize(out_done + piece);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + out_done);
    z.avail_out = static_cast<uInt>(piece);
    const uInt in = z.avail_in, room = z.avail_out;
    rc = inflate(&z, Z_NO_FLUSH);
    in_done += in - z.avail_in;
    out_done += room - z.avail_out;
    if (rc == Z_OK && in == z.avail_in && room == z.avail_out) break;
  }
  inflateEnd(&z);
  if (whole && (rc != Z_STREAM_END || out_done != bytes)) return Damaged("an array's compressed data is damaged");
  out.resize(out_done);
  return out;
}

// The text between the quotes, or up to the closing bracket, that follows 'key':.
absl::StatusOr<absl::string_view> DictValue(absl::string_view dict, absl::string_view key) {
  const size_t at = dict.find(absl::StrCat("'", key, "':"));
  if (at == absl::string_view::npos) return Damaged(absl::StrCat("an array's header has no ", key));
  absl::string_view rest = dict.substr(at + key.size() + 3);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const char close = absl::StartsWith(rest, "'") ? '\'' : absl::StartsWith(rest, "(") ? ')' : ',';
  const size_t open = close == ',' ? 0 : 1;
  const size_t end = rest.size() <= open ? absl::string_view::npos : rest.find(close, open);
  if (end == absl::string_view::npos) return Damaged(absl::StrCat("an array's header has a broken ", key));
  return rest.substr(open, end - open);
}

// Sizes and offsets that did not fit 32 bits are in the zip64 field, in this order.
absl::Status ReadZip64(const std::string& extra, uint64_t& bytes, uint64_t& compressed, uint64_t& offset) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint16_t id = At<uint16_t>(extra, at), size = At<uint16_t>(extra, at + 2);
    at += 4;
    if (size > extra.size() - at) return Damaged("its directory is damaged");
    if (id == 1) {
      size_t field = at;
      for (uint64_t* value : {&bytes, &compressed, &offset}) {
        if (*value != UINT32_MAX) continue;
        if (field + 8 > at + size) return Damaged("its directory is damaged");
        *value = At<uint64_t>(extra, field);
        field += 8;
      }
      return absl::OkStatus();
    }
    at += size;
  }
  return absl::OkStatus();
}

// What a .npy of `total` bytes says about itself. `bytes` holds its beginning.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& bytes, uint64_t total) {
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) return Damaged("an array does not open as .npy");
  const bool wide = bytes[6] >= 2;
  const uint64_t begin = wide ? 12 : 10;
  const uint64_t header = wide ? At<uint32_t>(bytes, 8) : At<uint16_t>(bytes, 8);
  if (header > bytes.size() - begin) return Damaged("an array's header is truncated");
  const absl::string_view dict(bytes.data() + begin, header);
  NpyHeader array;
  array.bytes = begin + header;
  ASSIGN_OR_RETURN(const absl::string_view dtype, DictValue(dict, "descr"));
  ASSIGN_OR_RETURN(const absl::string_view order, DictValue(dict, "fortran_order"));
  ASSIGN_OR_RETURN(const absl::string_view shape, DictValue(dict, "shape"));
  array.dtype = std::string(dtype);
  uint64_t elements = 1, item = 0;
  for (absl::string_view part : absl::StrSplit(shape, ',', absl::SkipWhitespace())) {
    uint64_t d = 0;
    if (!absl::SimpleAtoi(part, &d)) return Damaged("an array has a shape that is no list of numbers");
    if (d != 0 && elements > UINT64_MAX / 16 / d) return Damaged("an array has an impossible shape");
    elements *= d;
    array.shape.push_back(d);
  }
  if (order != "False" && array.shape.size() > 1)
    return absl::InvalidArgumentError("the array is in Fortran order: save numpy.ascontiguousarray of it");
  if (dtype.size() < 3 || !absl::SimpleAtoi(dtype.substr(2), &item) || item == 0 || item > 16)
    return absl::InvalidArgumentError(absl::StrCat("the array has dtype ", dtype));
  if (elements * item != total - array.bytes)
    return Damaged(absl::StrCat("an array of ", elements, " elements has ", total - array.bytes, " bytes"));
  return array;
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpy(std::string bytes) {
  ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(bytes, bytes.size()));
  bytes.erase(0, header.bytes);
  return NpyArray{std::move(header.dtype), std::move(header.shape), std::move(bytes)};
}

absl::StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const int fd, base::OpenForReading(path));
  struct stat info {};
  const bool sized = fstat(fd, &info) == 0;
  auto source = std::make_shared<const FileSource>(path, fd, static_cast<uint64_t>(info.st_size));
  if (!sized) return base::ErrnoStatus("cannot read the size of", path);
  absl::StatusOr<NpzReader> reader = From(std::move(source));
  if (!reader.ok()) return base::Annotate(reader.status(), path);
  return reader;
}

absl::StatusOr<NpzReader> NpzReader::FromBytes(std::string bytes) {
  return From(std::make_shared<const MemorySource>(std::move(bytes)));
}

absl::StatusOr<NpzReader> NpzReader::From(std::shared_ptr<const Source> source) {
  NpzReader reader(std::move(source));
  ASSIGN_OR_RETURN(const Directory d, FindDirectory(*reader.source_));
  RETURN_IF_ERROR(reader.ReadDirectory(d.offset, d.bytes, d.entries));
  return reader;
}

absl::Status NpzReader::ReadDirectory(uint64_t offset, uint64_t bytes, uint64_t entries) {
  if (bytes > kMaxDirectoryBytes) return Damaged("its directory is too large");
  ASSIGN_OR_RETURN(const std::string d, ReadString(*source_, offset, bytes));
  for (uint64_t at = 0; entries > 0; --entries) {
    if (d.size() - at < 46 || d.compare(at, 4, "PK\x01\x02") != 0) return Damaged("its directory is damaged");
    Member m;
    m.method = At<uint16_t>(d, at + 10);
    m.crc = At<uint32_t>(d, at + 16);
    m.compressed = At<uint32_t>(d, at + 20);
    m.bytes = At<uint32_t>(d, at + 24);
    m.offset = At<uint32_t>(d, at + 42);
    const uint64_t name = At<uint16_t>(d, at + 28), extra = At<uint16_t>(d, at + 30),
                   comment = At<uint16_t>(d, at + 32);
    if (d.size() - at - 46 < name + extra + comment) return Damaged("its directory is damaged");
    m.name = d.substr(at + 46, name);
    RETURN_IF_ERROR(ReadZip64(d.substr(at + 46 + name, extra), m.bytes, m.compressed, m.offset));
    if (absl::EndsWith(m.name, ".npy")) m.name.resize(m.name.size() - 4);
    at += 46 + name + extra + comment;
    index_.emplace(m.name, members_.size());  // of two with one name the first counts
    members_.push_back(std::move(m));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NpzReader::ReadMember(const Member& m, uint64_t wanted) const {
  ASSIGN_OR_RETURN(const std::string local, ReadString(*source_, m.offset, 30));
  if (local.compare(0, 4, "PK\x03\x04") != 0) return Damaged("a member's header is damaged");
  const uint64_t begin = m.offset + 30 + At<uint16_t>(local, 26) + At<uint16_t>(local, 28);
  if (m.method != 0 && m.method != Z_DEFLATED)
    return absl::UnimplementedError(absl::StrCat("zip method ", m.method, ": use numpy.savez or savez_compressed"));
  if (m.bytes / kMaxInflation > m.compressed) return Damaged("an array claims more bytes than its data can give");
  if (m.method == 0 && m.compressed != m.bytes) return Damaged("an array that is not compressed has two sizes");
  if (begin > source_->size() || m.compressed > source_->size() - begin) return Damaged("it points behind its end");
  const bool whole = wanted >= m.bytes;
  // Data that does not compress takes a little more room than it has bytes.
  ASSIGN_OR_RETURN(std::string bytes,
                   ReadString(*source_, begin, whole ? m.compressed : std::min(m.compressed, 2 * wanted)));
  if (m.method == Z_DEFLATED) {
    ASSIGN_OR_RETURN(bytes, Inflate(bytes, m.bytes, std::min(wanted, m.bytes)));
  }
  if (!whole) return bytes;
  if (bytes.size() != m.bytes || crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != m.crc)
    return Damaged("checksum mismatch");
  return bytes;
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const Member& m : members_) names.push_back(m.name);
  return names;
}

absl::StatusOr<const NpzReader::Member*> NpzReader::Find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end()) return absl::NotFoundError(absl::StrCat("there is no array ", base::View(name)));
  return &members_[found->second];
}

absl::StatusOr<NpyDescription> NpzReader::Describe(std::string_view name) const {
  ASSIGN_OR_RETURN(const Member* const m, Find(name));
  const absl::StatusOr<std::string> bytes = ReadMember(*m, kMaxHeaderBytes);
  absl::StatusOr<NpyHeader> header = bytes.ok() ? ParseNpyHeader(*bytes, m->bytes) : bytes.status();
  if (!header.ok()) return base::Annotate(header.status(), absl::StrCat("array ", m->name));
  return NpyDescription{std::move(header->dtype), std::move(header->shape), m->compressed};
}

absl::StatusOr<NpyArray> NpzReader::Read(std::string_view name) const {
  ASSIGN_OR_RETURN(const Member* const m, Find(name));
  absl::StatusOr<std::string> bytes = ReadMember(*m, UINT64_MAX);
  absl::StatusOr<NpyArray> array = bytes.ok() ? ParseNpy(*std::move(bytes)) : bytes.status();
  if (!array.ok()) return base::Annotate(array.status(), absl::StrCat("array ", m->name));
  return array;
}

}  // namespace regatta::checkpoint
