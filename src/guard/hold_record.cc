// The payload of a journal record that holds a board's state; doc/format-journal.md is its description.

#include "guard/bytes.h"
#include "guard/journal.h"

namespace flyball::guard {
namespace {

constexpr std::uint8_t kLayout = 1;
constexpr std::uint8_t kHighestStatus = static_cast<std::uint8_t>(Status::garbage);

void put(ByteWriter& out, const Sample<Milliwatts>& sample) {
  out.u8(static_cast<std::uint8_t>(sample.status));
  out.i64(sample.ok() ? sample.value.value() : 0);
}

void put(ByteWriter& out, const std::optional<Milliwatts>& limit) {
  out.u8(limit ? 1 : 0);
  out.i64(limit ? limit->value() : 0);
}

Status take_status(ByteReader& in, bool& good) {
  const std::uint8_t raw = in.u8();
  good = good && raw <= kHighestStatus;
  return raw <= kHighestStatus ? static_cast<Status>(raw) : Status::garbage;
}

Sample<Milliwatts> take_sample(ByteReader& in, bool& good) {
  Sample<Milliwatts> sample;
  sample.status = take_status(in, good);
  sample.value = Milliwatts(in.i64());
  return sample;
}

std::optional<Milliwatts> take_limit(ByteReader& in) {
  const bool there = in.u8() != 0;
  const Milliwatts limit(in.i64());
  return there ? std::optional(limit) : std::nullopt;
}

template <class Enum>
Enum take_enum(ByteReader& in, Enum highest, bool& good) {
  const std::uint8_t raw = in.u8();
  good = good && raw <= static_cast<std::uint8_t>(highest);
  return good ? static_cast<Enum>(raw) : highest;
}

void put_snapshot(ByteWriter& out, const Snapshot& found) {
  put(out, found.requested);
  put(out, found.enforced);
  out.u8(static_cast<std::uint8_t>(found.persistence.status));
  out.u8(found.persistence.ok() && found.persistence.value ? 1 : 0);
  out.text(found.epoch.boot_id);
  out.text(found.epoch.driver_load);
  out.text(found.epoch.version);
  out.text(found.last_writer);
  out.i64(found.taken.nanoseconds());
}

Snapshot take_snapshot(ByteReader& in, bool& good) {
  Snapshot found;
  found.requested = take_sample(in, good);
  found.enforced = take_sample(in, good);
  found.persistence.status = take_status(in, good);
  found.persistence.value = in.u8() != 0;
  found.epoch.boot_id = in.text();
  found.epoch.driver_load = in.text();
  found.epoch.version = in.text();
  found.last_writer = in.text();
  found.taken = WallTime(in.i64());
  return found;
}

}  // namespace

std::string encode_hold(const Hold& hold) {
  ByteWriter out;
  out.u8(kLayout);
  out.text(hold.device.text());
  out.u8(static_cast<std::uint8_t>(hold.kind));
  out.u8(static_cast<std::uint8_t>(hold.owner));
  put_snapshot(out, hold.found);
  out.i64(hold.safe_cap.value());
  out.u8(hold.parked ? 1 : 0);
  out.u8(hold.clocks_locked ? 1 : 0);
  put(out, hold.accepted);
  out.u16(static_cast<std::uint16_t>(hold.intents.size()));
  for (const Milliwatts intent : hold.intents) out.i64(intent.value());
  out.u16(static_cast<std::uint16_t>(hold.sticky.size()));
  for (const StickyWish& wish : hold.sticky) {
    out.u64(wish.lease);
    out.u8(static_cast<std::uint8_t>(wish.authority));
    put(out, wish.power_limit);
  }
  return out.bytes();
}

Result<Hold> decode_hold(std::string_view bytes) {
  constexpr std::uint16_t kMostEntries = 64;
  ByteReader in(bytes);
  bool good = in.u8() == kLayout;
  auto device = DeviceId::parse(in.text());
  if (!device) return fail(ErrorCode::input, "a journal record names no device");
  Hold hold;
  hold.device = *std::move(device);
  hold.kind = take_enum(in, LeaseKind::budget, good);
  hold.owner = take_enum(in, Authority::site, good);
  hold.found = take_snapshot(in, good);
  hold.safe_cap = Milliwatts(in.i64());
  hold.parked = in.u8() != 0;
  hold.clocks_locked = in.u8() != 0;
  hold.accepted = take_limit(in);
  const std::uint16_t intents = in.u16();
  for (std::uint16_t i = 0; in.ok() && intents <= kMostEntries && i < intents; ++i) hold.intents.emplace_back(in.i64());
  const std::uint16_t wishes = in.u16();
  for (std::uint16_t i = 0; in.ok() && wishes <= kMostEntries && i < wishes; ++i) {
    StickyWish wish;
    wish.lease = in.u64();
    wish.authority = take_enum(in, Authority::site, good);
    wish.power_limit = take_limit(in);
    hold.sticky.push_back(wish);
  }
  if (!good || !in.ok() || !in.at_end() || intents > kMostEntries || wishes > kMostEntries) {
    return fail(ErrorCode::input, "a journal record cannot be read", hold.device.text());
  }
  return hold;
}

}  // namespace flyball::guard
