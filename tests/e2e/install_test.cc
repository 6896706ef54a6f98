// ctest: needs flyball flyball-guard
// What `cmake --install` puts where, and that the service manager takes the installed unit as it is.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include "../shell.h"
#include "base/filesystem.h"
#include "base/temp_dir.h"

namespace flyball {
namespace {

std::string build_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

bool has(const char* program) {
  return std::system(fmt::format("command -v {} >/dev/null 2>&1", program).c_str()) == 0;
}

class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has("cmake")) GTEST_SKIP() << "cmake is not here";
    const std::string done = shell(fmt::format("cmake --install {} --prefix {}", build_folder(), prefix.path()));
    ASSERT_TRUE(done.ends_with("exit 0")) << done;
  }
  std::string text(const std::string& name) {
    return system_filesystem().read(prefix.file(name), 1 << 20).value_or("");
  }
  TempDir prefix;
};

TEST_F(Install, TheProgramsRunFromThere) {
  EXPECT_TRUE(shell(prefix.file("bin/flyball-guard") + " --version").ends_with("exit 0"));
  EXPECT_TRUE(shell("FLYBALL_PRESETS= " + prefix.file("bin/flyball") + " scenarios").ends_with("exit 0"))
      << "the presets are found beside the program";
  EXPECT_FALSE(std::filesystem::exists(prefix.file("lib/libnvidia-ml.so.1"))) << "fake boards stay where they are";
}

TEST_F(Install, TheServiceManagerTakesTheUnit) {
  const std::string unit = text("lib/systemd/system/flyball-guard.service");
  for (const std::string& line :
       {"ExecStart=" + prefix.file("bin/flyball-guard") + " serve --config " + prefix.file("etc/flyball/flyball.toml"),
        "ExecStopPost=" + prefix.file("bin/flyball-guard") + " restore --config " +
            prefix.file("etc/flyball/flyball.toml")}) {
    EXPECT_NE(unit.find(line), std::string::npos) << line << "\n" << unit;
  }
  if (!has("systemd-analyze")) GTEST_SKIP() << "systemd-analyze is not here";
  EXPECT_EQ(shell("systemd-analyze verify --man=no " + prefix.file("lib/systemd/system/flyball-guard.service")),
            "exit 0");
}

TEST_F(Install, TheConfigurationIsValidAndWhatItSuggestsToo) {
  const std::string check = prefix.file("bin/flyball") + " config check ";
  EXPECT_TRUE(shell(check + prefix.file("etc/flyball/flyball.toml")).ends_with("exit 0"));
  const std::string all =
      std::regex_replace(text("etc/flyball/flyball.toml"), std::regex("(^|\n)# ([a-z_]+ = )"), "$1$2");
  ASSERT_NE(all, text("etc/flyball/flyball.toml"));
  ASSERT_TRUE(system_filesystem().write_atomically(prefix.file("all.toml"), all));
  const std::string verdict = shell(check + prefix.file("all.toml"));
  EXPECT_TRUE(verdict.ends_with("exit 0")) << verdict;
}

TEST_F(Install, ASitesOwnConfigurationStays) {
  ASSERT_TRUE(system_filesystem().write_atomically(prefix.file("etc/flyball/flyball.toml"), "[guard]\n"));
  const std::string done = shell(fmt::format("cmake --install {} --prefix {}", build_folder(), prefix.path()));
  ASSERT_TRUE(done.ends_with("exit 0")) << done;
  EXPECT_EQ(text("etc/flyball/flyball.toml"), "[guard]\n");
}

TEST_F(Install, ThePageOfTheManualHasNoFaults) {
  EXPECT_NE(text("share/man/man8/flyball-guard.8"), "");
  EXPECT_NE(text("lib/sysusers.d/flyball.conf"), "");
  if (!has("groff")) GTEST_SKIP() << "groff is not here";
  EXPECT_EQ(shell("groff -man -Tascii -ww -z " + prefix.file("share/man/man8/flyball-guard.8")), "exit 0");
}

}  // namespace
}  // namespace flyball
