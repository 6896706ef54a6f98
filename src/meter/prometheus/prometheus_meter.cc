#include "meter/prometheus/prometheus_meter.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "meter/budget.h"
#include "meter/http.h"
#include "meter/point.h"
#include "meter/prometheus/api.h"

namespace flyball::meter {
namespace {

/// One question of a back-fill: at one sample a second it stays within 3,600 samples of one series, far below the
/// 50 million that Prometheus loads for one query by default.
constexpr Seconds kPiece(3600);
constexpr std::size_t kMostPieces = 24 * 400;

Signal signal_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::power:
      return Signal::power_average;  // what a scrape sees is at best the exporter's mean
    case Quantity::energy:
      return Signal::energy;
    case Quantity::temperature:
      return Signal::temperature;
    default:
      return Signal::other;
  }
}

class PrometheusMeter final : public HistoryMeter {
 public:
  PrometheusMeter(const Profile& profile, std::unique_ptr<HttpClient> http, Clock& clock)
      : profile_(profile), http_(std::move(http)), clock_(clock) {}

  std::vector<MeterReading> read() override {
    const Budget budget(clock_, profile_.timeout);
    std::vector<MeterReading> made = all_absent(profile_, Status::missing, "not asked", clock_);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (budget.over()) {
        set_absent(made[i], Status::failed, "no time left within meter.timeout");
        continue;
      }
      read_point(profile_.points[i], budget.left(), made[i]);
    }
    return made;
  }

  Result<series::Series> fill(const PointProfile& point, series::Interval interval) override {
    const double pieces = interval.length() / kPiece;
    if (!(pieces >= 0 && pieces <= static_cast<double>(kMostPieces))) {
      return fail(ErrorCode::input, "a back-fill covers up to 400 days", point.name);
    }
    series::Series made;
    FLYBALL_ASSIGN(made.key.device, DeviceId::parse(profile_.id));
    made.key.signal = signal_of(point.quantity);
    made.key.scope = point.scope;
    made.key.source = "prometheus " + point.selector;
    for (WallTime from = interval.start; from < interval.stop; from = from + kPiece) {
      const WallTime until = std::min(interval.stop, from + kPiece);
      FLYBALL_ASSIGN(const std::string body,
                     http_->get(raw_samples_query(point.selector, until - from, until), profile_.timeout));
      FLYBALL_ASSIGN(auto all, decode_matrix(body));
      if (all.empty()) continue;  // a hole
      FLYBALL_ASSIGN(const PrometheusSeries one, only_series(std::move(all)));
      for (const PrometheusSample& sample : one.samples) add(point, sample, interval, made);
    }
    return made;
  }

 private:
  void read_point(const PointProfile& point, Seconds timeout, MeterReading& reading) {
    auto body = http_->get(raw_samples_query(point.selector, profile_.window, clock_.wall()), timeout);
    reading.received = clock_.now();
    if (!body) return void(set_absent(reading, Status::failed, body.error().message()));
    auto all = decode_matrix(*body);
    if (!all) return void(set_absent(reading, Status::failed, all.error().message()));
    const auto one = only_series(std::move(*all));
    if (!one) {
      const Status why = one.error().code == ErrorCode::input ? Status::garbage : Status::missing;
      return void(set_absent(reading, why, one.error().message()));
    }
    if (one->samples.empty()) return void(set_absent(reading, Status::missing, "the series has no sample"));
    const PrometheusSample& last = one->samples.back();
    reading.clock = TimeSource::device;
    reading.measured = corrected(last.at);
    reading.raw = format_exact(last.value);
    set_value(reading, point, last.value);
    const Seconds age = clock_.wall() - reading.measured;
    if (reading.value.ok() && age > profile_.stale_after) {
      set_absent(reading, Status::stale, "measured " + flyball::format(age) + " ago");
    }
  }

  WallTime corrected(WallTime at) const { return at - profile_.commissioned.clock_offset.value_or(Seconds(0)); }

  /// Neighbouring pieces share the sample on their edge.
  void add(const PointProfile& point, const PrometheusSample& sample, series::Interval interval, series::Series& to) {
    const WallTime at = corrected(sample.at);
    if (at < interval.start || at >= interval.stop) return;
    if (!to.points.empty() && at <= to.points.back().at) return;
    MeterReading reading = blank_reading(profile_, point);
    set_value(reading, point, sample.value);
    to.points.push_back({at, reading.value.value, reading.value.status});
  }

  Profile profile_;
  std::unique_ptr<HttpClient> http_;
  Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<HistoryMeter>> make_prometheus_meter(const Profile& profile, Clock& clock) {
  FLYBALL_ASSIGN(auto http, HttpClient::make(profile));
  return std::make_unique<PrometheusMeter>(profile, std::move(http), clock);
}

}  // namespace flyball::meter
