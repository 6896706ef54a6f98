#include "series/recording_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/checksum.h"
#include "base/text.h"
#include "series/reader_formats.h"
#include "series/reader_intake.h"
#include "series/recording_format.h"
#include "series/samples.h"

namespace flyball::series {
namespace {

using namespace fbr;

constexpr WallTime kLatest(7'258'118'400'000'000'000);  // 2200

struct BlockHeader {
  std::uint8_t type = 0;
  std::uint8_t codec = 0;
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  std::uint32_t payload_crc = 0;
};

std::optional<BlockHeader> parse_header(std::string_view bytes) {
  if (!bytes.starts_with(kSync)) return std::nullopt;
  Cursor cursor(bytes.substr(kSync.size(), kBlockHeaderBytes - kSync.size()));
  BlockHeader header;
  header.type = cursor.u8();
  header.codec = cursor.u8();
  (void)cursor.u8();
  (void)cursor.u8();
  header.stored_bytes = cursor.u32();
  header.raw_bytes = cursor.u32();
  header.payload_crc = cursor.u32();
  const std::uint32_t crc = cursor.u32();
  if (!cursor.ok() || crc != crc32(bytes.substr(0, kBlockHeaderBytes - 4))) return std::nullopt;
  if (header.stored_bytes > kMaxPayloadBytes || header.raw_bytes > kMaxPayloadBytes) return std::nullopt;
  return header;
}

/// Finds sound blocks in a stream of bytes, whatever lies between them.
class BlockFinder {
 public:
  BlockFinder(ByteSource& bytes, RecordingDetails& details) : bytes_(bytes), details_(details) {}

  /// Behind the file header. False at the end; `payload` is valid until the next call.
  Result<bool> next(BlockHeader& header, std::string_view& payload) {
    for (;;) {
      FLYBALL_TRY(fill(kBlockHeaderBytes));
      if (view().size() < kBlockHeaderBytes) return end();
      const auto found = parse_header(view());
      if (!found) {
        skip_to_sync();
        continue;
      }
      FLYBALL_TRY(fill(kBlockHeaderBytes + found->stored_bytes));
      if (view().size() < kBlockHeaderBytes + found->stored_bytes) {
        if (!found_anything_behind()) return end();
        continue;
      }
      const auto stored = view().substr(kBlockHeaderBytes, found->stored_bytes);
      if (crc32(stored) != found->payload_crc) {
        ++details_.damaged_blocks;
        // A torn block may hide sound ones inside the length that it claims. Looking for them is bounded, since a file
        // made for it could nest claims without end.
        const bool look = looked_at_ < kMaxLookedAt;
        looked_at_ += found->stored_bytes;
        lose(look ? kSync.size() : kBlockHeaderBytes + found->stored_bytes);
        continue;
      }
      header = *found;
      FLYBALL_ASSIGN(const bool sound, unpack(header, stored, payload));
      at_ += kBlockHeaderBytes + found->stored_bytes;
      if (sound) return true;
      ++details_.damaged_blocks;
      details_.lost_bytes += kBlockHeaderBytes + found->stored_bytes;
    }
  }
  Result<std::string> file_header() {
    FLYBALL_TRY(fill(kFileHeaderBytes));
    const std::string head(view().substr(0, kFileHeaderBytes));
    at_ += head.size();
    return head;
  }
  std::uint64_t bytes() const { return total_; }
  bool cut() const { return cut_; }

 private:
  static constexpr std::uint64_t kMaxLookedAt = 256ULL << 20;

  std::string_view view() const { return std::string_view(buffer_).substr(at_); }

  Result<> fill(std::size_t wanted) {
    while (view().size() < wanted && !exhausted_) {
      constexpr std::size_t kReadBytes = 1 << 18;
      if (at_ > 0) {
        buffer_.erase(0, at_);
        at_ = 0;
      }
      const std::size_t have = buffer_.size();
      buffer_.resize(have + std::max(kReadBytes, wanted - have));
      auto got = bytes_.read(buffer_.data() + have, buffer_.size() - have);
      buffer_.resize(have + (got ? *got : 0));
      if (!got) return fail(std::move(got.error()));
      exhausted_ = *got == 0;
      total_ += *got;
    }
    return {};
  }
  void lose(std::size_t count) {
    at_ += count;
    details_.lost_bytes += count;
  }
  void skip_to_sync() {
    const auto found = view().find(kSync, 1);
    // Without one, all but what could be its beginning goes.
    lose(found != std::string_view::npos ? found : view().size() - (kSync.size() - 1));
  }
  /// The block reaches beyond the end: torn, or a claim in damaged bytes with sound blocks behind it.
  bool found_anything_behind() {
    const auto found = view().find(kSync, 1);
    if (found == std::string_view::npos) return false;
    lose(found);
    return true;
  }
  Result<bool> end() {
    cut_ = !view().empty();
    lose(view().size());
    return false;
  }
  Result<bool> unpack(const BlockHeader& header, std::string_view stored, std::string_view& payload) {
    if (header.codec == static_cast<std::uint8_t>(Codec::raw)) {
      payload = stored;
      return stored.size() == header.raw_bytes;
    }
    if (header.codec != static_cast<std::uint8_t>(Codec::zstd)) return false;
    unpacked_.resize(header.raw_bytes);
    const std::size_t size = ::ZSTD_decompress(unpacked_.data(), unpacked_.size(), stored.data(), stored.size());
    payload = unpacked_;
    return ::ZSTD_isError(size) == 0 && size == header.raw_bytes;
  }

