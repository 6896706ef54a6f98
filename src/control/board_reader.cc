#include "control/board_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flyball::control {

BoardReader::BoardReader(Driver& driver, Clock& clock, series::RecordingWriter& writer, std::vector<DeviceId> boards,
                         loop::ProgressSource* job)
    : driver_(driver), clock_(clock), log_(writer, driver.name()), boards_(std::move(boards)), job_(job) {}

Result<std::string> BoardReader::find() {
  FLYBALL_ASSIGN(const auto found, driver_.devices());
  if (boards_.empty()) {
    for (const auto& info : found) boards_.push_back(info.id);
  }
  if (boards_.empty())
    return fail(ErrorCode::unsupported, "there is no board to record", driver_.name(), "flyball doctor");
  for (const auto& id : boards_) {
    const bool here = std::any_of(found.begin(), found.end(), [&](const DeviceInfo& info) { return info.id == id; });
    if (!here) return fail(ErrorCode::input, "there is no such board", id.text(), "flyball doctor lists them");
  }
  return fmt::format("{}, {} boards", driver_.name(), boards_.size());
}

void BoardReader::note(MonoTime at) {
  for (const DeviceId& board : boards_)
    if (const auto limits = driver_.limits(board)) log_.range(board, *limits, at);
}

std::uint64_t BoardReader::read() {
  const MonoTime begin = clock_.now();
  std::uint64_t failed = 0;
  for (const DeviceId& board : boards_) {
    if (const auto read = driver_.read(board)) {
      log_.reading(*read);
    } else {
      ++failed;
      log_.failed(board, clock_.now());
    }
  }
  if (job_ != nullptr) log_.progress(job_->progress(), begin);
  return failed;
}

}  // namespace flyball::control
