#include "guard/journal.h"

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "guard/bytes.h"

namespace flyball::guard {
namespace {

constexpr std::string_view kFileMagic("FLYJRNL\x01", 8);
constexpr std::string_view kRecordMagic("FBJr", 4);
constexpr std::size_t kHeaderSize = 21;  // magic, length, checksum, type, sequence
constexpr std::size_t kLongestPayload = 8192;
constexpr std::size_t kLargestFile = 16u << 20;
constexpr std::size_t kCompactAbove = 1u << 20;

enum RecordType : std::uint8_t { kStart = 1, kHold = 2, kClose = 3 };

struct Record {
  std::uint8_t type = 0;
  std::uint64_t sequence = 0;
  std::string_view payload;
  std::size_t size = 0;  ///< header included
};

std::string encode_record(std::uint8_t type, std::uint64_t sequence, std::string_view payload) {
  ByteWriter body;
  body.u8(type);
  body.u64(sequence);
  std::string checked = body.bytes();
  checked.append(payload);
  ByteWriter head;
  head.u32(static_cast<std::uint32_t>(payload.size()));
  head.u32(crc32(checked));
  return std::string(kRecordMagic) + head.bytes() + checked;
}

/// The record at the start of `bytes`, if it is whole and its checksum fits.
bool read_record(std::string_view bytes, Record& record) {
  if (bytes.size() < kHeaderSize || !bytes.starts_with(kRecordMagic)) return false;
  ByteReader in(bytes.substr(4));
  const std::uint32_t length = in.u32();
  const std::uint32_t checksum = in.u32();
  if (length > kLongestPayload || bytes.size() < kHeaderSize + length) return false;
  const std::string_view checked = bytes.substr(12, kHeaderSize - 12 + length);
  if (crc32(checked) != checksum) return false;
  record.type = in.u8();
  record.sequence = in.u64();
  record.payload = bytes.substr(kHeaderSize, length);
  record.size = kHeaderSize + length;
  return true;
}

/// Whether what is left is a write that did not finish: too short for what its header announces, or never filled.
bool is_torn(std::string_view rest) {
  if (rest.find_first_not_of('\0') == std::string_view::npos) return true;
  if (rest.size() > kHeaderSize + kLongestPayload) return false;
  if (rest.size() < kRecordMagic.size()) return kRecordMagic.starts_with(rest);
  if (!rest.starts_with(kRecordMagic)) return false;
  if (rest.size() < kHeaderSize) return true;
  ByteReader in(rest.substr(4));
  const std::uint32_t length = in.u32();
  return length <= kLongestPayload && rest.size() < kHeaderSize + length;
}

class Parser {
 public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  JournalContent parse() {
    if (bytes_.empty()) return content_;
    if (bytes_.size() < kFileMagic.size() && kFileMagic.starts_with(bytes_)) {
      content_.torn_tail = true;
      return content_;
    }
    std::size_t at = 0;
    if (bytes_.starts_with(kFileMagic)) at = kFileMagic.size();
    content_.good_bytes = at;
    while (at < bytes_.size()) {
      Record record;
      if (!read_record(bytes_.substr(at), record)) {
        const std::size_t next = next_good(at + 1);
        if (next == bytes_.size() && is_torn(bytes_.substr(at))) {
          content_.torn_tail = true;
          break;
        }
        content_.damage.push_back(fmt::format("bytes {} to {}: no readable record", at, next));
        at = next;
        continue;
      }
      apply(record, at);
      at += record.size;
      content_.good_bytes = at;
    }
    return std::move(content_);
  }

 private:
  std::size_t next_good(std::size_t from) const {
    Record record;
    for (std::size_t at = bytes_.find(kRecordMagic, from); at != std::string_view::npos;
         at = bytes_.find(kRecordMagic, at + 1)) {
      if (read_record(bytes_.substr(at), record)) return at;
    }
    return bytes_.size();
  }