  ByteSource& bytes_;
  RecordingDetails& details_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string unpacked_;
  bool exhausted_ = false;
  bool cut_ = false;
  std::uint64_t total_ = 0;
  std::uint64_t looked_at_ = 0;
};

class BlockReader {
 public:
  BlockReader(Intake& intake, RecordingDetails& details) : intake_(intake), details_(details) {}

  /// False if the payload is malformed: it was written wrongly, for its checksum is right.
  Result<bool> block(const BlockHeader& header, std::string_view payload) {
    ++details_.blocks;
    Cursor cursor(payload);
    switch (static_cast<BlockType>(header.type)) {
      case BlockType::session:
        return session(cursor);
      case BlockType::series:
        return series(cursor);
      case BlockType::points:
        return points(cursor);
      case BlockType::events:
        return events(cursor);
      case BlockType::end:
        return end(cursor);
    }
    ++details_.unknown_blocks;
    return true;
  }
  /// Something before the next block is lost.
  void lost() { behind_loss_ = true; }
  void end_of_file() { tell_loss({}); }

 private:
  struct OpenSession {
    std::size_t index = 0;  ///< in details_.sessions
    WallTime wall;          ///< the anchor that its times are shown by
    MonoTime mono;
    std::unordered_map<std::uint64_t, std::uint32_t> handles;
  };

  static WallTime wall_of(const OpenSession& session, std::int64_t mono_ns) {
    // Unsigned, since damaged times may be anywhere and wrapping is defined there.
    return WallTime(static_cast<std::int64_t>(static_cast<std::uint64_t>(session.wall.nanoseconds()) +
                                              static_cast<std::uint64_t>(mono_ns) -
                                              static_cast<std::uint64_t>(session.mono.nanoseconds())));
  }
  OpenSession* find(std::uint32_t number) {
    const auto found = sessions_.find(number);
    return found == sessions_.end() ? nullptr : &found->second;
  }

  Result<bool> session(Cursor& cursor) {
    const std::uint32_t number = cursor.u32();
    RecordingSession session;
    session.wall = WallTime(cursor.i64());
    session.mono = MonoTime(cursor.i64());
    session.boot_id = cursor.text();
    session.writer = cursor.text();
    session.source = cursor.text();
    session.interval = Seconds(cursor.f64());
    if (!cursor.ok()) return false;
    constexpr std::size_t kMaxSessions = 100'000;
    if (find(number) != nullptr) return true;  // the definition again
    if (sessions_.size() == kMaxSessions)
      return fail(ErrorCode::input, fmt::format("more than {} sessions", kMaxSessions));
    OpenSession open{details_.sessions.size(), session.wall, session.mono, {}};
    if (!session.boot_id.empty()) {
      const auto [first, is_new] = boots_.try_emplace(session.boot_id, session.wall, session.mono);
      if (!is_new) {
        open.wall = first->second.first;
        open.mono = first->second.second;
        told_step(open, session);
      }
    }
    details_.sessions.push_back({session, 0, false, {}, {}});
    sessions_.emplace(number, std::move(open));
    return true;
  }

  /// The wall clock of a later session of the same boot against where the first one's anchor puts it.
  void told_step(const OpenSession& open, const RecordingSession& session) {
    constexpr std::int64_t kNoticedNs = 10'000'000;  // slewing corrects less than this without a step
    const WallTime expected = wall_of(open, session.mono.nanoseconds());
    const std::int64_t step = static_cast<std::int64_t>(static_cast<std::uint64_t>(session.wall.nanoseconds()) -
                                                        static_cast<std::uint64_t>(expected.nanoseconds()));
    if (step > -kNoticedNs && step < kNoticedNs) return;
    intake_.event(
        {expected, "wall_step", {}, {}, static_cast<double>(step) * 1e-9, "between two sessions of one boot"});
  }

