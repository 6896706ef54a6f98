// ctest: needs flyball
// The program as users and scripts meet it: exit codes, messages, what goes to which stream.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/filesystem.h"
#include "base/temp_dir.h"

namespace flyball {
namespace {

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs `flyball ARGUMENTS` through the shell, in a folder of its own.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    const char* build = std::getenv("FLYBALL_BUILD");
    program_ = std::string(build != nullptr ? build : "build/release") + "/flyball";
    if (!system_filesystem().exists(program_)) GTEST_SKIP() << program_ << " is not built";
  }

  Ran run(const std::string& arguments, const std::string& redirect = {}) {
    const std::string out = folder_.file("stdout");
    const std::string err = folder_.file("stderr");
    const std::string stdout_to = redirect.empty() ? ">" + out : redirect;
    const int status =
        std::system(("timeout 60 " + program_ + ' ' + arguments + ' ' + stdout_to + " 2>" + err).c_str());
    Ran ran;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.out = system_filesystem().read(out, 1 << 20).value_or("");
    ran.err = system_filesystem().read(err, 1 << 20).value_or("");
    return ran;
  }

  std::string file(const std::string& name, const std::string& content) {
    EXPECT_TRUE(system_filesystem().write_atomically(folder_.file(name), content));
    return folder_.file(name);
  }
  std::string path(const std::string& name) { return folder_.file(name); }

 private:
  TempDir folder_;
  std::string program_;
};

TEST_F(Program, HelpAndVersionAreResults) {
  const Ran version = run("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("flyball ")) << version.out;
  EXPECT_EQ(version.err, "");
  for (const char* command : {"--help", "doctor --help", "config --help", "config check --help"}) {
    const Ran help = run(command);
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_NE(help.out.find("3 refused for safety"), std::string::npos) << command;
  }
  EXPECT_NE(run("config check --help").out.find("Examples:"), std::string::npos);
}

TEST_F(Program, BadUsageIsTwo) {
  for (const char* line : {"", "bogus", "config", "doctor --bogus", "doctor --color=always", "doctor extra",
                           "config check", "--gpu 0 doctor", "doctor --gpu 'GPU 1'", "doctor --source amd"}) {
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
    EXPECT_TRUE(ran.err.starts_with("flyball: error: ")) << line << ran.err;
  }
  EXPECT_NE(run("bogus").err.find("bogus"), std::string::npos);
}

TEST_F(Program, ConfigCheckShowsWhatHolds) {
  const std::string config = file("f.toml", "[run]\ninterval = \"5s\"\n");
  const Ran text = run("config check " + config);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("run.interval = \"5s\""), std::string::npos);
  EXPECT_EQ(run("config check " + file("again.toml", text.out)).code, 0) << "its output is a configuration";
  const auto json = nlohmann::ordered_json::parse(run("config check --json " + config).out);
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "flyball.config/1");
  EXPECT_EQ(json["valid"], true);
}

TEST_F(Program, ConfigCheckTellsAllFaults) {
  const std::string config = file("f.toml", "[run]\ncap = 400000\nbudget = 400000000000\n[guard]\nleese = \"5s\"\n");
  const Ran ran = run("config check " + config);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find(config + ":2: run.cap: there is no such key"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("has no unit\n  write \"400000000W\""), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("did you mean 'lease'?"), std::string::npos) << ran.err;
  const Ran json = run("config check --json " + config);
  EXPECT_EQ(json.code, 2);
  EXPECT_EQ(nlohmann::json::parse(json.out)["errors"].size(), 3U);
  EXPECT_EQ(run("config check " + path("none.toml")).code, 2);
  EXPECT_EQ(run("config check " + path("")).code, 1) << "a folder";
}

TEST_F(Program, ConfigTemplateIsAConfiguration) {
  const Ran made = run("config check --template");
  EXPECT_EQ(made.code, 0);
  EXPECT_EQ(run("config check " + file("t.toml", made.out)).code, 0);
}

TEST_F(Program, OutputAppearsWholeOrNotAtAll) {
  const std::string config = file("f.toml", "");
  EXPECT_EQ(run("config check " + config + " --output " + path("result")).code, 0);
  EXPECT_NE(system_filesystem().read(path("result"), 1 << 20).value_or("").find("run.interval"), std::string::npos);
  EXPECT_EQ(run("config check " + file("bad.toml", "x = 1") + " --output " + path("no")).code, 2);
  EXPECT_FALSE(system_filesystem().exists(path("no")));
  EXPECT_EQ(run("config check " + config + " --output " + path("none/x")).code, 2) << "no such folder";
}

TEST_F(Program, AFullDiskOrAClosedPipeIsAnError) {
  const std::string config = file("f.toml", "");
  const Ran full = run("config check " + config, ">/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("No space left"), std::string::npos);
  EXPECT_EQ(run("--help", ">/dev/full").code, 1);
  std::array<int, 2> ends{};
  constexpr int kClosedPipe = 9;  // the shell takes one digit
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::dup2(ends[1], kClosedPipe), kClosedPipe);
  for (const int end : ends) ::close(end);
  const Ran closed = run("config check " + config, ">&9");
  ::close(kClosedPipe);
  EXPECT_EQ(closed.code, 1);
  EXPECT_NE(closed.err.find("Broken pipe"), std::string::npos) << closed.err;
}

TEST_F(Program, DoctorSaysWhatIsHere) {
  const Ran text = run("--config " + file("c.toml", "") + " --state-dir " + path("state") + " doctor --color=auto");
  EXPECT_NE(text.out.find("kernel"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos) << "no colour where there is no terminal";
  EXPECT_TRUE(text.code == 0 || text.code == 1) << text.code;
  const Ran ran = run("--state-dir " + path("state") + " doctor --json --config " + file("f.toml", "run.interval = 5"));
  EXPECT_EQ(ran.code, 1) << "a configuration with faults fails its check";
  const auto json = nlohmann::ordered_json::parse(ran.out);
  EXPECT_EQ(json["schema"], "flyball.doctor/1");
  bool found = false;
  for (const auto& check : json["checks"]) {
    if (check["name"] != "config") continue;
    found = true;
    EXPECT_EQ(check["state"], "fail");
    EXPECT_NE(check["found"].get<std::string>().find("has no unit"), std::string::npos);
  }
  EXPECT_TRUE(found);
  EXPECT_FALSE(system_filesystem().exists(path("state"))) << "doctor only reads";
}

}  // namespace
}  // namespace flyball
