#pragma once
// The whole program in this process, on a folder of its own and with its results in memory; for this room's tests only.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/memory_filesystem.h"
#include "base/temp_dir.h"
#include "cli/app.h"

namespace flyball::cli {

class ProgramTest : public testing::Test {
 protected:
  /// An input of that name; its path.
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(dir_.file(name)) << text;
    return dir_.file(name);
  }
  /// The exit code of `flyball WORDS…`; what it printed is in out() and errors_.
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "flyball");
    for (const char* w : {"--output", "/out"}) words.emplace_back(w);
    std::vector<const char*> argv;
    for (const std::string& w : words) argv.push_back(w.c_str());
    testing::internal::CaptureStderr();
    const int code = run_program(static_cast<int>(argv.size()), argv.data(), files_, clock_);
    errors_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string out() { return files_.read("/out", 1 << 26).value_or(""); }
  std::string text(std::vector<std::string> words) {
    EXPECT_EQ(run(std::move(words)), 0) << errors_;
    return out();
  }
  /// The error of a run that must end with 2.
  std::string refused(std::vector<std::string> words) {
    EXPECT_EQ(run(std::move(words)), 2);
    return errors_;
  }

  TempDir dir_;
  MemoryFilesystem files_;
  VirtualClock clock_;
  std::string errors_;
};

}  // namespace flyball::cli
