#pragma once
// Holds rounds of reads at an interval into a recording, measures what they cost and slows down where they cost too
// much.

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "series/recording_writer.h"

namespace flyball::control {

/// What is read in a round: boards (`board_reader.h`) or meters (`meter_reader.h`).
class RoundReader {
 public:
  virtual ~RoundReader() = default;
  /// Finds what there is to read. What it is, for the event that begins the recording: "nvml, 8 boards".
  virtual Result<std::string> find() = 0;
  /// What does not change, once, before the first round.
  virtual void note(MonoTime /*at*/) {}
  /// Once each, now, into the recording; how many said nothing.
  virtual std::uint64_t read() = 0;
  /// Points that could not be written at once, and why; they wait in the writer.
  virtual std::uint64_t failures() const = 0;
  virtual std::string last_failure() const = 0;
};

struct SamplerOptions {
  Seconds interval{0.5};
  Seconds flush{5};  ///< what a killed process loses at most
  /// Above so much of one core, processor time of this process, the interval doubles. Sampling at 100 ms has cost jobs
  /// 2 % of their decode latency.
  double most_core_fraction = 0.005;
  /// The same for the share of the interval spent in driver calls, which jobs' own calls wait for.
  double most_busy_fraction = 0.1;
  Seconds longest_interval{10};
};

struct SamplerReport {
  std::uint64_t rounds = 0;
  std::uint64_t failed_reads = 0;
  std::uint64_t gaps = 0;  ///< rounds that could not be held: the machine slept, or a call hung
  Seconds longest_gap;
  Seconds call_time_mean;  ///< of a whole round, by the sampler's clock
  Seconds call_time_max;
  double core_fraction = 0;  ///< of one core, over the whole run; 0 if it was not measured
  Seconds interval;          ///< as it is now
  std::uint64_t slowed = 0;  ///< times that the interval was doubled
  std::uint64_t flush_failures = 0;
  std::string flush_error;  ///< the last one
};

class Sampler {
 public:
  /// All outlive the sampler. `core_time` tells this process' processor time; empty where time is virtual.
  Sampler(RoundReader& reader, Clock& clock, series::RecordingWriter& writer, SamplerOptions options,
          std::function<Seconds()> core_time);

  Result<> start();
  /// When the next round is due.
  MonoTime due() const { return due_; }
  /// One round, now: reads all, notes gaps and steps of the wall clock, flushes when it is time.
  void round();
  SamplerReport report() const;

 private:
  void note_gap(MonoTime now);
  void note_wall_step(MonoTime now);
  void adapt(MonoTime now);
  void flush(MonoTime now);
  void event(MonoTime at, const std::string& kind, double value, const std::string& detail);

  RoundReader& reader_;
  Clock& clock_;
  series::RecordingWriter& writer_;
  SamplerOptions options_;
  std::function<Seconds()> core_time_;
  Seconds interval_;
  MonoTime started_, due_, last_round_, flushed_, adapted_;
  Seconds core_at_start_, core_at_adapt_;
  Seconds busy_since_adapt_;
  Seconds busy_;
  std::int64_t wall_offset_ns_ = 0;
  SamplerReport report_;
};

/// Processor time used by this process.
Seconds process_core_time();

}  // namespace flyball::control