  Result<bool> series(Cursor& cursor) {
    OpenSession* const open = find(cursor.u32());
    const std::uint64_t count = cursor.varint();
    for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
      const std::uint64_t number = cursor.varint();
      auto device = DeviceId::parse(cursor.text());
      const std::string_view signal_name = cursor.text();
      const auto scope = parse_scope(cursor.text());
      std::string source(cursor.text());
      (void)cursor.text();  // the unit follows from the signal
      if (!cursor.ok() || !device) return false;
      if (open == nullptr) continue;
      // A signal or scope of a newer version keeps its points under its own name.
      const auto signal = parse_signal(signal_name);
      if (!signal) source += fmt::format(" {}", signal_name);
      SeriesKey key{*std::move(device), signal.value_or(Signal::other), scope.value_or(Scope::unknown),
                    std::move(source)};
      FLYBALL_ASSIGN(const std::uint32_t handle, intake_.series(key));
      open->handles[number] = handle;
    }
    return cursor.ok();
  }

  Result<bool> points(Cursor& cursor) {
    OpenSession* const open = find(cursor.u32());
    const std::uint64_t columns = cursor.varint();
    std::optional<Interval> seen;
    for (std::uint64_t i = 0; i < columns && cursor.ok(); ++i) {
      if (!column(cursor, open, seen)) return false;
    }
    if (seen) {
      tell_loss(seen->start);
      newest_ = newest_ ? std::max(*newest_, seen->stop) : seen->stop;
    }
    return cursor.ok();
  }

  /// Where the loss before `next` was, if there was one.
  void tell_loss(std::optional<WallTime> next) {
    if (!std::exchange(behind_loss_, false) || details_.losses.size() == RecordingDetails::kMostLosses) return;
    details_.losses.push_back({newest_, next});
  }

  bool column(Cursor& cursor, OpenSession* open, std::optional<Interval>& seen) {
    const std::uint64_t number = cursor.varint();
    const std::uint64_t count = cursor.varint();
    if (!cursor.ok() || count > kMaxPointsPerBlock || count > cursor.left()) return false;
    points_.assign(count, Point{});
    times_.assign(count, 0);
    std::uint64_t last = 0;
    std::uint64_t step = 0;
    for (auto& time : times_) {
      step += static_cast<std::uint64_t>(cursor.signed_varint());
      last += step;
      time = static_cast<std::int64_t>(last);
    }
    for (std::uint64_t from = 0; from < count;) {
      const std::uint8_t status = cursor.u8();
      const std::uint64_t run = cursor.varint();
      if (!cursor.ok() || status > static_cast<std::uint8_t>(Status::garbage) || run == 0 || run > count - from)
        return false;
      for (const std::uint64_t to = from + run; from < to; ++from) points_[from].status = static_cast<Status>(status);
    }
    if (!values(cursor)) return false;
    const auto handle = open == nullptr ? std::unordered_map<std::uint64_t, std::uint32_t>::const_iterator()
                                        : open->handles.find(number);
    if (open == nullptr || handle == open->handles.end()) {
      details_.orphaned_points += count;
      return true;
    }
    details_.sessions[open->index].points += count;
    for (std::uint64_t i = 0; i < count; ++i) {
      const WallTime at = wall_of(*open, times_[i]);
      if (at < WallTime(0) || at > kLatest) {
        intake_.set_aside(details_.blocks, "the stamp is not between 1970 and 2200", "");
        continue;
      }
      seen = seen ? Interval{std::min(seen->start, at), std::max(seen->stop, at)} : Interval{at, at};
      if (points_[i].status == Status::ok) {
        intake_.value(handle->second, at, points_[i].value, details_.blocks, "");
      } else {
        intake_.absent(handle->second, at, points_[i].status, details_.blocks, "");
      }
    }
    return true;
  }

  bool values(Cursor& cursor) {
    const std::uint8_t coding = cursor.u8();
    if (coding > static_cast<std::uint8_t>(ValueCoding::thousandths)) return false;
    std::uint64_t thousandths = 0;
    for (auto& point : points_) {
      if (point.status != Status::ok) continue;
      if (coding == static_cast<std::uint8_t>(ValueCoding::thousandths)) {
        thousandths += static_cast<std::uint64_t>(cursor.signed_varint());
        point.value = static_cast<double>(static_cast<std::int64_t>(thousandths)) / 1000;
      } else {
        point.value = cursor.f64();
      }
    }
    return cursor.ok();
  }

  Result<bool> events(Cursor& cursor) {
    OpenSession* const open = find(cursor.u32());
    const std::uint64_t count = cursor.varint();
    for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
      const std::int64_t mono_ns = cursor.signed_varint();
      Event event;
      event.kind = cursor.text();
      const std::string_view device = cursor.text();
      event.run = cursor.text();
      event.value = cursor.f64();
      event.detail = cursor.text();
      if (!cursor.ok()) return false;
      if (open == nullptr) {
        ++details_.orphaned_points;
        continue;
      }
      event.at = wall_of(*open, mono_ns);
      if (!device.empty()) event.device = DeviceId::parse(device).value_or(DeviceId());
      intake_.event(event);
    }
    return cursor.ok();
  }

