#pragma once
// Boards, and their job where it tells its progress, as a round of a recording.

#include <string>
#include <vector>

#include "base/clock.h"
#include "control/reading_log.h"
#include "control/sampler.h"
#include "core/driver.h"
#include "loop/progress.h"

namespace flyball::control {

class BoardReader : public RoundReader {
 public:
  /// `boards`: empty = all that are there. `job`: its steps, tokens and phases are recorded too; null = nobody tells
  /// them. All outlive the reader.
  BoardReader(Driver& driver, Clock& clock, series::RecordingWriter& writer, std::vector<DeviceId> boards,
              loop::ProgressSource* job);

  /// Refused: no board, or one that is not there.
  Result<std::string> find() override;
  /// The range of each board's limit.
  void note(MonoTime at) override;
  std::uint64_t read() override;
  std::uint64_t failures() const override { return log_.failures(); }
  std::string last_failure() const override { return log_.last_failure(); }

 private:
  Driver& driver_;
  Clock& clock_;
  ReadingLog log_;
  std::vector<DeviceId> boards_;
  loop::ProgressSource* job_;
};

}  // namespace flyball::control