  void apply(const Record& record, std::size_t at) {
    const bool first = content_.records == 0;
    ++content_.records;
    if (!first && record.sequence < content_.next_sequence) {
      content_.damage.push_back(
          fmt::format("byte {}: record {} after record {}; ignored", at, record.sequence, content_.next_sequence - 1));
      return;
    }
    if (!first && record.sequence > content_.next_sequence) {
      content_.damage.push_back(fmt::format("byte {}: {} record(s) missing before record {}", at,
                                            record.sequence - content_.next_sequence, record.sequence));
    }
    content_.next_sequence = record.sequence + 1;
    ByteReader in(record.payload);
    if (record.type == kStart) {
      content_.generation = std::max(content_.generation, in.u64());
    } else if (record.type == kClose) {
      if (const auto device = DeviceId::parse(in.text())) content_.holds.erase(*device);
    } else if (record.type == kHold) {
      if (auto hold = decode_hold(record.payload)) {
        content_.holds.insert_or_assign(hold->device, *hold);
      } else {
        content_.damage.push_back(fmt::format("byte {}: {}", at, hold.error().message()));
      }
    } else {
      content_.damage.push_back(fmt::format("byte {}: record of unknown type {}", at, record.type));
    }
  }

  std::string_view bytes_;
  JournalContent content_;
};

std::string start_payload(std::uint64_t generation) {
  ByteWriter out;
  out.u64(generation);
  return out.bytes();
}

std::string close_payload(const DeviceId& device) {
  ByteWriter out;
  out.text(device.text());
  return out.bytes();
}

}  // namespace

JournalContent parse_journal(std::string_view bytes) { return Parser(bytes).parse(); }

Result<std::unique_ptr<Journal>> Journal::open(Filesystem& files, std::string path) {
  std::unique_ptr<Journal> journal(new Journal(files, std::move(path)));
  auto bytes = files.read(journal->path_, kLargestFile);
  if (!bytes && bytes.error().code != ErrorCode::unsupported) return fail(bytes.error());
  if (bytes) journal->found_ = parse_journal(*bytes);
  if (!journal->found_.damage.empty()) {
    // Kept for a person to look at; without room for the copy the boards are still given back.
    const auto kept = files.write_atomically(journal->path_ + ".damaged", *bytes);
    log::error("guard", "{} is damaged ({}; {} place(s)); {}", journal->path_, journal->found_.damage.front(),
               journal->found_.damage.size(),
               kept ? "a copy is kept as " + journal->path_ + ".damaged" : "and cannot be copied");
  }
  journal->sequence_ = journal->found_.next_sequence;
  for (const auto& [device, hold] : journal->found_.holds) journal->live_[device] = encode_hold(hold);
  ++journal->found_.generation;
  journal->broken_ = true;
  if (const auto mended = journal->mend(); !mended) {
    log::error("guard", "the journal cannot be written, so no new lease is given: {}", mended.error().message());
  }
  return journal;
}

std::string Journal::compacted() {
  std::string bytes(kFileMagic);
  bytes += encode_record(kStart, sequence_++, start_payload(found_.generation));
  for (const auto& [device, payload] : live_) bytes += encode_record(kHold, sequence_++, payload);
  return bytes;
}

Result<> Journal::mend() {
  file_.reset();
  broken_ = true;
  const std::string bytes = compacted();
  FLYBALL_TRY(files_.write_atomically(path_, bytes));
  FLYBALL_ASSIGN(file_, files_.open_append(path_));
  size_ = bytes.size();
  broken_ = false;
  return {};
}

Result<> Journal::append(std::uint8_t type, std::string_view payload, Durability durability) {
  if (broken_) FLYBALL_TRY(mend());  // writes `live_`, which already holds what was asked for
  const std::string record = encode_record(type, sequence_++, payload);
  broken_ = true;
  FLYBALL_TRY(file_->append(record));
  if (durability == Durability::survives_power_cut) FLYBALL_TRY(file_->sync());
  broken_ = false;
  size_ += record.size();
  // A failed compaction leaves the old file, which is complete.
  if (size_ > kCompactAbove && !mend()) return {};
  return {};
}

Result<> Journal::save(const Hold& hold, Durability durability) {
  std::string payload = encode_hold(hold);
  if (payload.size() > kLongestPayload) {
    return fail(ErrorCode::failed, fmt::format("a journal record of {} bytes is too long", payload.size()), path_);
  }
  live_[hold.device] = payload;
  return append(kHold, payload, durability);
}

Result<> Journal::close(const DeviceId& device, Durability durability) {
  live_.erase(device);
  return append(kClose, close_payload(device), durability);
}

}  // namespace flyball::guard
