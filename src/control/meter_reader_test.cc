#include "control/meter_reader.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/memory_filesystem.h"
#include "meter/point.h"
#include "series/reader.h"
#include "series/recording_reader.h"

namespace flyball::control {
namespace {

using meter::MeterReading;
using meter::Quantity;

meter::PointProfile point(const std::string& name, Quantity quantity, const std::string& group = {}) {
  meter::PointProfile made;
  made.name = name;
  made.quantity = quantity;
  made.scope = Scope::pdu;
  made.group = group;
  return made;
}

meter::Profile profile(const std::string& id, std::vector<meter::PointProfile> points) {
  meter::Profile made;
  made.id = id;
  made.points = std::move(points);
  return made;
}

/// Answers what the test says: a value for each point, measured `lag` before; nothing = no answer.
class ScriptedMeter : public meter::Meter {
 public:
  ScriptedMeter(meter::Profile profile, Clock& clock) : profile_(std::move(profile)), clock_(clock) {}
  std::vector<MeterReading> read() override {
    if (!says) return all_absent(profile_, Status::failed, "no answer", clock_);
    std::vector<MeterReading> made;
    for (std::size_t i = 0; i < profile_.points.size(); ++i) {
      MeterReading reading = blank_reading(profile_, profile_.points[i]);
      reading.value = says->at(i);
      reading.received = clock_.now();
      reading.measured = measured ? *measured : clock_.wall() - lag;
      made.push_back(std::move(reading));
    }
    return made;
  }
  std::optional<std::vector<double>> says;
  std::optional<WallTime> measured;
  Seconds lag;

 private:
  meter::Profile profile_;
  Clock& clock_;
};

struct Bench {
  ScriptedMeter& add(const meter::Profile& of) {
    auto made = std::make_unique<ScriptedMeter>(of, clock);
    ScriptedMeter& meter = *made;
    EXPECT_TRUE(reader.add(of, std::move(made)));
    return meter;
  }
  std::uint64_t round() {
    const std::uint64_t failed = reader.read();
    clock.advance(Seconds(10));
    return failed;
  }
  series::Recording recording() {
    EXPECT_TRUE(writer->close(clock.now(), "done"));
    series::RecordingSink sink;
    series::RecordingDetails details;
    EXPECT_TRUE(series::read_recording(*raw_bytes_in_memory(disk.content("m.fbr")), "m", sink, details));
    return std::move(sink.recording);
  }

  VirtualClock clock{WallTime(1'767'225'600'000'000'000)};
  MemoryFilesystem disk;
  std::unique_ptr<series::RecordingWriter> writer =
      *series::RecordingWriter::open(disk, "m.fbr", {clock.wall(), clock.now(), "", "test", "meters", Seconds(10)});
  MeterReader reader{clock, *writer};
};

TEST(MeterReader, PowerAndEnergyOfOneOutletAreOneDeviceAndTheRestIsNamed) {
  Bench bench;
  auto& meter =
      bench.add(profile("pdu-3", {point("a_power", Quantity::power, "a"), point("a_energy", Quantity::energy, "a"),
                                  point("b_power", Quantity::power, "b"), point("volts", Quantity::voltage)}));
  ASSERT_EQ(bench.reader.find().value(), "1 meters, 4 points");
  meter.says = {1000, 5e6, 700, 230};
  EXPECT_EQ(bench.round(), 0U);
  const series::Recording recording = bench.recording();
  ASSERT_EQ(recording.series.size(), 4U);
  EXPECT_EQ(recording.series[0].key,
            (series::SeriesKey{DeviceId::of("pdu-3/a"), Signal::power_average, Scope::pdu, "meter"}));
  EXPECT_EQ(recording.series[1].key, (series::SeriesKey{DeviceId::of("pdu-3/a"), Signal::energy, Scope::pdu, "meter"}));
  EXPECT_EQ(recording.series[2].key.device.text(), "pdu-3/b");
  EXPECT_EQ(recording.series[3].key.source, "volts: voltage in V");
  EXPECT_DOUBLE_EQ(recording.series[3].points.at(0).value, 230);
}

TEST(MeterReader, TwoPowersOfOneMeterAreNeverOneSeries) {
  Bench bench;
  auto& meter = bench.add(profile("ups", {point("input", Quantity::power), point("output", Quantity::power)}));
  ASSERT_TRUE(bench.reader.find());
  meter.says = {1000, 950};
  bench.round();
  const series::Recording recording = bench.recording();
  ASSERT_EQ(recording.series.size(), 2U);
  EXPECT_EQ(recording.series[1].key.device.text(), "ups/output");
  EXPECT_DOUBLE_EQ(recording.series[0].points.at(0).value, 1000);
  EXPECT_DOUBLE_EQ(recording.series[1].points.at(0).value, 950);
}

TEST(MeterReader, AValueStandsWhereItWasMeasuredAndTheSameOneIsNoNews) {
  Bench bench;
  auto& meter = bench.add(profile("rack", {point("power", Quantity::power)}));
  ASSERT_TRUE(bench.reader.find());
  const WallTime begin = bench.clock.wall();
  meter.says = {500};
  meter.measured = begin - Seconds(40);  // a collector that averages
  EXPECT_EQ(bench.round(), 0U);
  EXPECT_EQ(bench.round(), 0U);
  meter.measured = begin - Seconds(20);
  EXPECT_EQ(bench.round(), 0U);
  const auto points = bench.recording().series.at(0).points;
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NEAR((points[0].at - begin).value(), -40, 1e-6);
  EXPECT_NEAR((points[1].at - begin).value(), -20, 1e-6);
}

TEST(MeterReader, AFailedReadHidesNoLateValueAndHoldsUpNoOtherMeter) {
  Bench bench;
  auto& late = bench.add(profile("late", {point("power", Quantity::power)}));
  auto& other = bench.add(profile("other", {point("power", Quantity::power)}));
  ASSERT_TRUE(bench.reader.find());
  late.lag = Seconds(15);
  late.says = other.says = std::vector<double>{500};
  bench.round();
  late.says.reset();
  EXPECT_EQ(bench.round(), 1U);
  late.says = {510};
  EXPECT_EQ(bench.round(), 0U);
  const series::Recording recording = bench.recording();
  const auto& points = recording.series.at(0).points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[1].status, Status::failed);
  EXPECT_DOUBLE_EQ(points[2].value, 510);
  EXPECT_EQ(recording.series.at(1).points.size(), 3U);
}

TEST(MeterReader, NamesThatCannotBeKeptAreRefused) {
  Bench bench;
  EXPECT_FALSE(bench.reader.find());
  bench.add(profile("rack", {point("power", Quantity::power)}));
  const auto make = [&](const meter::Profile& of) { return std::make_unique<ScriptedMeter>(of, bench.clock); };
  const meter::Profile again = profile("rack", {});
  EXPECT_FALSE(bench.reader.add(again, make(again)));
  const meter::Profile endless = profile("pdu", {point(std::string(100, 'x'), Quantity::power)});
  EXPECT_FALSE(bench.reader.add(endless, make(endless)));
}

}  // namespace
}  // namespace flyball::control
