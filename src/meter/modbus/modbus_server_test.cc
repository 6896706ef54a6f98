// Against a server of libmodbus in this process, over loopback.
#if FLYBALL_WITH_MODBUS
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <modbus/modbus.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "meter/modbus/modbus_meter.h"
#include "meter/open.h"
#include "series/counter.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

enum class Manner { answers, hangs, closes_after_each, trickles };

/// Holding registers 100 to 109; anything else is an illegal address.
class Server {
 public:
  static constexpr int kFirst = 100, kCount = 10;

  Server() {
    context_ = modbus_new_tcp("127.0.0.1", 0);
    mapping_ = modbus_mapping_new_start_address(0, 0, 0, 0, kFirst, kCount, 0, 0);
    listener_ = modbus_tcp_listen(context_, 4);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    end_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::eventfd_write(end_, 1);
    thread_.join();
    ::close(listener_);
    ::close(end_);
    modbus_mapping_free(mapping_);
    modbus_free(context_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void put(int address, std::uint16_t value) { mapping_->tab_registers[address - kFirst] = value; }

  int port = 0;
  std::atomic<Manner> manner = Manner::answers;
  std::atomic<int> requests = 0;

 private:
  void serve() {
    std::vector<int> clients;
    for (;;) {
      std::vector<pollfd> waits = {{end_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const int client : clients) waits.push_back({client, POLLIN, 0});
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;
      if (waits[0].revents != 0) break;
      for (std::size_t i = 2; i < waits.size(); ++i) {
        if (waits[i].revents != 0 && !answer(waits[i].fd)) {
          ::close(waits[i].fd);
          std::erase(clients, waits[i].fd);
        }
      }
      if (waits[1].revents != 0) clients.push_back(::accept(listener_, nullptr, nullptr));
    }
    for (const int client : clients) ::close(client);
  }

  bool answer(int client) {
    modbus_set_socket(context_, client);
    std::uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
    const int size = modbus_receive(context_, query);
    if (size <= 0) return false;
    ++requests;
    if (manner == Manner::hangs) return true;
    if (manner == Manner::trickles) {
      const std::uint8_t head[] = {query[0], query[1], 0, 0, 0, 7, query[6], query[7], 4, 1};
      return ::send(client, head, sizeof head, MSG_NOSIGNAL) == sizeof head;
    }
    modbus_reply(context_, query, size, mapping_);
    return manner != Manner::closes_after_each;
  }

  modbus_t* context_ = nullptr;
  modbus_mapping_t* mapping_ = nullptr;
  int listener_ = -1;
  int end_ = -1;
  std::thread thread_;
};

class ModbusServer : public testing::Test {
 protected:
  std::unique_ptr<Meter> open(const std::string& points, const std::string& extra = "") {
    const auto profile = parse_profile(
        "[meter]\nid = \"m\"\nprotocol = \"modbus\"\nsource = \"test\"\naddress = "
        "\"127.0.0.1:" +
            std::to_string(server_.port) + "\"\ntimeout = \"0.3s\"\n" + extra + points,
        "m.conf");
    if (!profile) {
      ADD_FAILURE() << profile.error().front().message();
      return nullptr;
    }
    return *open_meter(*profile, clock_);
  }
  static std::string point(const std::string& name, int address, const std::string& rest) {
    return "[point." + name + "]\nregister = " + std::to_string(address) + "\n" + rest + "\n";
  }

  Server server_;
  SystemClock clock_;
};

constexpr const char* kEnergy = "quantity = \"energy\"\nunit = \"Wh\"\ntype = \"u32\"\nsentinel = [\"0xffffffff\"]\n";
constexpr const char* kVolts = "quantity = \"voltage\"\nunit = \"V\"\ntype = \"u16\"\nscale = 0.1\n";

TEST_F(ModbusServer, BothHalvesAndTheirNeighbourInOneRequest) {
  server_.put(100, 0x0001);
  server_.put(101, 0x86a0);
  server_.put(102, 2301);
  auto meter = open(point("e", 100, kEnergy) + point("v", 102, kVolts));
  const auto readings = meter->read();
  EXPECT_DOUBLE_EQ(*readings[0].value, 100'000 * 3600.0) << readings[0].reason;
  EXPECT_DOUBLE_EQ(*readings[1].value, 230.1);
  EXPECT_EQ(server_.requests, 1);
  EXPECT_EQ(readings[0].clock, TimeSource::reader);
}

TEST_F(ModbusServer, WordOrderIsThatOfThePoint) {
  server_.put(100, 0x86a0);
  server_.put(101, 0x0001);
  server_.put(102, 0x4366);
  server_.put(103, 0x8000);
  auto meter = open(point("e", 100, std::string(kEnergy) + "order = \"cdab\"") +
                    point("v", 102, "quantity = \"voltage\"\nunit = \"V\"\ntype = \"f32\""));
  const auto readings = meter->read();
  EXPECT_DOUBLE_EQ(*readings[0].value, 100'000 * 3600.0);
  EXPECT_DOUBLE_EQ(*readings[1].value, 230.5);
}

TEST_F(ModbusServer, OffByOneByTheManualsCount) {
  server_.put(100, 2300);
  auto meter = open(point("v", 101, kVolts), "register_base = 1\n");
  EXPECT_DOUBLE_EQ(*meter->read()[0].value, 230);
}

TEST_F(ModbusServer, SentinelIsMissingAndBecomesNoBaseline) {
  auto meter = open(point("e", 100, kEnergy));
  series::CounterReader counter;
  const auto read = [&](std::uint32_t wh, double at_s) {
    server_.put(100, static_cast<std::uint16_t>(wh >> 16));
    server_.put(101, static_cast<std::uint16_t>(wh));
    const MeterReading reading = meter->read()[0];
    return counter.read(MonoTime() + Seconds(at_s), Joules(reading.value.value), reading.value.status);
  };
  EXPECT_EQ(read(1000, 0).event, series::CounterEvent::first);
  const auto absent = read(0xffffffff, 60);
  EXPECT_EQ(absent.event, series::CounterEvent::unusable);
  EXPECT_FALSE(absent.has_power());
  const auto after = read(1002, 120);
  EXPECT_EQ(after.event, series::CounterEvent::advance);
  EXPECT_DOUBLE_EQ(after.power().value(), 60);  // 2 Wh in two minutes, across the hole
}

TEST_F(ModbusServer, ARegisterThatIsNotThereCostsOnlyItself) {
  server_.put(109, 2300);
  auto meter = open(point("v", 109, kVolts) + point("w", 110, kVolts));
  const auto readings = meter->read();
  EXPECT_DOUBLE_EQ(*readings[0].value, 230) << readings[0].reason;
  EXPECT_EQ(readings[1].value.status, Status::not_supported);
  EXPECT_THAT(readings[1].reason, HasSubstr("refuses holding registers 110 to 110"));
}

TEST_F(ModbusServer, HangAndHalfAnAnswerAreFailuresWithinTheTimeoutAndTheNextReadIsGood) {
  server_.put(100, 2300);
  auto meter = open(point("v", 100, kVolts) + point("w", 105, kVolts));
  for (const Manner manner : {Manner::hangs, Manner::trickles}) {
    server_.manner = manner;
    const int before = server_.requests;
    const auto readings = meter->read();
    EXPECT_EQ(readings[0].value.status, Status::failed);
    EXPECT_EQ(readings[1].value.status, Status::failed);
    EXPECT_FALSE(readings[0].reason.empty());
    EXPECT_EQ(server_.requests - before, 1) << "asks no further once the time is over";
    server_.manner = Manner::answers;
    EXPECT_DOUBLE_EQ(*meter->read()[0].value, 230);
  }
}

TEST_F(ModbusServer, AConnectionThatTheDeviceClosedIsOpenedAgain) {
  server_.put(100, 2300);
  server_.manner = Manner::closes_after_each;
  auto meter = open(point("v", 100, kVolts) + point("w", 105, kVolts));
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(*meter->read()[0].value, 230);
}

TEST_F(ModbusServer, NobodyListensIsFailedForEveryPoint) {
  const int port = server_.port;
  const auto profile = parse_profile(
      "[meter]\nid = \"m\"\nprotocol = \"modbus\"\nsource = \"t\"\naddress = "
      "\"127.0.0.2:" +
          std::to_string(port) + "\"\ntimeout = \"0.3s\"\n" + point("v", 100, kVolts),
      "m.conf");
  const auto readings = (*open_meter(*profile, clock_))->read();
  EXPECT_EQ(readings[0].value.status, Status::failed);
  EXPECT_THAT(readings[0].reason, HasSubstr("connecting 127.0.0.2"));
}

TEST_F(ModbusServer, IdentityIsWhatTheServerReports) {
  const auto identity = open(point("v", 100, kVolts))->identify();
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_THAT(identity->text(), HasSubstr("LMB"));  // libmodbus' own answer
}

}  // namespace
}  // namespace flyball::meter
#endif