  Result<bool> end(Cursor& cursor) {
    OpenSession* const open = find(cursor.u32());
    const std::int64_t mono_ns = cursor.i64();
    const std::uint64_t points = cursor.u64();
    (void)cursor.u64();
    const std::string_view reason = cursor.text();
    if (!cursor.ok()) return false;
    if (open == nullptr) return true;
    auto& session = details_.sessions[open->index];
    session.closed = true;
    session.close_reason = reason;
    session.ended = wall_of(*open, mono_ns);
    if (points > session.points) {
      intake_.warn(fmt::format("{} points that the session wrote are lost", points - session.points));
    }
    return true;
  }

  Intake& intake_;
  RecordingDetails& details_;
  std::unordered_map<std::uint32_t, OpenSession> sessions_;
  std::map<std::string, std::pair<WallTime, MonoTime>, std::less<>> boots_;
  std::vector<Point> points_;
  std::vector<std::int64_t> times_;
  std::optional<WallTime> newest_;  ///< of all points so far
  bool behind_loss_ = false;
};

Result<> check_file_header(const std::string& head) {
  if (!head.starts_with(kMagic)) return fail(ErrorCode::input, "is not a recording");
  Cursor cursor(std::string_view(head).substr(kMagic.size()));
  const std::uint32_t version = cursor.u32();
  const std::uint32_t crc = cursor.u32();
  if (!cursor.ok() || crc != crc32(std::string_view(head).substr(0, kFileHeaderBytes - 4))) {
    return fail(ErrorCode::input, "the recording's first 16 bytes are damaged");
  }
  if (version > kVersion) {
    return fail(ErrorCode::input,
                fmt::format("is a recording of version {}; this program reads up to {}", version, kVersion), {},
                "use a newer flyball");
  }
  return {};
}

void tell_losses(const RecordingDetails& details, Intake& intake) {
  if (details.lost_bytes > 0) {
    intake.warn(fmt::format("{} bytes of {} damaged or torn blocks are lost", details.lost_bytes,
                            std::max<std::uint64_t>(details.damaged_blocks, 1)));
  }
  constexpr std::size_t kMostNamed = 5;
  for (std::size_t i = 0; i < std::min(kMostNamed, details.losses.size()); ++i) {
    const auto& [from, to] = details.losses[i];
    intake.warn(fmt::format("what the lost blocks held lay between {} and {}{}",
                            from ? format_rfc3339(*from) : "the beginning", to ? format_rfc3339(*to) : "the end",
                            from && to ? " (" + format(*to - *from) + ")" : ""));
  }
  if (details.orphaned_points > 0) {
    intake.warn(
        fmt::format("{} points or events are lost with the block that defined their series", details.orphaned_points));
  }
  if (details.unknown_blocks > 0) {
    intake.warn(fmt::format("{} blocks of a newer version were skipped", details.unknown_blocks));
  }
  for (const auto& session : details.sessions) {
    if (!session.closed) {
      intake.warn(fmt::format("the session begun {} was not closed: what it had not flushed is lost, or it still runs",
                              format_rfc3339(session.session.wall)));
    }
  }
}

}  // namespace

Result<ReadSummary> read_recording(ByteSource& bytes, const std::string& name, Sink& sink, RecordingDetails& details) {
  const auto named = [&](Error error) {
    if (error.where.empty()) error.where = name;
    return fail(std::move(error));
  };
  ReadSummary summary;
  summary.format = Format::recording;
  Intake intake(sink, summary);
  intake.believe_steps();
  BlockFinder finder(bytes, details);
  const auto head = finder.file_header();
  if (!head) return named(head.error());
  if (const auto sound = check_file_header(*head); !sound) return named(sound.error());
  BlockReader reader(intake, details);
  BlockHeader header;
  std::string_view payload;
  for (;;) {
    const std::uint64_t lost_before = details.lost_bytes;
    const auto more = finder.next(header, payload);
    if (!more) return named(more.error());
    if (details.lost_bytes > lost_before) reader.lost();
    if (!*more) break;
    const auto sound = reader.block(header, payload);
    if (!sound) return named(sound.error());
    if (!*sound) {
      ++details.damaged_blocks;
      details.lost_bytes += kBlockHeaderBytes + header.stored_bytes;
      reader.lost();
    }
  }
  reader.end_of_file();
  summary.bytes = finder.bytes();
  summary.rows = details.blocks;
  summary.cut = finder.cut();
  tell_losses(details, intake);
  return summary;
}

Result<ReadSummary> read_recording_file(const std::string& path, Sink& sink, RecordingDetails& details) {
  FLYBALL_ASSIGN(auto bytes, open_raw_bytes(path));
  return read_recording(*bytes, path, sink, details);
}

}  // namespace flyball::series
