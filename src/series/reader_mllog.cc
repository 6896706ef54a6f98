// MLPerf log lines: ":::MLLOG {json}", power readings in watts and the job's own events.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/text.h"
#include "series/reader_formats.h"
#include "series/reader_stamp.h"

namespace flyball::series {
namespace {

using Json = nlohmann::json;

/// What the file's name says of whose readings it holds.
struct NamedBy {
  std::string run;
  std::string node;
  Scope scope = Scope::unknown;
};

NamedBy from_name(std::string_view path) {
  NamedBy named;
  const auto word_after = [](std::string_view text, std::string_view mark, std::string_view stops) -> std::string {
    const auto from = text.rfind(mark);
    if (from == std::string_view::npos) return {};
    text.remove_prefix(from + mark.size());
    std::size_t end = 0;
    while (end < text.size() && stops.find(text[end]) == std::string_view::npos && text.substr(end, 2) != "__") ++end;
    return std::string(text.substr(0, end));
  };
  named.run = word_after(path, "result_", "/.");
  const auto slash = path.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (const auto node = word_after(file, "node_", "/."); !node.empty()) named.node = "node-" + node;
  if (file.starts_with("ac_")) named.scope = Scope::node_ac;
  if (file.starts_with("dc_")) named.scope = Scope::node_dc;
  return named;
}

Result<DeviceId> device_of(const NamedBy& named, const ReadOptions& options) {
  if (!options.device.empty()) return options.device;
  if (named.node.empty()) return DeviceId::of("unnamed");
  return DeviceId::parse(named.run.empty() ? named.node : named.run + "/" + named.node);
}

/// A number, or a number written as text.
bool number_of(const Json& value, double& number) {
  if (value.is_number()) {
    number = value.get<double>();
    return std::isfinite(number);
  }
  return value.is_string() && parse_decimal(trim(value.get_ref<const std::string&>()), number);
}

/// Log lines are flat; a line nested deeper was not written by a logger, and the library's writer recurses.
bool too_deep(std::string_view json) {
  constexpr int kDeepest = 32;
  int depth = 0;
  for (const char c : json) {
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

class MllogReader {
 public:
  MllogReader(Intake& intake, NamedBy named, DeviceId device, Scope scope)
      : intake_(intake), named_(std::move(named)), device_(std::move(device)), scope_(scope) {}

  Result<> line(const Line& line) {
    constexpr std::string_view kMark = ":::MLLOG";
    const auto mark = line.text.find(kMark);
    if (mark == std::string_view::npos) {
      if (!trim(line.text).empty()) intake_.set_aside(line.number, "no :::MLLOG line", line.text);
      return {};
    }
    const auto body = line.text.substr(mark + kMark.size());
    const Json json = too_deep(body) ? Json() : Json::parse(body.begin(), body.end(), nullptr, false);
    const auto time = json.is_object() ? json.find("time_ms") : json.end();
    const auto key = json.is_object() ? json.find("key") : json.end();
    if (!json.is_object() || time == json.end() || key == json.end() || !key->is_string() ||
        !time->is_number_integer()) {
      if (!line.ended) intake_.summary().cut = true;
      intake_.set_aside(line.number, line.ended ? "no JSON object with time_ms and key" : "the last line is cut",
                        line.text);
      return {};
    }
    const WallTime at = stamp(*time);
    if (at == WallTime()) {
      intake_.set_aside(line.number, "the stamp is not between 2000 and 2100", line.text);
      return {};
    }
    ++intake_.summary().rows;
    const auto value = json.find("value");
    const Json none;
    if (key->get_ref<const std::string&>() == "power_reading")
      return power(at, value != json.end() ? *value : none, line);
    Event event{at, key->get<std::string>().substr(0, 200), DeviceId(), named_.run, 0, {}};
    if (value != json.end() && !number_of(*value, event.value) && !value->is_null()) event.detail = text_of(*value);
    if (const auto more = json.find("metadata"); more != json.end() && !more->empty() && *more != "") {
      event.detail += (event.detail.empty() ? "" : " ") + text_of(*more);
    }
    intake_.event(event);
    return {};
  }

 private:
  static WallTime stamp(const Json& time) {
    constexpr std::int64_t kYear2000Ms = 946'684'800'000;
    constexpr std::int64_t kYear2100Ms = 4'102'444'800'000;
    if (time.is_number_unsigned() && time.get<std::uint64_t>() > static_cast<std::uint64_t>(kYear2100Ms)) return {};
    const auto ms = time.get<std::int64_t>();
    return ms >= kYear2000Ms && ms < kYear2100Ms ? WallTime(ms * 1'000'000) : WallTime();
  }
  static std::string text_of(const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 1000);
  }
  Result<> power(WallTime at, const Json& value, const Line& line) {
    if (!started_) {
      FLYBALL_ASSIGN(series_, intake_.series({device_, Signal::power_average, scope_, "mllog power_reading"}));
      started_ = true;
    }
    double watts = 0;
    if (number_of(value, watts)) {
      intake_.value(series_, at, watts, line.number, line.text);
    } else {
      intake_.absent(series_, at, value.is_null() ? Status::missing : Status::garbage, line.number, line.text);
    }
    return {};
  }

  Intake& intake_;
  NamedBy named_;
  DeviceId device_;
  Scope scope_;
  std::uint32_t series_ = 0;
  bool started_ = false;
};

}  // namespace

Result<> read_mllog(ByteSource& bytes, const std::string& name, const ReadOptions& options, Intake& intake) {
  NamedBy named = from_name(name);
  FLYBALL_ASSIGN(auto device, device_of(named, options));
  const Scope scope = options.scope != Scope::unknown ? options.scope : named.scope;
  MllogReader reader(intake, std::move(named), std::move(device), scope);
  LineReader lines(bytes, options.max_line_bytes);
  Line line;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, lines.next(line));
    if (!more) break;
    if (!line.defect.empty()) {
      intake.set_aside(line.number, std::string(line.defect), line.text);
    } else {
      FLYBALL_TRY(reader.line(line));
    }
  }
  intake.summary().bytes = lines.bytes();
  return {};
}

}  // namespace flyball::series
