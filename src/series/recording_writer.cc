#include "series/recording_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>

#include "base/checksum.h"
#include "series/recording_format.h"

namespace flyball::series {
namespace {

using namespace fbr;

// Statuses are stored as their numbers.
static_assert(static_cast<int>(Status::ok) == 0 && static_cast<int>(Status::garbage) == 8);

std::string file_header() {
  Bytes rest;
  rest.u32(kVersion);
  std::string bytes = std::string(kMagic) + rest.str();
  Bytes crc;
  crc.u32(crc32(bytes));
  return bytes + crc.str();
}

std::string block(BlockType type, const std::string& payload) {
  constexpr int kZstdLevel = 3;
  std::string stored(::ZSTD_compressBound(payload.size()), '\0');
  const std::size_t packed = ::ZSTD_compress(stored.data(), stored.size(), payload.data(), payload.size(), kZstdLevel);
  const bool smaller = ::ZSTD_isError(packed) == 0 && packed < payload.size();
  if (smaller) {
    stored.resize(packed);
  } else {
    stored = payload;
  }
  Bytes header;
  header.u8(static_cast<std::uint8_t>(type));
  header.u8(static_cast<std::uint8_t>(smaller ? Codec::zstd : Codec::raw));
  header.u8(0);
  header.u8(0);
  header.u32(static_cast<std::uint32_t>(stored.size()));
  header.u32(static_cast<std::uint32_t>(payload.size()));
  header.u32(crc32(stored));
  std::string bytes = std::string(kSync) + header.str();
  Bytes crc;
  crc.u32(crc32(bytes));
  return bytes + crc.str() + stored;
}

/// The value in thousandths, if that loses nothing: drivers count in mW, mJ and whole Hz.
bool as_thousandths(double value, std::int64_t& thousandths) {
  constexpr double kLargest = 9e15;  // below 2^53, so that neighbours differ
  const double scaled = value * 1000;
  if (!(std::fabs(scaled) < kLargest)) return false;
  thousandths = std::llround(scaled);
  // The sign of a negative zero would be lost.
  return static_cast<double>(thousandths) / 1000 == value && !(thousandths == 0 && std::signbit(value));
}

template <class Points>
void put_values(Bytes& payload, const Points& points) {
  std::vector<std::int64_t> thousandths;
  bool exact = true;
  for (const auto& point : points) {
    std::int64_t value = 0;
    if (point.status != Status::ok) continue;
    exact = exact && as_thousandths(point.value, value);
    thousandths.push_back(value);
  }
  payload.u8(static_cast<std::uint8_t>(exact ? ValueCoding::thousandths : ValueCoding::float64));
  std::int64_t last = 0;
  std::size_t index = 0;
  for (const auto& point : points) {
    if (point.status != Status::ok) continue;
    if (exact) {
      payload.signed_varint(thousandths[index] - last);
      last = thousandths[index++];
    } else {
      payload.f64(point.value);
    }
  }
}

template <class Points>
void put_times(Bytes& payload, const Points& points) {
  // Second differences: a steady interval costs a byte or two. In unsigned numbers, which may wrap.
  std::uint64_t last = 0;
  std::uint64_t last_step = 0;
  for (const auto& point : points) {
    const auto at = static_cast<std::uint64_t>(point.at.nanoseconds());
    const std::uint64_t step = at - last;
    payload.signed_varint(static_cast<std::int64_t>(step - last_step));
    last = at;
    last_step = step;
  }
}

template <class Points>
void put_statuses(Bytes& payload, const Points& points) {
  for (std::size_t from = 0; from < points.size();) {
    std::size_t to = from;
    while (to < points.size() && points[to].status == points[from].status) ++to;
    payload.u8(static_cast<std::uint8_t>(points[from].status));
    payload.varint(to - from);
    from = to;
  }
}

}  // namespace

Result<std::unique_ptr<RecordingWriter>> RecordingWriter::open(Filesystem& files, const std::string& path,
                                                               const RecordingSession& session, Options options) {
  const std::string header = file_header();
  std::string head;
  if (files.exists(path)) {
    FLYBALL_ASSIGN(head, files.read_head(path, kFileHeaderBytes));
  }
  if (head != header) {
    // A file that is new, or whose creation was cut off before anything was in it.
    const bool begun = header.starts_with(head) || head.find_first_not_of('\0') == std::string::npos;
    if (!begun) {
      return fail(ErrorCode::input,
                  head.starts_with(kMagic) ? "is a recording of a newer version" : "exists and is not a recording",
                  path, "choose another file");
    }
    FLYBALL_TRY(files.write_atomically(path, header));
  }
  FLYBALL_ASSIGN(auto file, files.open_append(path));
  // Sessions need to differ, not to count: a clock reading does without reading the file.
  const auto number = static_cast<std::uint32_t>(
      crc32(fmt::format("{} {} {}", session.boot_id, session.mono.nanoseconds(), session.wall.nanoseconds())));
  auto writer = std::unique_ptr<RecordingWriter>(new RecordingWriter(std::move(file), session, number, options));
  // More would not fit into one block at its worst (19 bytes a point).
  writer->options_.max_waiting_points = std::min<std::size_t>(options.max_waiting_points, 1 << 17);
  FLYBALL_TRY(writer->write_definitions());
  FLYBALL_TRY(writer->file_->sync());
  return writer;
}

std::uint32_t RecordingWriter::begin_series(const SeriesKey& key) {
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].key == key) return static_cast<std::uint32_t>(i);
  }
  series_.push_back({key, {}});
  return static_cast<std::uint32_t>(series_.size() - 1);
}

