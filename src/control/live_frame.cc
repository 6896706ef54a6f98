#include "control/live_frame.h"

#include <algorithm>
#include <utility>

namespace flyball::control {

LiveFrame::LiveFrame(Driver& driver, Clock& real, guard::LimitAuthority& authority, loop::ProgressSource& job,
                     std::vector<DeviceId> devices, RunRecorder* recorder)
    : driver_(driver),
      real_(real),
      authority_(authority),
      job_(job),
      chosen_(std::move(devices)),
      recorder_(recorder) {}

void LiveFrame::begin_poll() {
  if (order_.empty()) {
    const auto listed = source().devices();
    for (const DeviceInfo& info : listed.value_or(std::vector<DeviceInfo>())) {
      const bool ours = chosen_.empty() || std::find(chosen_.begin(), chosen_.end(), info.id) != chosen_.end();
      if (ours) order_.push_back(info.id);
    }
  }
  for (const DeviceId& device : order_) {
    Board& board = boards_[device];
    board.reading = source().read(device);
    const auto missing = Sample<Milliwatts>::absent(Status::missing);
    const bool read = board.reading.has_value();
    board.limits.requested = read && board.reading->limit_requested ? board.reading->limit_requested : missing;
    board.limits.enforced = read && board.reading->limit_enforced ? board.reading->limit_enforced : missing;
  }
  progress_ = recorder_ != nullptr ? recorder_->progress() : job_.progress();
  const MonoTime now = real_.now();
  if (recorder_ != nullptr) recorder_->polled(now, progress_);
  if (!zero_) {
    zero_ = now;
    clock_.anchor = recorder_ != nullptr ? recorder_->wall_at(now) : real_.wall();
  }
  clock_.time = local(now);
  for (auto& [device, board] : boards_) {
    if (board.reading) board.reading->taken = local(board.reading->taken);
  }
  if (progress_) progress_.value.at = local(progress_.value.at);
}

Result<GpuReading> LiveFrame::read(const DeviceId& device) {
  const auto found = boards_.find(device);
  if (found == boards_.end()) return fail(ErrorCode::input, "it is not among the boards of this run", device.text());
  return found->second.reading;
}

Result<PowerLimits> LiveFrame::limits(const DeviceId& device) {
  const auto found = boards_.find(device);
  if (found == boards_.end()) return source().limits(device);
  PowerLimits& known = found->second.limits;
  const auto now = source().limits(device);
  if (now && now->minimum && now->maximum) {
    known.minimum = now->minimum;
    known.maximum = now->maximum;
  }
  return known;
}

Result<guard::LeaseId> LiveFrame::acquire(const guard::LeaseRequest& request) {
  auto lease = authority_.acquire(request);
  if (recorder_ != nullptr) recorder_->lease(lease ? "given" : "refused");
  return lease;
}

Result<> LiveFrame::renew(guard::LeaseId lease) {
  auto renewed = authority_.renew(lease);
  if (recorder_ != nullptr && !renewed) recorder_->lease("lost");
  return renewed;
}

}  // namespace flyball::control
