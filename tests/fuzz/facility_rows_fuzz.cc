// A building's samples in anyone's CSV: what is read again after it was written is the same, times rise, and values
// stay within what their columns can hold.
#include "series/facility_table.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace flyball;

void check(bool holds) {
  if (!holds) std::abort();
}

std::vector<FacilitySample> samples_of(std::string_view text, char separator, const series::FacilityMap& map,
                                       series::RowOrder order, bool& whole) {
  std::vector<FacilitySample> samples;
  const auto counts = series::read_facility(
      series::open_memory(text), separator, map, "x.csv",
      [&](FacilitySample sample) { samples.push_back(std::move(sample)); }, order);
  whole = counts.has_value();
  if (whole) check(counts->rows == samples.size());
  return samples;
}

void check_possible(const FacilitySample& sample) {
  for (const FacilityColumn& column : facility_columns())
    if (const auto value = column.get(sample)) check(std::isfinite(*value));
  check(sample.racks.size() <= series::kMostRacks && sample.jobs.size() <= series::kMostJobs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  series::FacilityMap map;
  if ((data[0] & 4) != 0)
    map.columns = {{"time", {"#1", 1, 0}}, {"it_w", {"IT", 1000, 0}}, {"job1_phase", {"#3", 1, 0}}};
  const auto order = (data[0] & 8) != 0 ? series::RowOrder::any : series::RowOrder::of_time;
  bool whole = false;
  const auto samples = samples_of(text, ",;\t"[data[0] % 3], map, order, whole);
  std::string again;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    check_possible(samples[i]);
    if (order == series::RowOrder::of_time && i > 0) check(samples[i - 1].at < samples[i].at);
    if (i < 50) again += series::facility_line(series::facility_cells(samples[i], 2, 2));
  }
  if (!whole || samples.empty()) return 0;
  const auto read = samples_of(series::facility_line(series::facility_header(2, 2)) + again, ',', {}, order, whole);
  check(whole && !read.empty() && read[0].it.has_value() == samples[0].it.has_value());
  return 0;
}