Result<> RecordingWriter::point(std::uint32_t series, MonoTime at, double value, Status status) {
  tell_dropped(at);
  series_[series].points.push_back({at, value, status});
  ++points_;
  if (++waiting_ > options_.max_waiting_points) drop_oldest();
  // Once a block was refused, waiting for the next flush keeps a full disk from being tried at every point.
  if (waiting_ % options_.points_per_block != 0) return {};
  return write_points();
}

Result<> RecordingWriter::event(MonoTime at, const Event& event) {
  constexpr std::size_t kMaxWaitingEvents = 10'000;
  if (events_.size() == kMaxWaitingEvents) events_.erase(events_.begin());
  events_.emplace_back(at, event);
  ++event_count_;
  return {};
}

/// Half of what waits goes, the oldest of each series: seldom, and not one by one.
void RecordingWriter::drop_oldest() {
  for (auto& series : series_) {
    const auto half = static_cast<std::ptrdiff_t>(series.points.size() / 2 + series.points.size() % 2);
    series.points.erase(series.points.begin(), series.points.begin() + half);
    dropped_ += static_cast<std::uint64_t>(half);
    waiting_ -= static_cast<std::size_t>(half);
  }
}

void RecordingWriter::tell_dropped(MonoTime at) {
  if (dropped_ == dropped_told_) return;
  const auto lost = static_cast<double>(dropped_ - dropped_told_);
  dropped_told_ = dropped_;
  (void)event(at, Event{{}, "points_dropped", {}, {}, lost, "the disk took no blocks"});
}

Result<> RecordingWriter::append_block(int type, const std::string& payload) {
  if (payload.size() > kMaxPayloadBytes) {
    return fail(ErrorCode::failed,
                fmt::format("a block of {} bytes is over the format's {}", payload.size(), kMaxPayloadBytes));
  }
  const std::string bytes = block(static_cast<BlockType>(type), payload);
  FLYBALL_TRY(file_->append(bytes));
  bytes_ += bytes.size();
  return {};
}

