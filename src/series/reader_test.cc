#include "series/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <clocale>
#include <cstdlib>

#include "base/random.h"
#include "base/temp_dir.h"
#include "series/reader_stamp.h"

namespace flyball::series {
namespace {

struct Read {
  ReadSummary summary;
  Recording recording;
  std::string error;

  const Series* find(std::string_view device, Signal signal = Signal::power_average,
                     Scope scope = Scope::unknown) const {
    for (const auto& series : recording.series) {
      if (series.key.device.text() == device && series.key.signal == signal &&
          (scope == Scope::unknown || series.key.scope == scope)) {
        return &series;
      }
    }
    return nullptr;
  }
  /// "250.12 ok, 0 missing" of one series.
  std::string points(std::string_view device, Signal signal = Signal::power_average,
                     Scope scope = Scope::unknown) const {
    const Series* series = find(device, signal, scope);
    if (series == nullptr) return "no such series";
    std::string text;
    for (const auto& point : series->points) {
      char value[64];
      std::snprintf(value, sizeof value, "%g ", point.value);
      text += (text.empty() ? "" : ", ") + (point.status == Status::ok ? value : std::string()) +
              std::string(to_string(point.status));
    }
    return text;
  }
  std::string quarantine() const {
    std::string text;
    for (const auto& row : recording.quarantined) text += std::to_string(row.line) + ": " + row.reason + "\n";
    return text;
  }
  double total() const {
    double sum = 0;
    for (const auto& series : recording.series) {
      for (const auto& point : series.points) sum += point.status == Status::ok ? point.value : 0;
    }
    return sum;
  }
};

Read read(std::string_view text, ReadOptions options = {}, const std::string& name = "test") {
  RecordingSink sink;
  Read read;
  const auto summary = read_bytes(bytes_in_memory(text), name, options, sink);
  if (summary) {
    read.summary = *summary;
  } else {
    read.error = summary.error().message();
  }
  read.recording = std::move(sink.recording);
  for (const auto& series : read.recording.series) {
    for (std::size_t i = 1; i < series.points.size(); ++i) EXPECT_LT(series.points[i - 1].at, series.points[i].at);
  }
  return read;
}

bool mentions(const std::vector<std::string>& lines, std::string_view word) {
  for (const auto& line : lines) {
    if (line.find(word) != std::string::npos) return true;
  }
  return false;
}

constexpr std::string_view kGpu = "GPU-5f1c0a3e-8d6b-4b6f-9a1e-000000000001";

std::string smi_row(int second, std::string_view power, std::string_view limit = "700.00 W") {
  char time[40];
  std::snprintf(time, sizeof time, "2024/05/17 15:38:%02d.411", second);
  return std::string(time) + ", " + std::string(kGpu) + ", " + std::string(power) + ", " + std::string(limit) + "\n";
}
const std::string kSmiHeader = "timestamp, uuid, power.draw [W], enforced.power.limit [W]\n";

TEST(NvidiaSmi, ReadsUnitsInCellsAndWithout) {
  const Read with = read(kSmiHeader + smi_row(1, "250.12 W") + smi_row(2, "251.00 W"));
  EXPECT_EQ(with.summary.format, Format::nvidia_smi);
  EXPECT_EQ(with.points(kGpu), "250.12 ok, 251 ok");
  EXPECT_EQ(with.points(kGpu, Signal::limit_enforced), "700 ok, 700 ok");
  EXPECT_EQ(format_rfc3339(with.recording.series[0].points[0].at), "2024-05-17T15:38:01.411Z");
  EXPECT_TRUE(mentions(with.summary.warnings, "read as UTC"));
  const Read without = read(kSmiHeader + smi_row(1, "250.12", "700.00") + smi_row(2, "251.00", "700.00"));
  EXPECT_EQ(without.points(kGpu), "250.12 ok, 251 ok");
}

TEST(NvidiaSmi, CellsWithoutValueSayWhyAndTheRowSurvives) {
  const Read r = read(kSmiHeader + smi_row(1, "[N/A]") + smi_row(2, "[Not Supported]") + smi_row(3, "[Unknown Error]") +
                      smi_row(4, "ERR!") + smi_row(5, "[GPU is lost]") + smi_row(6, "[Insufficient Permissions]") +
                      smi_row(7, "") + smi_row(8, "nan") + smi_row(9, "banana") + smi_row(10, "250.12 W"));
  EXPECT_EQ(r.points(kGpu),
            "missing, not_supported, failed, failed, lost, no_permission, missing, missing, garbage, 250.12 ok");
  EXPECT_EQ(r.find(kGpu, Signal::limit_enforced)->points.size(), 10U);
  EXPECT_EQ(r.summary.points[static_cast<std::size_t>(Status::ok)], 11U);
  EXPECT_EQ(r.summary.quarantined, 0U);
}

TEST(NvidiaSmi, BomCrLfAndHeaderRepeatedInTheMiddle) {
  const std::string header = "timestamp, uuid, power.draw [W], enforced.power.limit [W]\r\n";
  const Read r = read("\xef\xbb\xbf" + header + smi_row(1, "250 W") + header + smi_row(2, "251 W"));
  EXPECT_EQ(r.points(kGpu), "250 ok, 251 ok");
  EXPECT_EQ(r.summary.repeated_headers, 1U);
}

TEST(NvidiaSmi, AnotherHeaderInTheMiddleChangesTheColumns) {
  const Read r = read(kSmiHeader + smi_row(1, "250 W") + "timestamp, uuid, enforced.power.limit [W], power.draw [W]\n" +
                      smi_row(2, "700 W", "251 W"));
  EXPECT_EQ(r.points(kGpu), "250 ok, 251 ok");
}

TEST(NvidiaSmi, CommaDecimals) {
  const Read r = read(kSmiHeader + "2024/05/17 15:38:01,411, " + std::string(kGpu) + ", 250,12 W, 700,00 W\n" +
                      smi_row(2, "1,234 W") + smi_row(3, "251,50 W", "700,00 W"));
  EXPECT_EQ(r.points(kGpu), "250.12 ok, garbage, 251.5 ok");  // 1.234 W or 1234 W: nobody knows
  const Read semicolons =
      read("timestamp;uuid;power.draw [W]\n2024/05/17 15:38:01.411;" + std::string(kGpu) + ";250,12 W\n");
  EXPECT_EQ(semicolons.points(kGpu), "250.12 ok");
}

TEST(Readers, DecimalCommasAreReadWhereNothingElseCanBeMeant) {
  for (const char* text :
       {"time;gpu;power_w\n1715960300;GPU-a;250,5\n1715960301;GPU-a;1234,125\n1715960302;GPU-a;0,125\n",
        "time,gpu,power_w\n1715960300,GPU-a,\"250,5\"\n1715960301,GPU-a,\"1234,125\"\n"
        "1715960302,GPU-a,\"0,125\"\n",
        "time\tgpu\tpower_w\n1715960300\tGPU-a\t250,5 W\n1715960301\tGPU-a\t1234,125 W\n"
        "1715960302\tGPU-a\t0,125 W\n"}) {
    const Read r = read(text);
    EXPECT_EQ(r.points("GPU-a"), "250.5 ok, 1234.12 ok, 0.125 ok") << text;
    EXPECT_EQ(refusals_text(r.summary), "");
  }
  // Between commas that separate, nobody can tell: the rows are set aside and the remedy is named.
  const Read r = read("time,0,1\n1715960300,5,250,12,251,00\n1715960301,5,250,12,251,00\n");
  EXPECT_EQ(r.summary.good_points(), 0U);
  EXPECT_EQ(r.summary.quarantined, 2U);
  EXPECT_NE(r.quarantine().find("semicolons"), std::string::npos) << r.quarantine();
}

TEST(Readers, WhatCannotBeUsedIsSaidWithLineValueAndRemedy) {
  const std::string head = "time,gpu,power_w\n1715960300,GPU-a,250\n";
  const auto reason = [&](const std::string& cell) {
    return refusals_text(read(head + "1715960301,GPU-a," + cell + "\n1715960302,GPU-a," + cell + "\n").summary);
  };
  EXPECT_EQ(refusals_text(read(head).summary), "");
  EXPECT_NE(reason("-250").find("2 values from line 3 on ('-250'): it is below zero"), std::string::npos)
      << reason("-250");
  EXPECT_NE(reason("\"1,234\"").find("('1,234'): the comma may stand before decimals or thousands"), std::string::npos);
  EXPECT_NE(reason("\"1,234.5\"").find("marks for thousands"), std::string::npos);
  EXPECT_NE(reason("250 hp").find("('250 hp'): its unit is unknown"), std::string::npos) << reason("250 hp");
  EXPECT_NE(reason("banana").find("it is no number"), std::string::npos);
  EXPECT_NE(reason("1e400").find("beyond what a number can hold"), std::string::npos) << reason("1e400");
  EXPECT_NE(reason("4294967").find("outside 0 to 3000"), std::string::npos) << reason("4294967");
  EXPECT_EQ(reason("[N/A]"), "") << "a word that says why there is no value is no fault of the file";
  std::string many = head;
  for (int i = 0; i < 100; ++i) many += fmt::format("{},GPU-a,{}\n", 1715960301 + i, -1 - i);
  EXPECT_EQ(read(many).summary.refusals.size(), 1U);
  EXPECT_EQ(read(many).summary.refusals[0].count, 100U);
}

TEST(Stamps, PointsSayThatTheDayComesFirstAndSlashesDoNotTell) {
  const Read r = read("time;gpu;power_w\n17.05.2024 15:38:01,5;GPU-a;250,5\n17.05.2024 15:38:02;GPU-a;251\n");
  EXPECT_EQ(r.points("GPU-a"), "250.5 ok, 251 ok");
  EXPECT_EQ(format_rfc3339(r.recording.series.at(0).points[0].at), "2024-05-17T15:38:01.500Z");
  for (const char* stamp : {"05/17/2024 15:38:01", "5/7/24 15:38", "17/05/2024 15:38:01"}) {
    const Read odd = read(fmt::format("time;gpu;power_w\n{};GPU-a;250\n", stamp));
    EXPECT_EQ(odd.summary.good_points(), 0U) << stamp;
    EXPECT_NE(odd.quarantine().find("day and month cannot be told apart"), std::string::npos) << odd.quarantine();
    EXPECT_NE(odd.quarantine().find(stamp), std::string::npos);
  }
  for (const char* stamp : {"31.02.2024 15:38:01", "17.5.2024 15:38:01", "17.05.24 15:38:01.000"}) {
    const Read odd = read(fmt::format("time;gpu;power_w\n{};GPU-a;250\n", stamp));
    EXPECT_EQ(odd.summary.good_points(), 0U) << stamp;
    EXPECT_NE(odd.quarantine().find("2024-05-17T15:00:00Z"), std::string::npos) << odd.quarantine();
  }
}

TEST(Readers, ACutCompressedFileGivesWhatIsThereAndSaysHowFar) {
  std::string text = "time,gpu,power_w\n";
  Random random(3);
  for (int i = 0; i < 40'000; ++i)
    text += fmt::format("{}.{:03},GPU-a,{:.3f}\n", 1715960300 + i, random.below(1000), 250 + 50 * random.uniform());
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  const Read half = read(packed.substr(0, packed.size() / 2));
  EXPECT_GT(half.summary.good_points(), 10'000U);
  EXPECT_LT(half.summary.good_points(), 30'000U);
  EXPECT_TRUE(half.summary.cut);
  EXPECT_TRUE(mentions(half.summary.warnings, fmt::format("cut off behind {} bytes", half.summary.bytes)));
  for (const std::size_t keep : {4U, 20U, 2000U}) {
    const Read none = read(packed.substr(0, keep));
    EXPECT_NE(none.error.find("the zstd stream is cut off"), std::string::npos) << none.error;
    EXPECT_EQ(none.error.find("empty"), std::string::npos) << none.error;
  }
}

TEST(NvidiaSmi, LastLineCut) {
  const std::string whole = kSmiHeader + smi_row(1, "250.12 W") + smi_row(2, "251.00 W");
  for (std::size_t keep = kSmiHeader.size() + smi_row(1, "250.12 W").size(); keep < whole.size(); ++keep) {
    const Read r = read(whole.substr(0, keep));
    const Series* power = r.find(kGpu);
    ASSERT_NE(power, nullptr);
    for (const auto& point : power->points) {
      if (point.status == Status::ok) {
        EXPECT_TRUE(point.value == 250.12 || point.value == 251.0) << keep;
      }
    }
    for (const auto& point : r.find(kGpu, Signal::limit_enforced)->points) {
      if (point.status == Status::ok) {
        EXPECT_EQ(point.value, 700) << keep;
      }
    }
  }
  EXPECT_TRUE(read(whole.substr(0, whole.size() - 5)).summary.cut);
}

TEST(NvidiaSmi, RowsThatFitNoHeaderAreSetAsideWithTheirLine) {
  const Read r = read(kSmiHeader + smi_row(1, "250 W") + "Unable to determine the device handle\n" +
                      smi_row(3, "251 W") + "not a time, " + std::string(kGpu) + ", 250 W, 700 W\n");
  EXPECT_EQ(r.points(kGpu), "250 ok, 251 ok");
  EXPECT_EQ(r.summary.quarantined, 2U);
  EXPECT_NE(r.quarantine().find("3: it has 1 cells where the header has 4\n5: the stamp cannot be read"),
            std::string::npos)
      << r.quarantine();
  EXPECT_NE(r.quarantine().find("'not a time'"), std::string::npos) << "the value is named";
}

TEST(NvidiaSmi, IndexOnlyIsNamedSyntheticallyWithAWarning) {
  ReadOptions options;
  options.index_prefix = "host7";
  const Read r = read("timestamp, index, power.draw [W]\n2024/05/17 15:38:01.411, 3, 250 W\n", options);
  EXPECT_EQ(r.points("host7/gpu-3"), "250 ok");
  EXPECT_TRUE(mentions(r.summary.warnings, "host7/gpu-3"));
}

TEST(NvidiaSmi, InstantAndAverageAndModuleAreSeriesOfTheirOwn) {
  const Read r = read(
      "timestamp, uuid, power.draw [W], power.draw.average [W], power.draw.instant [W], module.power.draw.instant [W]\n"
      "2024/05/17 15:38:01.411, GPU-a, 1 W, 2 W, 3 W, 4 W\n");
  ASSERT_EQ(r.recording.series.size(), 4U);
  EXPECT_EQ(r.recording.series[0].key.source, "nvidia-smi power.draw");
  EXPECT_EQ(r.recording.series[2].key.signal, Signal::power_instant);
  EXPECT_EQ(r.recording.series[3].key.scope, Scope::module);
}

TEST(NvidiaSmi, UnitsBecomeBaseUnits) {
  const Read r = read(
      "timestamp, uuid, power.draw [W], clocks.sm [MHz], utilization.gpu [%], fan.speed [%], "
      "clocks_event_reasons.active, temperature.gpu\n"
      "2024/05/17 15:38:01.411, GPU-a, 250120 mW, 1410 MHz, 37 %, 30 %, 0x0000000000000084, 61\n"
      "2024/05/17 15:38:02.411, GPU-a, 0.25 kW, 1410, 37, 30, 0x0000000000000000, 61\n"
      "2024/05/17 15:38:03.411, GPU-a, 250 J, 1410 W, 370, 30, 4, 61\n");
  EXPECT_EQ(r.points("GPU-a"), "250.12 ok, 250 ok, garbage");
  EXPECT_EQ(r.points("GPU-a", Signal::sm_clock), "1.41e+09 ok, 1.41e+09 ok, garbage");
  EXPECT_EQ(r.points("GPU-a", Signal::utilisation), "0.37 ok, 0.37 ok, garbage");
  EXPECT_EQ(r.points("GPU-a", Signal::throttle), "132 ok, 0 ok, 4 ok");
}

TEST(Stamps, BackwardRepeatedAndFarAheadAreKeptOutAndCounted) {
  const auto row = [](const char* time, int watts) {
    return "2024/05/" + std::string(time) + ".000, GPU-a, " + std::to_string(watts) + " W\n";
  };
  const Read r = read("timestamp, uuid, power.draw [W]\n" + row("17 10:00:00", 100) + row("17 10:00:01", 101) +
                      row("17 10:00:01", 999) + row("17 09:00:00", 999) + row("17 10:00:02", 102) +
                      "2099/01/01 00:00:00.000, GPU-a, 999 W\n" + row("17 10:00:03", 103) +
                      // A real gap of ten days: its first row is not believed, its second is.
                      row("27 10:00:00", 999) + row("27 10:00:01", 104) + row("27 10:00:02", 105));
  EXPECT_EQ(r.points("GPU-a"), "100 ok, 101 ok, 102 ok, 103 ok, 104 ok, 105 ok");
  EXPECT_EQ(r.summary.backward_stamps, 1U);
  EXPECT_EQ(r.summary.repeated_stamps, 1U);
  EXPECT_EQ(r.summary.suspect_stamps, 2U);
  EXPECT_EQ(r.summary.quarantined, 4U);
}

TEST(Stamps, LocalTimeFollowsZoneAndFold) {
  const std::string text =
      "timestamp, uuid, power.draw [W]\n2024/10/27 01:59:59.000, GPU-a, 1 W\n2024/10/27 02:30:00.000, GPU-a, 2 W\n"
      "2024/10/27 03:00:00.000, GPU-a, 3 W\n";
  ReadOptions options;
  options.zone = "Europe/Berlin";
  const Read refused = read(text, options);
  EXPECT_EQ(refused.points("GPU-a"), "1 ok, 3 ok");
  EXPECT_NE(refused.quarantine().find("3: the stamp lies in the hour that the zone repeats"), std::string::npos);
  options.fold = Fold::later;
  const Read later = read(text, options);
  EXPECT_EQ(format_rfc3339(later.recording.series[0].points[1].at), "2024-10-27T01:30:00.000Z");
  options.zone = "Nowhere/City";
  EXPECT_NE(read(text, options).error.find("IANA"), std::string::npos);
}

TEST(Stamps, FormsOfTime) {
  for (const char* stamp : {"1715960308", "1715960308.000", "1715960308000", "1715960308000000", "1715960308000000000",
                            "1.715960308e9", "2024-05-17T15:38:28Z", "2024-05-17 17:38:28+02:00", "2024-05-17T15:38:28",
                            "2024/05/17 15:38:28,000", "2024-05-17 15:38:28.000 UTC"}) {
    const Read r = read("time,node,power_w\n\"" + std::string(stamp) + "\",a,5\n");
    ASSERT_EQ(r.points("a"), "5 ok") << stamp << r.quarantine() << r.error;
    EXPECT_EQ(r.recording.series[0].points[0].at.nanoseconds(), 1'715'960'308'000'000'000) << stamp;
  }
  for (const char* stamp : {"0", "12", "99999999999999999999", "-5", "2024-13-01 00:00:00", "2024-05-17 25:00:00",
                            "2024-05-17", "1970-01-01 00:00:00", "2024-05-17 15:38:28+99:00", "nan", "", "1e300"}) {
    EXPECT_EQ(read("time,node,power_w\n" + std::string(stamp) + ",a,5\n").summary.quarantined, 1U) << stamp;
  }
}

TEST(NodePower, KeepsRunNodeAndBothMeters) {
  const Read r = read(
      "run,node,time_ms,ac_w,dc_w\n"
      "5730-2_3,1,1715874513845,4407,4224\n5730-2_3,1,1715874515852,3506,\n5730-2_3,2,1715874515852,3500,0\n"
      "5730-2_3,1,1715874513000,9999,9999\n5730-2_3,1,1715874517852,-1,65535\n");
  EXPECT_EQ(r.summary.format, Format::node_power);
  EXPECT_EQ(r.points("5730-2_3/node-1", Signal::power_average, Scope::node_ac), "4407 ok, 3506 ok, garbage");
  EXPECT_EQ(r.points("5730-2_3/node-1", Signal::power_average, Scope::node_dc), "4224 ok, missing, garbage");
  EXPECT_EQ(r.points("5730-2_3/node-2", Signal::power_average, Scope::node_dc),
            "garbage");  // a node that draws 3.5 kW draws no 0 W
  EXPECT_EQ(r.summary.backward_stamps, 2U);
  EXPECT_EQ(r.summary.quarantined, 1U);
}

TEST(Events, QuotedJsonAndNumbers) {
  const Read r = read(
      "system,benchmark,run,time_ms,event,value,step_or_samples\n"
      "64x,gpt3,run-1,1715257378825,run_start,,\n64x,gpt3,run-1,1715257378826,eval_start,,1536\n"
      "64x,gpt3,run-1,1715257378827,tracked_stats,\"{\"\"throughput\"\": 2.05}\",1536\n"
      "64x,gpt3,run-1,1715257378828,eval_accuracy,0.925,1536\nbroken\n64x,gpt3,run-1,x,eval_stop,,\n");
  EXPECT_EQ(r.summary.format, Format::events);
  ASSERT_EQ(r.recording.events.size(), 4U);
  EXPECT_EQ(r.recording.events[0].kind, "run_start");
  EXPECT_EQ(r.recording.events[0].run, "run-1");
  EXPECT_EQ(r.recording.events[1].value, 1536);
  EXPECT_NE(r.recording.events[2].detail.find("{\"throughput\": 2.05}"), std::string::npos);
  EXPECT_EQ(r.recording.events[3].value, 0.925);
  EXPECT_EQ(r.summary.quarantined, 2U);
}

TEST(Mllog, ReadingsEventsAndNames) {
  const std::string text =
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1715960308411, \"event_type\": \"INTERVAL_START\", \"key\": "
      "\"power_measurement_start\", \"value\": null, \"metadata\": \"\"}\n"
      "0: :::MLLOG {\"time_ms\": 1715960310411, \"key\": \"power_reading\", \"value\": 6930, \"metadata\": \"\"}\n"
      ":::MLLOG {\"time_ms\": 1715960312411, \"key\": \"power_reading\", \"value\": null}\n"
      ":::MLLOG {\"time_ms\": 1715960314411, \"key\": \"power_reading\", \"value\": \"6931\"}\n"
      ":::MLLOG {\"time_ms\": 1715960315411, \"key\": \"interconnect_power_est\", \"value\": 59570, \"metadata\": "
      "{\"switch_id\": \"sw_01\"}}\n"
      ":::MLLOG {\"time_ms\": 1715960316411, \"key\": \"power_reading\", \"val";
  const Read r = read(text, {}, "/x/ac__64x__gpt3__power__result_5848-24_2__node_1.txt");
  EXPECT_EQ(r.summary.format, Format::mllog);
  EXPECT_EQ(r.points("5848-24_2/node-1", Signal::power_average, Scope::node_ac), "6930 ok, missing, 6931 ok");
  ASSERT_EQ(r.recording.events.size(), 2U);
  EXPECT_EQ(r.recording.events[1].value, 59570);
  EXPECT_TRUE(r.summary.cut);
  EXPECT_EQ(r.summary.quarantined, 1U);
}

TEST(Mllog, DeepNestingIsSetAside) {
  const std::string deep(30'000, '[');
  const Read r = read(":::MLLOG {\"time_ms\": 1715960310411, \"key\": \"k\", \"metadata\": " + deep + "\n");
  EXPECT_EQ(r.summary.quarantined, 1U);
}

TEST(Zeus, OneColumnPerGpu) {
  const Read r = read("time,0,1\n1715960308.411,250.5,251\n1715960308.511,250.6,\n");
  EXPECT_EQ(r.summary.format, Format::zeus);
  EXPECT_EQ(r.points("unnamed-host/gpu-0"), "250.5 ok, 250.6 ok");
  EXPECT_EQ(r.points("unnamed-host/gpu-1"), "251 ok, missing");
  EXPECT_EQ(r.recording.series[0].points[0].at.nanoseconds(), 1'715'960'308'411'000'000);
  EXPECT_TRUE(mentions(r.summary.warnings, "index"));
}

TEST(Dcgm, RoundsHeadersAndBlanks) {
  const std::string text =
      "#Entity   POWER        TOTEC        SMCLK   XYZ\n"
      "ID        W            mJ                 \n"
      "GPU 0     69.5         1234567      1410    9\n"
      "GPU 1     N/A          2147483632   1410    9\n"
      "#Entity   POWER        TOTEC        SMCLK   XYZ\n"
      "ID        W            mJ                 \n"
      "GPU 0     70.5         1294567      1410    9\n"
      "GPU 1     71           9223372036854775792 1410 9\n"
      "Switch 12 5\nGPU 0 1\n";
  EXPECT_NE(read(text).error.find("ts"), std::string::npos);
  ReadOptions options;
  options.start = *parse_rfc3339("2024-05-17T15:38:00Z");
  options.interval = Seconds(0.5);
  options.index_prefix = "n1";
  const Read r = read(text, options);
  EXPECT_EQ(r.points("n1/gpu-0"), "69.5 ok, 70.5 ok");
  EXPECT_EQ(r.points("n1/gpu-0", Signal::energy), "1234.57 ok, 1294.57 ok");
  EXPECT_EQ(r.points("n1/gpu-1"), "missing, 71 ok");
  EXPECT_EQ(r.points("n1/gpu-1", Signal::energy), "missing, missing");
  EXPECT_EQ(r.summary.repeated_headers, 1U);
  EXPECT_EQ(format_rfc3339(r.find("n1/gpu-1")->points[1].at), "2024-05-17T15:38:00.500Z");
  const Read stamped = read("#Entity POWER\nID W\n2024-05-17T15:38:00.250+0000 GPU 0 69.5\n");
  EXPECT_EQ(stamped.points("unnamed-host/gpu-0"), "69.5 ok") << stamped.error << stamped.quarantine();
}

TEST(Prometheus, DcgmExporterAndUnitsInNames) {
  const std::string text =
      "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\",modelName=\"A \\\"x\\\" {y}\"} 69.5 "
      "1715960308411\n"
      "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\"} 1234567 1715960308411\n"
      "nvidia_smi_enforced_power_limit_watts{uuid=\"GPU-a\"} 700 1715960308411\n"
      "nvidia_smi_max_power_limit_watts{uuid=\"GPU-a\"} 700 1715960308411\n"
      "node_power_watts{instance=\"n1:9100\"} 4.5e3 1715960308411\n"
      "some_joules_total{uuid=\"GPU-a\"} NaN 1715960308411\n"
      "up 1\nother_metric{a=\"b\"} 5\nbroken_watts{uuid=\"GPU-a 5\n";
  const Read r = read(text);
  EXPECT_EQ(r.summary.format, Format::prometheus);
  EXPECT_EQ(r.points("GPU-a"), "69.5 ok");
  EXPECT_EQ(r.points("GPU-a", Signal::energy), "1234.57 ok");
  EXPECT_EQ(r.points("GPU-a", Signal::limit_enforced), "700 ok");
  EXPECT_EQ(r.points("GPU-a", Signal::limit_requested), "no such series");
  EXPECT_EQ(r.points("n1:9100"), "4500 ok");
  EXPECT_EQ(r.summary.quarantined, 1U);
  EXPECT_EQ(r.summary.points[static_cast<std::size_t>(Status::missing)], 1U);
}

TEST(Prometheus, MigInstancesAreTheWholeGpuOnce) {
  ReadOptions options;
  options.start = *parse_rfc3339("2024-05-17T15:38:00Z");
  const Read r = read(
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"1\"} "
      "300\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"2\"} 300\n",
      options);
  EXPECT_EQ(r.points("GPU-a"), "300 ok");
  EXPECT_EQ(r.summary.quarantined, 0U);
  EXPECT_NE(read("DCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-a\"} 300\n").error.find("scraped"), std::string::npos);
}

TEST(Table, UnitsInNamesAndAmbiguousOnesLeftOut) {
  const Read r = read("timestamp,rack_power_kw,it_power_mw,total_kwh,pdu [W]\n2024-05-17T15:38:28Z,12.5,3,4,5\n");
  EXPECT_EQ(r.summary.format, Format::table);
  EXPECT_EQ(r.points("rack_power"), "12500 ok");
  EXPECT_EQ(r.points("total", Signal::energy), "1.44e+07 ok");
  EXPECT_EQ(r.points("pdu"), "5 ok");
  EXPECT_TRUE(mentions(r.summary.warnings, "it_power_mw"));
  EXPECT_EQ(r.recording.series.size(), 3U);
}

TEST(Readers, GarbageOfTheDirtyKindsReachesNoTotal) {  // S4
  std::string text = kSmiHeader;
  int second = 0;
  double clean = 0;
  const char* dirty[] = {
      "[N/A]",   "[Not Supported]", "[Unknown Error]", "ERR!",          "0.00 W", "-5.00 W", "nan W",
      "inf",     "65535 W",         "4294967.295 W",   "4294967295",    "1e30 W", "0x1234",  "1,234 W",
      "250 V",   "250 VA",          "2147483647",      "[GPU is lost]", "W",      "25 0 W",  "250.1.2 W",
      "--250 W", "250 MW",          "\x80\xff W",      "400000 W",      "1e999",  "+-3",     "∞ W"};
  for (const char* cell : dirty) {
    text += smi_row(++second, cell);
    text += smi_row(++second, "100 W");
    clean += 100;
    if (second >= 58) break;
  }
  const Read r = read(text);
  double power = 0;
  for (const auto& point : r.find(kGpu)->points) power += point.status == Status::ok ? point.value : 0;
  EXPECT_EQ(power, clean);
  EXPECT_EQ(r.find(kGpu)->points.size() + r.summary.quarantined, static_cast<std::size_t>(second));
}

TEST(Readers, CommaLocaleChangesNothing) {
  // Few machines have a locale with a comma installed; it is made here from the sources that the C library brings.
  const TempDir locales;
  const std::string make = "localedef -i de_DE -f UTF-8 " + locales.file("de_DE.UTF-8") + " >/dev/null 2>&1";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "localedef cannot make a locale with a comma here";
  ::setenv("LOCPATH", locales.path().c_str(), 1);
  ASSERT_NE(std::setlocale(LC_ALL, "de_DE.UTF-8"), nullptr);
  char printed[16];
  std::snprintf(printed, sizeof printed, "%.1f", 0.5);
  const Read r = read(kSmiHeader + smi_row(1, "250.12 W") + smi_row(2, "1e2 W"));
  std::setlocale(LC_ALL, "C");
  ::unsetenv("LOCPATH");
  EXPECT_STREQ(printed, "0,5");  // the locale was at work
  EXPECT_EQ(r.recording.series[0].points[0].value, 250.12);
  EXPECT_EQ(r.recording.series[0].points[1].value, 100);
}

TEST(Readers, NothingKnownIsRefusedWithTheRemedy) {
  EXPECT_NE(read("").error.find("empty"), std::string::npos);
  EXPECT_NE(read("a,b\n1,2\n").error.find("header"), std::string::npos);
  EXPECT_NE(read("\x7f"
                 "ELF garbage")
                .error.find("format"),
            std::string::npos);
  ReadOptions options;
  options.format = Format::nvidia_smi;
  EXPECT_NE(read("1,2\n3,4\n", options).error.find("noheader"), std::string::npos);
  EXPECT_FALSE(parse_format("parquet"));
  EXPECT_EQ(*parse_format("node-power"), Format::node_power);
}

TEST(Readers, SharedNodePowerDataIsReadWhole) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "the shared data are not here";
  RecordingSink sink;
  const auto gpt3 = read_file(folder + "/node_power/power_64x_gpt3.csv.gz", {}, sink);
  ASSERT_TRUE(gpt3) << gpt3.error().message();
  EXPECT_EQ(gpt3->rows, 217805U);
  EXPECT_EQ(sink.recording.series.size(), 2U * 2 * 64);
  EXPECT_EQ(gpt3->good_points(), 2U * 217805);
  EXPECT_EQ(gpt3->quarantined, 0U);
  RecordingSink lora;
  const auto with_defects = read_file(folder + "/node_power/power_64x_llama2_70b_lora.csv.gz", {}, lora);
  ASSERT_TRUE(with_defects);
  EXPECT_GT(with_defects->backward_stamps, 0U);
  EXPECT_GT(with_defects->points[static_cast<std::size_t>(Status::missing)], 0U);
  EXPECT_GT(with_defects->points[static_cast<std::size_t>(Status::garbage)], 0U);
  RecordingSink events;
  const auto all_events = read_file(folder + "/node_power/events.csv.gz", {}, events);
  ASSERT_TRUE(all_events);
  EXPECT_EQ(all_events->quarantined, 0U);
  EXPECT_EQ(all_events->events, 1532U);
}

TEST(Stamps, TheQuickWaysReadWhatTheSlowOneReads) {
  Random random(7);
  auto reader = StampReader::make({});
  ASSERT_TRUE(reader);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t seconds = 946'684'800 + random.below(3'000'000'000);
    const auto decimals = static_cast<int>(1 + random.below(8));
    std::uint64_t limit = 1;
    for (int k = 0; k < decimals; ++k) limit *= 10;
    const std::uint64_t part = random.below(limit);
    std::string text = fmt::format("{:010}.{:0{}}", seconds, part, decimals);
    WallTime quick, slow;
    ASSERT_EQ(reader->read(text, StampUnit::s, quick), nullptr) << text;
    ASSERT_EQ(reader->read("0" + text, StampUnit::s, slow), nullptr) << text;  // eleven digits take the slow way
    ASSERT_EQ(quick, slow) << text;
    const std::string ms = fmt::format("{:010}{:03}", seconds, random.below(1000));
    ASSERT_EQ(reader->read(ms, StampUnit::ms, quick), nullptr) << ms;
    ASSERT_EQ(reader->read("0" + ms, StampUnit::ms, slow), nullptr) << ms;
    ASSERT_EQ(quick, slow) << ms;
    text[random.below(text.size())] = static_cast<char>(" x.,-+e:"[random.below(8)]);
    WallTime unused;
    const bool quick_says = reader->read(text, StampUnit::s, unused) == nullptr;
    const bool slow_says = reader->read("0" + text, StampUnit::s, unused) == nullptr;
    const bool sign = text[0] == '-' || text[0] == '+' || text[0] == ' ';  // a zero in front changes what these mean
    ASSERT_TRUE(sign || quick_says == slow_says) << text;
  }
}

}  // namespace
}  // namespace flyball::series
