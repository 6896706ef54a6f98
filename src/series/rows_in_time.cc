#include "series/rows_in_time.h"

namespace flyball::series {
namespace {

constexpr double kFarAheadNs = 86400e9;
constexpr std::size_t kMostWaiting = 5 * kConfirmingRows;

}  // namespace

bool far_ahead(WallTime later, WallTime earlier) {
  // As doubles: stamps of any year may meet, and whole numbers would overflow.
  return static_cast<double>(later.nanoseconds()) - static_cast<double>(earlier.nanoseconds()) > kFarAheadNs;
}

std::span<FacilityRow> RowsInTime::take(FacilityRow row) {
  ready_.clear();
  const WallTime at = row.sample.at;
  if (last_ && at > *last_ && !far_ahead(at, *last_)) {
    // The clock is where it was: what waits was wrong.
    while (!waiting_.empty()) set_aside_last();
    last_ = at;
    ++counts_.rows;
    ready_.push_back(std::move(row));
  } else {
    put_in_order(std::move(row));
  }
  return ready_;
}

void RowsInTime::put_in_order(FacilityRow row) {
  const WallTime at = row.sample.at;
  if (last_ && at <= *last_) return not_later(row, *last_);
  while (!waiting_.empty() && far_ahead(waiting_.back().sample.at, at)) set_aside_last();
  if (!waiting_.empty() && at <= waiting_.back().sample.at) return not_later(row, waiting_.back().sample.at);
  waiting_.push_back(std::move(row));
  if (newest_run() >= kConfirmingRows) return release(waiting_.size());
  // Rows that are days apart each: many later ones confirm the first as well.
  if (waiting_.size() > kMostWaiting) release(1);
}

void RowsInTime::not_later(const FacilityRow& row, WallTime than) {
  ++counts_.out_of_order;
  if (far_ahead(than, row.sample.at)) ++counts_.far_back;
  if (counts_.first_back.empty()) counts_.first_back = in_words(row);
}

void RowsInTime::set_aside_last() {
  ++counts_.ahead;
  counts_.first_ahead = in_words(waiting_.back());
  waiting_.pop_back();
}

void RowsInTime::release(std::size_t count) {
  for (; count > 0; --count) {
    last_ = waiting_.front().sample.at;
    ++counts_.rows;
    ready_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

/// How many of those that wait, the newest of them, are less than a day apart each.
std::size_t RowsInTime::newest_run() const {
  std::size_t count = waiting_.empty() ? 0 : 1;
  while (count > 0 && count < waiting_.size()) {
    const std::size_t i = waiting_.size() - count;
    if (far_ahead(waiting_[i].sample.at, waiting_[i - 1].sample.at)) break;
    ++count;
  }
  return count;
}

std::span<FacilityRow> RowsInTime::finish() {
  ready_.clear();
  if (!last_) {
    while (newest_run() < waiting_.size()) set_aside_last();
    release(waiting_.size());
  }
  while (!waiting_.empty()) set_aside_last();
  return ready_;
}

}  // namespace flyball::series
