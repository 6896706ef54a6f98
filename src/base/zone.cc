#include "base/zone.h"

#include <date/tz.h>

#include <chrono>
#include <exception>

namespace flyball {

struct Zone::State {
  const date::time_zone* zone = nullptr;  // owned by the library's database for the life of the program
  // Between these local times the offset is known to be unique.
  std::int64_t sure_from_ns = 0;
  std::int64_t sure_until_ns = 0;
  std::int64_t offset_ns = 0;
};

Zone::Zone(std::unique_ptr<State> state) : state_(std::move(state)) {}
Zone::~Zone() = default;
Zone::Zone(Zone&&) noexcept = default;
Zone& Zone::operator=(Zone&&) noexcept = default;

Result<Fold> parse_fold(std::string_view text) {
  if (text == "refuse") return Fold::refuse;
  if (text == "earlier") return Fold::earlier;
  if (text == "later") return Fold::later;
  return fail(ErrorCode::input, "'" + std::string(text.substr(0, 40)) + "' is not a rule for the repeated hour", {},
              "write refuse, earlier or later");
}

Result<Zone> Zone::find(const std::string& name) {
  auto state = std::make_unique<State>();
  try {  // the library reports by exceptions only
    state->zone = date::locate_zone(name);
  } catch (const std::exception&) {
    return fail(ErrorCode::input, "'" + name.substr(0, 60) + "' is not a time zone known here", {},
                "write an IANA name such as Europe/Berlin, or UTC; the package tzdata holds them");
  }
  return Zone(std::move(state));
}

LocalTime Zone::to_utc(std::int64_t local_ns, Fold fold, WallTime& utc) {
  using std::chrono::nanoseconds;
  if (local_ns >= state_->sure_from_ns && local_ns < state_->sure_until_ns) {
    utc = WallTime(local_ns - state_->offset_ns);
    return LocalTime::ok;
  }
  const auto local = date::floor<std::chrono::seconds>(date::local_time<nanoseconds>(nanoseconds(local_ns)));
  const date::local_info info = state_->zone->get_info(local);
  if (info.result == date::local_info::nonexistent) return LocalTime::skipped;
  if (info.result == date::local_info::ambiguous && (fold == Fold::refuse || fold == Fold::in_order))
    return LocalTime::ambiguous;
  const auto& rule = info.result == date::local_info::ambiguous && fold == Fold::later ? info.second : info.first;
  const std::int64_t offset_ns = nanoseconds(rule.offset).count();
  if (info.result == date::local_info::unique) {
    // A day around this stamp, cut by the rule's own span less the longest change of offset, which is below a day.
    constexpr std::int64_t kDay = 86'400'000'000'000;
    const auto to_ns = [](auto instant) { return nanoseconds(instant.time_since_epoch()).count(); };
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(nanoseconds(local_ns - offset_ns));
    const auto reach = std::chrono::hours(24);
    const bool whole = rule.begin + 2 * reach < date::sys_seconds(now) && date::sys_seconds(now) + 2 * reach < rule.end;
    if (whole) {
      state_->sure_from_ns = to_ns(date::sys_seconds(now)) + offset_ns - kDay;
      state_->sure_until_ns = state_->sure_from_ns + 2 * kDay;
      state_->offset_ns = offset_ns;
    }
  }
  utc = WallTime(local_ns - offset_ns);
  return LocalTime::ok;
}

}  // namespace flyball
