// The frame and the checks, in this process; the program as a whole is tested in tests/.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/memory_filesystem.h"
#include "base/temp_dir.h"
#include "cli/doctor.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/signals.h"

namespace flyball::cli {
namespace {

/// A pipe whose read end is emptied without waiting.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  int write_end() const { return ends_[1]; }
  std::string taken() {
    std::array<char, 4096> block{};
    const ssize_t n = ::read(ends_[0], block.data(), block.size());
    return n > 0 ? std::string(block.data(), static_cast<std::size_t>(n)) : std::string();
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(Output, AFileAppearsOnlyWhenTheResultIsComplete) {
  MemoryFilesystem files;
  Output out(files, "/result");
  ASSERT_TRUE(out.write("one "));
  ASSERT_TRUE(out.write("two"));
  EXPECT_FALSE(files.exists("/result"));
  ASSERT_TRUE(out.commit());
  EXPECT_EQ(files.read("/result", 100).value(), "one two");
  files.content("/result") = "changed";
  ASSERT_TRUE(out.commit());
  EXPECT_EQ(files.read("/result", 100).value(), "changed") << "once";
}

TEST(Output, AFullDiskIsAnError) {
  MemoryFilesystem files;
  files.set_space_left(3);
  Output out(files, "/result");
  ASSERT_TRUE(out.write("too long"));
  EXPECT_EQ(out.commit().error().code, ErrorCode::failed);
  EXPECT_FALSE(files.exists("/result"));
}

TEST(Output, ADeviceIsWrittenToAndStaysOne) {
  Output null(system_filesystem(), "/dev/null");
  ASSERT_TRUE(null.write("x"));
  EXPECT_TRUE(null.commit());
  struct stat info {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  if (!system_filesystem().exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  Output full(system_filesystem(), "/dev/full");
  ASSERT_TRUE(full.write("x"));
  EXPECT_FALSE(full.commit());
}

TEST(Progress, ShowsAtMostTenTimesASecondAndCleansUp) {
  VirtualClock clock;
  Pipe pipe;
  {
    Progress progress(pipe.write_end(), 20, clock);
    for (int i = 0; i < 1000; ++i) {
      progress.show("step " + std::to_string(i));
      clock.advance(Seconds(0.001));
    }
    const std::string shown = pipe.taken();
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\r'), 10) << shown;
    EXPECT_TRUE(shown.starts_with("\rstep 0\x1b[K"));
  }
  EXPECT_EQ(pipe.taken(), "\r\x1b[K");
}

TEST(Progress, StaysOnItsLine) {
  VirtualClock clock;
  Pipe pipe;
  Progress progress(pipe.write_end(), 10, clock);
  progress.show("°°°°°°°°°°°°°°°\nx");
  EXPECT_EQ(pipe.taken(), "\r°°°°°°°°°\x1b[K");
}

TEST(Progress, IsSilentWhenThereIsNoTerminal) {
  VirtualClock clock;
  Progress progress(-1, 80, clock);
  progress.show("x");
  progress.clear();
}

TEST(StopSignal, IsNotedOnceAndTheOldHandlerComesBack) {
  {
    StopSignal stop;
    EXPECT_FALSE(stop.received());
    std::raise(SIGTERM);
    EXPECT_TRUE(stop.received());
  }
  EXPECT_EQ(stop_signal_received(), SIGTERM);
  StopSignal again;
  EXPECT_FALSE(again.received()) << "a new one starts anew";
  EXPECT_EQ(stop_signal_received(), 0);
}

TEST(StopSignal, TheSecondOneEndsTheProgram) {
  const auto twice = [] {
    StopSignal stop;
    std::raise(SIGINT);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
}

TEST(Doctor, Kernel) {
  MemoryFilesystem files;
  EXPECT_EQ(check_kernel(files).severity, Severity::warning);
  files.content("/proc/sys/kernel/osrelease") = "6.1.0-28-amd64\n";
  EXPECT_EQ(check_kernel(files).what, "Linux 6.1.0-28-amd64");
  EXPECT_EQ(check_kernel(files).severity, Severity::info);
  files.content("/proc/sys/kernel/osrelease") = "4.18.0-553.el8\n";
  EXPECT_EQ(check_kernel(files).severity, Severity::alarm);
}

TEST(Doctor, Container) {
  MemoryFilesystem files;
  EXPECT_EQ(check_container(files).severity, Severity::info);
  files.content("/.dockerenv") = "";
  EXPECT_EQ(check_container(files).severity, Severity::warning);
}

TEST(Doctor, Clock) {
  EXPECT_NE(check_clock(VirtualClock()).severity, Severity::alarm);
  EXPECT_EQ(check_clock(VirtualClock(WallTime(0))).severity, Severity::alarm);
}

TEST(Doctor, Config) {
  MemoryFilesystem files;
  EXPECT_EQ(check_config("", files).severity, Severity::info);
  EXPECT_EQ(check_config("/f", files).severity, Severity::alarm);
  files.content("/f") = "run.interval = '5s'";
  EXPECT_EQ(check_config("/f", files).severity, Severity::info);
  files.content("/f") = "run.interval = 5\nrun.x = 1";
  const Finding faulty = check_config("/f", files);
  EXPECT_EQ(faulty.severity, Severity::alarm);
  EXPECT_NE(faulty.what.find("2 faults, the first: /f:1: run.interval: 5 has no unit"), std::string::npos);
}

TEST(Doctor, StateDir) {
  const TempDir folder;
  EXPECT_EQ(check_state_dir(folder.path()).severity, Severity::info);
  EXPECT_NE(check_state_dir(folder.file("a/b")).what.find("will be made"), std::string::npos);
  ASSERT_TRUE(system_filesystem().write_atomically(folder.file("x"), ""));
  EXPECT_EQ(check_state_dir(folder.file("x")).severity, Severity::alarm);
  EXPECT_EQ(check_state_dir(folder.file("x/y")).severity, Severity::alarm) << "below a file";
}

TEST(Doctor, DiskSpaceLooksAtTheNearestFolder) {
  const TempDir folder;
  EXPECT_NE(check_disk_space(folder.file("a/b/c")).what.find("GB free under " + folder.path()), std::string::npos);
}

TEST(Doctor, GuardThatIsAbsentOrDead) {
  const TempDir folder;
  const std::string path = folder.file("g");
  EXPECT_EQ(check_guard(path).front().severity, Severity::warning) << "absent";
  EXPECT_EQ(check_guard(std::string(200, 'x')).front().severity, Severity::alarm);
  const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(check_guard(path).front().severity, Severity::alarm) << "there, but nobody listens";
  ::close(server);
}

TEST(Doctor, GuardTellsWhatItHoldsAndCannotDo) {
  const auto found =
      guard_findings(R"({"schema":"flyball.guard_status/1","leases":1,"alarms":["the disk is full"],"boards":[
      {"device":"GPU-a","held":true,"requested_mw":600000,"drift":"none","failures":0},
      {"device":"GPU-b","held":true,"restoring":true,"found_mw":700000,"failures":4,"reason":"no permission"},
      {"device":"GPU-c","held":true,"parked":true,"requested_mw":400000,"found_mw":700000},
      {"device":"GPU-d","drift":"foreign_writer","requested_mw":500000,"drift_rewrites":5,"yielded":true}]})",
                     "/run/g");
  const auto what = [&](const std::string& code) {
    const auto at = std::find_if(found.begin(), found.end(), [&](const Finding& f) { return f.code == code; });
    return at == found.end() ? std::string("none") : at->device.text() + "|" + at->what;
  };
  EXPECT_EQ(what("guard"), "|answers at /run/g; leases: 1, limits set on 3 of 4 boards");
  EXPECT_EQ(what("guard.not_restored"),
            "GPU-b|its limit is not given back after 4 tries, 700.0 W was found: no permission");
  EXPECT_EQ(what("guard.parked"), "GPU-c|rests at 400.0 W since its budget's lease ended; 700.0 W was found");
  EXPECT_EQ(
      what("guard.drift"),
      "GPU-d|its limit was not what the guard had set (foreign_writer): 500.0 W now, rewritten 5 times; the guard has "
      "yielded, until the lease ends or guard.drift_quiet passes");
  EXPECT_EQ(what("guard.alarm"), "|the disk is full");
  EXPECT_EQ(found.size(), 5u);
}

TEST(Doctor, AGuardsAnswerIsNotTrusted) {
  for (const char* text : {"", "[]", "{}", R"({"schema":"flyball.guard_status/2"})"}) {
    EXPECT_EQ(guard_findings(text, "g").front().severity, Severity::alarm) << text;
  }
  for (const char* boards :
       {"7", "[1,null,[]]", R"([{"device":3}])", R"([{"device":"GPU-a","drift":1,"failures":"x"}])"}) {
    const auto found = guard_findings(
        fmt::format(R"({{"schema":"flyball.guard_status/1","leases":"x","alarms":[4],"boards":{}}})", boards), "g");
    EXPECT_EQ(found.size(), 1u) << boards;
  }
}

TEST(Doctor, TheTwinHasAllItNeeds) {
  VirtualClock clock;
  const char* argv[] = {"flyball", "doctor", "--source", "twin", "--json", "--state-dir", "/tmp", "--output", "-"};
  testing::internal::CaptureStdout();
  (void)run_program(9, argv, system_filesystem(), clock);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("twin driver"), std::string::npos) << shown;
}

}  // namespace
}  // namespace flyball::cli
