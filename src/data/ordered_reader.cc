#include "data/ordered_reader.h"

#include <glog/logging.h>
#include <sys/stat.h>

#include <algorithm>

#include "data/file_list.h"
#include "data/slot_key.h"
#include "data/source/pipe_source.h"

namespace regatta::data {
namespace {

std::vector<uint64_t> SaltsOf(const DatasetOptions& options) {
  std::vector<uint64_t> salts;
  if (options.schema.id_space == base::IdSpace::kShared) return salts;
  for (const std::string& slot : options.schema.sparse_slots) salts.push_back(SlotSalt(slot));
  return salts;
}

// Turns the ids of a block into keys of their slots. There is a salt for each slot.
void QualifyKeys(const std::vector<uint64_t>& salts, SampleBlock& block) {
  uint32_t at = 0;
  for (size_t bag = 0; bag < block.ends.size(); ++bag)
    for (const uint64_t salt = salts[bag % salts.size()]; at < block.ends[bag]; ++at)
      block.keys[at] = SlotKey(salt, block.keys[at]);
}

}  // namespace

OrderedReader::OrderedReader(const DatasetOptions& options, const FormatEntry& format, ProgressMeter& meter)
    : options_(options), format_(format), salts_(SaltsOf(options)), meter_(meter) {}

OrderedReader::~OrderedReader() { Stop(); }

absl::Status OrderedReader::AddItems() {
  for (size_t i = 0; i < options_.files.size(); ++i) {
    const std::string& path = options_.files[i];
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return base::ErrnoStatus("cannot open", path);
    RETURN_IF_ERROR(CheckRegular(path));
    const uint64_t size = static_cast<uint64_t>(info.st_size);
    bytes_total_ += size;
    ASSIGN_OR_RETURN(const Compression compression, RecogniseCompression(path));
    const bool whole = !options_.pipe_command.empty() || compression != Compression::kNone || size == 0;
    uint64_t begin = 0;
    do {
      Item& item = items_.emplace_back();
      item.file = static_cast<int>(i);
      item.is_piece = !whole;
      if (!whole) item.range = {begin, std::min(begin + options_.piece_bytes, size)};
      begin += options_.piece_bytes;
    } while (!whole && begin < size);
  }
  return absl::OkStatus();
}

absl::Status OrderedReader::Start() {
  RETURN_IF_ERROR(AddItems());
  const int readers = std::max(1, options_.readers);
  item_bytes_ = std::max<uint64_t>(options_.buffer_bytes / static_cast<uint64_t>(readers), 4 * options_.block_bytes);
  for (int i = 0; i < readers; ++i) threads_.emplace_back([this] { Run(); });
  return absl::OkStatus();
}

void OrderedReader::Interrupt() {
  {
    base::MutexLock lock(mu_);
    stop_ = true;
  }
  room_.NotifyAll();
  ready_.NotifyAll();
}

void OrderedReader::Stop() {
  Interrupt();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void OrderedReader::Run() {
  LineSource lines(options_.block_bytes, options_.max_line_bytes);
  auto parser = format_.make(options_.schema);
  while (Item* item = Claim()) {
    absl::Status status = parser.ok() ? ReadItem(*item, lines, **parser) : parser.status();
    base::MutexLock lock(mu_);
    item->status = std::move(status);
    item->done = true;
    if (item == &items_[head_]) ready_.NotifyOne();
  }
}

OrderedReader::Item* OrderedReader::Claim() {
  const size_t ahead = static_cast<size_t>(std::max(1, options_.readers)) + 1;
  const Clock::time_point start = Clock::now();
  base::MutexLock lock(mu_);
  while (!stop_ && claimed_ < items_.size() && claimed_ >= head_ + ahead) room_.Wait(mu_);
  ProgressMeter::AddSince(start, meter_.blocked);
  if (stop_ || claimed_ == items_.size()) return nullptr;
  return &items_[claimed_++];
}

absl::StatusOr<std::unique_ptr<ByteSource>> OrderedReader::OpenItem(const Item& item) const {
  const std::string& path = options_.files[static_cast<size_t>(item.file)];
  if (item.is_piece) return OpenPlain(path, item.range.begin == 0 ? 0 : item.range.begin - 1);
  if (options_.pipe_command.empty()) return OpenFile(path);
  // Bytes that no name calls compressed are the command's to understand.
  ASSIGN_OR_RETURN(auto file, OpenCompressed(path, CompressionOf(path)));
  const PipeOptions pipe = {options_.pipe_command, options_.pipe_shell, options_.working_folder,
                            options_.pipe_timeout_seconds};
  return OpenPipe(std::move(file), path, pipe, stop_);
}

absl::Status OrderedReader::ReadItem(Item& item, LineSource& lines, Parser& parser) {
  ASSIGN_OR_RETURN(auto bytes, OpenItem(item));
  lines.Open(std::move(bytes), item.range);
  LineBlock text;
  while (!stop_) {
    const Clock::time_point start = Clock::now();
    ASSIGN_OR_RETURN(const bool more, lines.Next(&text));
    ProgressMeter::AddSince(start, meter_.read);
    if (!more) return absl::OkStatus();
    const Clock::time_point parse_start = Clock::now();
    std::unique_ptr<SampleBlock> block = FreshBlock();
    parser.Parse(text.text, *block);
    if (!salts_.empty()) QualifyKeys(salts_, *block);
    if (block->size > 0 && block->keys.empty() && !options_.schema.sparse_slots.empty() &&
        format_.other_slots != nullptr)
      block->other_slots = format_.other_slots(text.text, options_.schema);
    if (text.dropped_line_bytes > 0) {
      block->AddBadLine(block->lines++,
                        absl::StrCat("expected a line of at most ", options_.max_line_bytes, " bytes, found ",
                                     text.dropped_line_bytes),
                        "", 0);
    }
    block->file = item.file;
    block->disk_bytes = text.disk_bytes;
    ProgressMeter::AddSince(parse_start, meter_.parse);
    if (!Put(item, std::move(block))) break;
  }
  return absl::OkStatus();
}

std::unique_ptr<SampleBlock> OrderedReader::FreshBlock() {
  {
    base::MutexLock lock(mu_);
    if (!spare_.empty()) {
      std::unique_ptr<SampleBlock> block = std::move(spare_.back());
      spare_.pop_back();
      return block;
    }
  }
  return std::make_unique<SampleBlock>();
}

void OrderedReader::Recycle(std::unique_ptr<SampleBlock> block) {
  block->Clear();
  base::MutexLock lock(mu_);
  spare_.push_back(std::move(block));
}

bool OrderedReader::Put(Item& item, std::unique_ptr<SampleBlock> block) {
  const Clock::time_point start = Clock::now();
  base::MutexLock lock(mu_);
  while (!stop_ && item.bytes > item_bytes_) room_.Wait(mu_);
  ProgressMeter::AddSince(start, meter_.blocked);
  if (stop_) return false;
  item.bytes += block->MemoryBytes();
  item.blocks.push_back(std::move(block));
  if (&item == &items_[head_]) ready_.NotifyOne();
  return true;
}

absl::StatusOr<std::unique_ptr<SampleBlock>> OrderedReader::Next() {
  std::unique_ptr<SampleBlock> block;
  {
    base::MutexLock lock(mu_);
    while (block == nullptr) {
      if (stop_ || head_ == items_.size()) break;
      Item& item = items_[head_];
      if (!item.blocks.empty()) {
        block = std::move(item.blocks.front());
        item.blocks.pop_front();
        const uint64_t before = item.bytes;
        item.bytes -= block->MemoryBytes();
        if (before > item_bytes_ && item.bytes <= item_bytes_) room_.NotifyAll();
      } else if (item.done) {
        RETURN_IF_ERROR(item.status);
        ++head_;
        room_.NotifyAll();
      } else {
        ready_.Wait(mu_);
      }
    }
  }
  if (block != nullptr) {
    NumberLines(*block);
  } else if (!stop_) {
    for (int file = file_ + 1; file < static_cast<int>(options_.files.size()); ++file) WarnIfEmpty(file);
    file_ = static_cast<int>(options_.files.size());
  }
  return block;
}

void OrderedReader::NumberLines(SampleBlock& block) {
  if (block.file != file_) {
    for (int file = file_ + 1; file < block.file; ++file) WarnIfEmpty(file);
    file_ = block.file;
    file_lines_ = 0;
  }
  block.first_line = file_lines_ + 1;
  file_lines_ += block.lines;
}

void OrderedReader::WarnIfEmpty(int file) const {
  LOG(WARNING) << options_.files[static_cast<size_t>(file)] << " is empty";
}

}  // namespace regatta::data
