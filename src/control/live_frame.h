#pragma once
// The loop's view of a live machine, one poll at a time: everything is read at the beginning of a poll, and until the
// next one that is all the loop sees, at one instant. So what it decides follows from what a recording can hold, and a
// replay repeats it. The loop's clock starts at zero, as a replay's does.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/run_recorder.h"
#include "core/driver.h"
#include "guard/authority.h"
#include "loop/progress.h"

namespace flyball::control {

class LiveFrame final : public Driver, public loop::ProgressSource, public guard::LimitAuthority {
 public:
  /// All outlive the frame; `recorder` may be null. `devices`: those to read, empty = all.
  LiveFrame(Driver& driver, Clock& real, guard::LimitAuthority& authority, loop::ProgressSource& job,
            std::vector<DeviceId> devices, RunRecorder* recorder);

  /// Reads every board and the job. Zero is the end of the first one.
  void begin_poll();
  Clock& clock() { return clock_; }
  /// UTC at zero.
  WallTime started() const { return clock_.anchor; }

  std::string name() const override { return source().name(); }
  Result<DriverEpoch> epoch() override { return source().epoch(); }
  Result<std::vector<DeviceInfo>> devices() override { return source().devices(); }
  Result<GpuReading> read(const DeviceId& device) override;
  /// The range as it is; what is asked for and in force as of this poll.
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override { return source().capabilities(device); }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    return source().set_power_limit(device, limit);
  }
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override {
    return source().lock_clocks(device, range);
  }
  Result<> reset_clocks(const DeviceId& device) override { return source().reset_clocks(device); }
  Sample<WorkloadProgress> progress() override { return progress_; }
  Sample<Seconds> waited(const DeviceId& device) override {
    return recorder_ != nullptr ? recorder_->waited(device) : job_.waited(device);
  }

  Result<guard::LeaseId> acquire(const guard::LeaseRequest& request) override;
  Result<> renew(guard::LeaseId lease) override;
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId lease,
                                                 const std::vector<guard::WriteRequest>& writes) override {
    return authority_.write(lease, writes);
  }
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId lease) override {
    return authority_.release(lease);
  }
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string& reason) override {
    return authority_.restore_all(reason);
  }

 private:
  /// Stands still during a poll.
  struct PollClock final : Clock {
    MonoTime now() const override { return time; }
    WallTime wall() const override { return WallTime(anchor.nanoseconds() + time.nanoseconds()); }
    void sleep_until(MonoTime) override {}
    MonoTime time;
    WallTime anchor;
  };
  struct Board {
    Result<GpuReading> reading = GpuReading();
    PowerLimits limits;  ///< each as last known
  };

  Driver& source() { return recorder_ != nullptr ? static_cast<Driver&>(*recorder_) : driver_; }
  const Driver& source() const { return recorder_ != nullptr ? static_cast<const Driver&>(*recorder_) : driver_; }
  MonoTime local(MonoTime real) const { return MonoTime(real.nanoseconds() - zero_->nanoseconds()); }

  Driver& driver_;
  Clock& real_;
  guard::LimitAuthority& authority_;
  loop::ProgressSource& job_;
  std::vector<DeviceId> chosen_;
  RunRecorder* recorder_;
  PollClock clock_;
  std::optional<MonoTime> zero_;
  std::vector<DeviceId> order_;  ///< the driver's: it is the loop's, and a recording's
  std::map<DeviceId, Board> boards_;
  Sample<WorkloadProgress> progress_ = Sample<WorkloadProgress>::absent(Status::missing);
};

}  // namespace flyball::control
