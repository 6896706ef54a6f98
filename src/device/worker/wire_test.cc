#include "device/worker/wire.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"

namespace flyball::worker {
namespace {

template <class T>
Sample<T> any_sample(Random& random, T value) {
  Sample<T> s(value);
  s.status = static_cast<Status>(random.below(9));
  return s;
}

GpuReading any_reading(Random& random) {
  GpuReading r;
  r.device = DeviceId::of("GPU-" + std::to_string(random.below(1000)));
  r.taken = MonoTime(static_cast<std::int64_t>(random.bits() >> 1));
  r.wall = WallTime(static_cast<std::int64_t>(random.bits() >> 1));
  r.call_time = Seconds(random.uniform());
  r.state = static_cast<DeviceState>(random.below(4));
  r.scope = static_cast<Scope>(random.below(11));
  r.power_average = any_sample(random, Watts(random.uniform(0, 3000)));
  r.power_instant = any_sample(random, Watts(random.uniform(0, 3000)));
  r.energy = any_sample(random, Joules(random.uniform(0, 1e12)));
  r.utilisation_fraction = any_sample(random, random.uniform());
  r.temperature = any_sample(random, Celsius(random.uniform(0, 100)));
  r.sm_clock = any_sample(random, Hertz(random.uniform(0, 3e9)));
  r.memory_clock = any_sample(random, Hertz(random.uniform(0, 3e9)));
  r.limit_requested = any_sample(random, Milliwatts(static_cast<std::int64_t>(random.below(700'000))));
  r.limit_enforced = any_sample(random, Milliwatts(static_cast<std::int64_t>(random.below(700'000))));
  r.throttle = any_sample(random, ThrottleReasons{static_cast<std::uint32_t>(random.below(512))});
  r.fan_fraction = any_sample(random, random.uniform());
  return r;
}

TEST(Wire, EveryReadingComesBackAsItWas) {
  rc::check([] {
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    const GpuReading r = any_reading(random);
    const auto back = get_reading(put(r));
    RC_ASSERT(back.has_value());
    RC_ASSERT(put(*back) == put(r));
    RC_ASSERT(back->energy.value == r.energy.value && back->energy.status == r.energy.status);
    RC_ASSERT(back->limit_enforced.value == r.limit_enforced.value);
    RC_ASSERT(back->taken == r.taken && back->device == r.device && back->state == r.state);
  });
}

TEST(Wire, TheOtherPayloadsComeBackAsTheyWere) {
  const Request request{DeviceId::of("GPU-1"), Milliwatts(-3), {Hertz(1e9), Hertz(2e9)}};
  const auto r = get_request(put(request));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->device, request.device);
  EXPECT_EQ(r->limit, request.limit);
  EXPECT_EQ(r->clocks, request.clocks);

  const Error error{ErrorCode::refused, "what", "where", "remedy"};
  EXPECT_EQ(get_error(put(error)).value(), error);
  const DriverEpoch epoch{"boot", "load", "550"};
  EXPECT_EQ(get_epoch(put(epoch)).value(), epoch);

  PowerLimits limits;
  limits.requested = Milliwatts(700'000);
  limits.minimum = Sample<Milliwatts>::absent(Status::garbage);
  limits.persistence = true;
  const auto l = get_limits(put(limits));
  ASSERT_TRUE(l);
  EXPECT_EQ(put(*l), put(limits));
  EXPECT_TRUE(l->persistence.value_or(false));
  EXPECT_EQ(l->minimum.status, Status::garbage);

  const Capabilities can{Status::ok, Status::not_supported, Status::lost,
                         Status::ok, Status::no_permission, Status::failed};
  EXPECT_EQ(get_capabilities(put(can))->write_limit, Status::no_permission);

  const std::vector<DeviceInfo> devices = {
      {DeviceId::of("GPU-1"), "H100", "0000:1b:00.0", DeviceState::hung, true, false},
      {DeviceId::of("GPU-2"), "", "", DeviceState::ok, false, true}};
  const auto d = get_devices(put(devices));
  ASSERT_TRUE(d);
  EXPECT_EQ(put(*d), put(devices));
}

TEST(Wire, TheLargestListFitsAMessage) {
  std::vector<DeviceInfo> devices(kMaxDevices + 10);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i] = {DeviceId::of(std::string(92, 'x') + std::to_string(1000 + i)),
                  std::string(4000, 'n'),
                  std::string(4000, 'p'),
                  DeviceState::ok,
                  false,
                  false};
  }
  const std::string bytes = encode({Kind::value, Operation::devices, 1, 1, put(devices)});
  EXPECT_LE(bytes.size(), kMaxMessageBytes);
  EXPECT_EQ(get_devices(decode(bytes)->payload)->size(), kMaxDevices);
}

TEST(Wire, NoCutAndNoFlippedBitPasses) {
  Random random(7);
  const std::string good = encode({Kind::value, Operation::read, 3, 9, put(any_reading(random))});
  ASSERT_TRUE(decode(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(decode(good.substr(0, size))) << size;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const auto message = decode(bad);
    if (!message) continue;
    // Only the header's own words are outside the checksum; each of them is compared by the owner.
    EXPECT_TRUE(message->generation != 3 || message->sequence != 9 || message->kind != Kind::value ||
                message->operation != Operation::read)
        << "bit " << bit;
  }
}

TEST(Wire, NoBytesWhateverMakeAPayloadThatIsWrong) {
  rc::check([] {
    const auto bytes = *rc::gen::arbitrary<std::string>();
    (void)get_request(bytes);
    (void)get_error(bytes);
    (void)get_epoch(bytes);
    if (const auto list = get_devices(bytes)) RC_ASSERT(list->size() <= kMaxDevices);
    RC_ASSERT((!get_reading(bytes) || put(*get_reading(bytes)) == bytes));
    RC_ASSERT((!get_limits(bytes) || put(*get_limits(bytes)) == bytes));
    RC_ASSERT((!get_capabilities(bytes) || put(*get_capabilities(bytes)) == bytes));
  });
}

TEST(Wire, AGoodSampleIsNeverNotANumber) {
  GpuReading r;
  r.device = DeviceId::of("GPU-1");
  r.power_average = Watts(std::nan(""));
  EXPECT_FALSE(get_reading(put(r)));
}

}  // namespace
}  // namespace flyball::worker
