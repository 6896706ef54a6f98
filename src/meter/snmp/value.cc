#include "meter/snmp/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/decimal.h"
#include "base/text.h"

namespace flyball::meter {
namespace {

constexpr std::size_t kLongestOid = 128;  // RFC 2578, 3.5

SnmpNumber absent(SnmpNumber number, Status status, std::string reason) {
  number.said = Sample<double>::absent(status);
  number.reason = std::move(reason);
  return number;
}

}  // namespace

SnmpNumber snmp_number(const SnmpValue& value, const PointProfile& point) {
  SnmpNumber made;
  double said = 0;
  switch (value.kind) {
    case SnmpKind::integer:
      said = static_cast<double>(value.integer);
      break;
    case SnmpKind::counter:
      said = static_cast<double>(value.counter);
      break;
    case SnmpKind::number:
      said = value.number;
      break;
    case SnmpKind::text:
      made.raw = is_printable_ascii(value.text) ? value.text.substr(0, 40) : "octets that are no text";
      if (!parse_decimal(trim(value.text), said)) {
        return absent(made, Status::garbage, "'" + made.raw + "' is no number");
      }
      break;
    case SnmpKind::no_object:
      return absent(made, Status::not_supported, "the device has no such object");
    case SnmpKind::no_instance:
      return absent(made, Status::not_supported, "the device has no such instance of the object");
    case SnmpKind::other:
      return absent(made, Status::garbage, "the object is of a type that holds no number");
  }
  if (made.raw.empty()) made.raw = format_exact(said);
  if (std::find(point.absent.begin(), point.absent.end(), said) != point.absent.end()) {
    return absent(made, Status::missing, "the device says not available (" + made.raw + ")");
  }
  made.said = said;
  return made;
}

Result<WallTime> date_and_time(std::string_view octets) {
  if (octets.size() == 8) {
    return fail(ErrorCode::unsupported, "the device's clock has no offset from UTC, so it names no instant");
  }
  if (octets.size() != 11) return fail(ErrorCode::failed, "the device's clock is no DateAndTime");
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(octets[i])); };
  const char sign = octets[8];
  if (sign != '+' && sign != '-') return fail(ErrorCode::failed, "the device's clock has an offset without sign");
  // A leap second, 60, is the instant before the next minute here.
  return parse_rfc3339(fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:01}{}{:02}:{:02}", at(0) << 8 | at(1), at(2),
                                   at(3), at(4), at(5), std::min(at(6), 59U), at(7), sign, at(9), at(10)));
}

std::vector<std::uint64_t> parse_oid(std::string_view text) {
  if (text.starts_with('.')) text.remove_prefix(1);
  std::vector<std::uint64_t> oid;
  for (const auto part : split(text, '.')) {
    std::int64_t number = -1;
    if (!parse_whole(part, number) || number < 0 || number > 0xffffffffLL) return {};
    oid.push_back(static_cast<std::uint64_t>(number));
  }
  if (oid.size() < 2 || oid.size() > kLongestOid) return {};
  return oid;
}

}  // namespace flyball::meter
