#include "meter/redfish/redfish_meter.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "meter/budget.h"
#include "meter/http.h"
#include "meter/point.h"
#include "meter/redfish/resource.h"

namespace flyball::meter {
namespace {

class RedfishMeter final : public Meter {
 public:
  RedfishMeter(const Profile& profile, std::unique_ptr<HttpClient> http, Clock& clock)
      : profile_(profile), http_(std::move(http)), clock_(clock) {}

  /// Each resource once, however many points lie in it.
  std::vector<MeterReading> read() override {
    struct Answer {
      Result<std::string> body;
      WallTime middle;
      MonoTime received;
    };
    const Budget budget(clock_, profile_.timeout);
    std::map<std::string, Answer> answers;
    std::vector<MeterReading> made = all_absent(profile_, Status::missing, "not asked", clock_);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const PointProfile& point = profile_.points[i];
      auto known = answers.find(point.path);
      if (known == answers.end()) {
        if (budget.over()) {
          set_absent(made[i], Status::failed, "no time left within meter.timeout");
          continue;
        }
        const RequestTime time(clock_);
        auto body = http_->get(point.path, budget.left());
        known = answers.emplace(point.path, Answer{std::move(body), time.middle(), clock_.now()}).first;
      }
      const Answer& answer = known->second;
      made[i].measured = answer.middle;
      made[i].received = answer.received;
      if (answer.body) {
        read_value(point, *answer.body, made[i]);
      } else {
        const bool none = answer.body.error().code == ErrorCode::unsupported;
        set_absent(made[i], none ? Status::not_supported : Status::failed, answer.body.error().message());
      }
    }
    return made;
  }

  Result<Identity> identify() override {
    FLYBALL_ASSIGN(const std::string root, http_->get("/redfish/v1/", profile_.timeout));
    Identity identity;
    identity.vendor = redfish_text(root, "/Vendor");
    identity.model = redfish_text(root, "/Product");
    identity.serial = redfish_text(root, "/UUID");
    identity.firmware = redfish_text(root, "/RedfishVersion");
    if (identity.text().empty()) return fail(ErrorCode::unsupported, "the service root names no product", profile_.id);
    return identity;
  }

  Result<ClockPair> device_clock() override {
    FLYBALL_ASSIGN(const std::string managers, http_->get("/redfish/v1/Managers", profile_.timeout));
    const std::string manager = redfish_text(managers, "/Members/0/@odata.id");
    if (!manager.starts_with("/redfish/"))
      return fail(ErrorCode::unsupported, "the service has no manager", profile_.id);
    const RequestTime time(clock_);
    FLYBALL_ASSIGN(const std::string body, http_->get(manager, profile_.timeout));
    const std::string said = redfish_text(body, "/DateTime");
    FLYBALL_ASSIGN(const WallTime device, parse_rfc3339(said));
    return ClockPair{device, time.middle(), time.elapsed() * 0.5 + Seconds(said.find('.') == said.npos ? 1 : 0.001)};
  }

 private:
  void read_value(const PointProfile& point, const std::string& body, MeterReading& reading) const {
    const RedfishValue value = redfish_value(body, point.pointer);
    if (value.at) {
      reading.clock = TimeSource::device;
      reading.measured = *value.at - profile_.commissioned.clock_offset.value_or(Seconds(0));
    }
    if (!value.said.ok()) return void(set_absent(reading, value.said.status, value.reason));
    reading.raw = format_exact(*value.said) + (value.unit.empty() ? "" : " " + value.unit);
    if (!value.unit.empty() && value.unit != point.unit) {
      return void(set_absent(reading, Status::garbage,
                             fmt::format("the service says {} and the profile {}", value.unit, point.unit)));
    }
    set_value(reading, point, *value.said);
    const Seconds age = clock_.wall() - reading.measured;
    if (reading.value.ok() && age > profile_.stale_after) {
      set_absent(reading, Status::stale, "measured " + flyball::format(age) + " ago");
    }
  }

  Profile profile_;
  std::unique_ptr<HttpClient> http_;
  Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<Meter>> make_redfish_meter(const Profile& profile, Clock& clock) {
  FLYBALL_ASSIGN(auto http, HttpClient::make(profile));
  return std::make_unique<RedfishMeter>(profile, std::move(http), clock);
}

}  // namespace flyball::meter