Result<> RecordingWriter::write_definitions() {
  if (!session_written_ || blocks_since_definition_ >= options_.blocks_per_definition) {
    Bytes payload;
    payload.u32(number_);
    payload.i64(session_.wall.nanoseconds());
    payload.i64(session_.mono.nanoseconds());
    payload.text(session_.boot_id);
    payload.text(session_.writer);
    payload.text(session_.source);
    payload.f64(session_.interval.value());
    FLYBALL_TRY(append_block(static_cast<int>(BlockType::session), payload.str()));
    session_written_ = true;
    blocks_since_definition_ = 0;
    defined_series_ = 0;
  }
  constexpr std::size_t kSeriesPerBlock = 512;
  while (defined_series_ < series_.size()) {
    const std::size_t count = std::min(kSeriesPerBlock, series_.size() - defined_series_);
    Bytes payload;
    payload.u32(number_);
    payload.varint(count);
    for (std::size_t i = defined_series_; i < defined_series_ + count; ++i) {
      const SeriesKey& key = series_[i].key;
      payload.varint(i);
      payload.text(key.device.text());
      payload.text(to_string(key.signal));
      payload.text(to_string(key.scope));
      payload.text(key.source);
      payload.text(unit_of(key.signal));
    }
    FLYBALL_TRY(append_block(static_cast<int>(BlockType::series), payload.str()));
    defined_series_ += count;
  }
  return {};
}

Result<> RecordingWriter::write_points() {
  if (waiting_ == 0) return {};
  FLYBALL_TRY(write_definitions());
  // What waited through a full disk may be more than one block may hold.
  constexpr std::size_t kPointsPerPart = 1 << 16;
  std::size_t next = 0;
  while (next < series_.size()) {
    Bytes columns;
    std::size_t count = 0;
    std::size_t points = 0;
    const std::size_t first = next;
    for (; next < series_.size() && points < kPointsPerPart; ++next) {
      const auto& waiting = series_[next].points;
      if (waiting.empty()) continue;
      columns.varint(next);
      columns.varint(waiting.size());
      put_times(columns, waiting);
      put_statuses(columns, waiting);
      put_values(columns, waiting);
      points += waiting.size();
      ++count;
    }
    if (count == 0) break;
    Bytes payload;
    payload.u32(number_);
    payload.varint(count);
    FLYBALL_TRY(append_block(static_cast<int>(BlockType::points), payload.str() + columns.str()));
    ++blocks_since_definition_;
    for (std::size_t i = first; i < next; ++i) {
      auto& written = series_[i].points;
      if (!written.empty()) kept_until_ = kept_ == 0 ? written.back().at : std::max(kept_until_, written.back().at);
      kept_ += written.size();
      written.clear();
    }
    waiting_ -= points;
  }
  return {};
}

std::optional<WallTime> RecordingWriter::kept_until() const {
  if (kept_ == 0) return std::nullopt;
  return session_.wall + (kept_until_ - session_.mono);
}

Result<> RecordingWriter::write_events() {
  constexpr std::size_t kEventsPerBlock = 200;
  while (!events_.empty()) {
    const std::size_t count = std::min(kEventsPerBlock, events_.size());
    Bytes payload;
    payload.u32(number_);
    payload.varint(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [at, event] = events_[i];
      payload.signed_varint(at.nanoseconds());
      payload.text(event.kind);
      payload.text(event.device.text());
      payload.text(event.run);
      payload.f64(event.value);
      payload.text(event.detail);
    }
    FLYBALL_TRY(append_block(static_cast<int>(BlockType::events), payload.str()));
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return {};
}

Result<> RecordingWriter::flush() {
  FLYBALL_TRY(write_definitions());
  FLYBALL_TRY(write_points());
  FLYBALL_TRY(write_events());
  return file_->sync();
}

Result<> RecordingWriter::close(MonoTime at, const std::string& reason) {
  tell_dropped(at);
  FLYBALL_TRY(flush());
  Bytes payload;
  payload.u32(number_);
  payload.i64(at.nanoseconds());
  payload.u64(points_ - dropped_);
  payload.u64(event_count_);
  payload.text(reason);
  FLYBALL_TRY(append_block(static_cast<int>(BlockType::end), payload.str()));
  return file_->sync();
}

}  // namespace flyball::series
