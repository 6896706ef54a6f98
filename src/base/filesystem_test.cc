#include "base/filesystem.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/golden.h"
#include "base/memory_filesystem.h"
#include "base/temp_dir.h"

namespace flyball {
namespace {

/// What both disks promise.
class AnyFilesystem : public testing::TestWithParam<bool> {
 protected:
  Filesystem& files() { return GetParam() ? system_filesystem() : memory_; }
  std::string path(const std::string& name) { return folder_.file(name); }
  const std::string& folder() { return folder_.path(); }

 private:
  TempDir folder_;
  MemoryFilesystem memory_;
};

TEST_P(AnyFilesystem, WritesAndReadsBack) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(files().write_atomically(path("x"), bytes));
  EXPECT_EQ(files().read(path("x"), 4).value(), bytes);
  EXPECT_TRUE(files().exists(path("x")));
  ASSERT_TRUE(files().write_atomically(path("x"), "new"));
  EXPECT_EQ(files().read(path("x"), 100).value(), "new");
  EXPECT_EQ(files().list(folder()).value(), std::vector<std::string>{"x"}) << "nothing is left beside it";
}

TEST_P(AnyFilesystem, RenamesInThePlaceOfWhatHadTheName) {
  ASSERT_TRUE(files().write_atomically(path("x.part"), "new"));
  ASSERT_TRUE(files().write_atomically(path("x"), "old"));
  ASSERT_TRUE(files().rename(path("x.part"), path("x")));
  EXPECT_EQ(files().read(path("x"), 100).value(), "new");
  EXPECT_EQ(files().list(folder()).value(), std::vector<std::string>{"x"});
  EXPECT_FALSE(files().rename(path("no"), path("y")));
}

TEST_P(AnyFilesystem, AnAbsentFileIsToldFromAFailedRead) {
  EXPECT_EQ(files().read(path("no"), 100).error().code, ErrorCode::unsupported);
  EXPECT_EQ(files().remove(path("no")).error().code, ErrorCode::unsupported);
  EXPECT_FALSE(files().exists(path("no")));
}

TEST_P(AnyFilesystem, AFileBeyondTheLimitIsRefused) {
  ASSERT_TRUE(files().write_atomically(path("x"), std::string(200'000, 'x')));
  EXPECT_TRUE(files().read(path("x"), 200'000));
  const auto read = files().read(path("x"), 199'999);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::input);
}

TEST_P(AnyFilesystem, AppendsAndReopens) {
  for (const char* part : {"one ", "two "}) {
    auto file = files().open_append(path("log")).value();
    ASSERT_TRUE(file->append(part));
    ASSERT_TRUE(file->append("and "));
    ASSERT_TRUE(file->sync());
  }
  EXPECT_EQ(files().read(path("log"), 100).value(), "one and two and ");
  ASSERT_TRUE(files().remove(path("log")));
  EXPECT_FALSE(files().exists(path("log")));
}

TEST_P(AnyFilesystem, ListsByName) {
  for (const char* name : {"b", "a", "c"}) ASSERT_TRUE(files().write_atomically(path(name), ""));
  EXPECT_EQ(files().list(folder()).value(), (std::vector<std::string>{"a", "b", "c"}));
}

INSTANTIATE_TEST_SUITE_P(Disks, AnyFilesystem, testing::Bool(),
                         [](const auto& which) { return which.param ? "System" : "Memory"; });

TEST(SystemFilesystem, AFullDiskIsAnErrorThatSaysSo) {
  Filesystem& files = system_filesystem();
  if (!files.exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto file = files.open_append("/dev/full").value();
  const auto appended = file->append("x");
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::failed);
  EXPECT_NE(appended.error().what.find("No space left"), std::string::npos);
  EXPECT_FALSE(appended.error().remedy.empty());
}

TEST(SystemFilesystem, AnAbsentFolderIsAWrongNameAndNamedAsItWasGiven) {
  TempDir folder;
  ASSERT_TRUE(system_filesystem().write_atomically(folder.file("plain"), "x"));
  for (const char* name : {"no/such/page.html", "plain/page.html"}) {
    const std::string path = folder.file(name);
    const auto written = system_filesystem().write_atomically(path, "x");
    const auto opened = system_filesystem().open_append(path);
    for (const Error& error : {written.error(), opened.error()}) {
      EXPECT_EQ(error.code, ErrorCode::input) << error.message();
      EXPECT_EQ(error.where, path);
      EXPECT_NE(error.what.find("is no folder"), std::string::npos) << error.what;
    }
  }
}

TEST(SystemFilesystem, AFailedWriteLeavesTheOldFile) {
  const TempDir folder;
  Filesystem& files = system_filesystem();
  ASSERT_TRUE(files.make_folders(folder.file("a/b")));
  ASSERT_TRUE(files.make_folders(folder.file("a/b"))) << "again is fine";
  EXPECT_FALSE(files.write_atomically(folder.file("a/b"), "over a folder"));
  EXPECT_EQ(files.list(folder.file("a")).value(), std::vector<std::string>{"b"}) << "no temporary file stays";
  EXPECT_EQ(files.write_atomically("/dev/null", "x").error().code, ErrorCode::input) << "a device stays one";
  EXPECT_FALSE(files.write_atomically(folder.file("none/x"), "x"));
  EXPECT_FALSE(files.read(folder.path(), 10)) << "a folder is no file";
  EXPECT_FALSE(files.list(folder.file("none")));
  ASSERT_TRUE(files.write_atomically(folder.file("file"), "x"));
  EXPECT_FALSE(files.make_folders(folder.file("file/x")));
}

TEST(SystemFilesystem, FilesAreNotForEveryone) {
  const TempDir folder;
  ASSERT_TRUE(system_filesystem().write_atomically(folder.file("x"), ""));
  struct stat info {};
  ASSERT_EQ(::stat(folder.file("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0007U, 0U);
}

TEST(MemoryFilesystem, AFullDiskTearsTheRecordThatDoesNotFit) {
  MemoryFilesystem files;
  auto log = files.open_append("/log").value();
  ASSERT_TRUE(log->append("12345"));
  files.set_space_left(3);
  EXPECT_FALSE(log->append("67890"));
  EXPECT_EQ(files.read("/log", 100).value(), "12345678");
  EXPECT_FALSE(log->append("x"));
  EXPECT_FALSE(files.write_atomically("/other", "abcd"));
  EXPECT_FALSE(files.exists("/other")) << "whole or not at all";
  files.set_space_left(100);
  EXPECT_TRUE(log->append("x"));
}

TEST(MemoryFilesystem, PowerLossKeepsWhatWasSynced) {
  MemoryFilesystem files;
  auto log = files.open_append("/log").value();
  ASSERT_TRUE(log->append("safe"));
  ASSERT_TRUE(log->sync());
  ASSERT_TRUE(log->append("lost"));
  ASSERT_TRUE(files.write_atomically("/whole", "whole"));
  files.lose_power(2);
  EXPECT_EQ(files.read("/log", 100).value(), "safelo") << "a torn tail";
  EXPECT_EQ(files.read("/whole", 100).value(), "whole");
  files.lose_power();
  EXPECT_EQ(files.read("/log", 100).value(), "safelo") << "what survived once is on the disk";
}

TEST(MemoryFilesystem, ARefusedSyncProtectsNothing) {
  MemoryFilesystem files;
  auto log = files.open_append("/log").value();
  files.set_sync_fails(true);
  ASSERT_TRUE(log->append("x"));
  EXPECT_FALSE(log->sync());
  EXPECT_FALSE(files.write_atomically("/other", "x"));
  files.lose_power();
  EXPECT_EQ(files.read("/log", 100).value(), "");
}

TEST(TempDir, GoesWithAllItHolds) {
  std::string path;
  {
    const TempDir folder;
    path = folder.path();
    ASSERT_TRUE(system_filesystem().make_folders(folder.file("a/b")));
    ASSERT_TRUE(system_filesystem().write_atomically(folder.file("a/b/c"), "x"));
  }
  EXPECT_FALSE(system_filesystem().exists(path));
}

TEST(Golden, TellsTheFirstDifferenceAndTheWayToAcceptIt) {
  if (updating_golden()) GTEST_SKIP() << "golden files are being rewritten";
  const TempDir folder;
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  ASSERT_TRUE(system_filesystem().make_folders("tests/golden"));
  ASSERT_TRUE(system_filesystem().write_atomically("tests/golden/x.txt", "one\ntwo\n"));
  EXPECT_EQ(golden_difference("x.txt", "one\ntwo\n"), "");
  EXPECT_EQ(
      golden_difference("x.txt", "one\n2\n"),
      "tests/golden/x.txt: line 2: expected \"two\", got \"2\"; if that is right, run the test with --update-golden");
  EXPECT_NE(golden_difference("x.txt", "one\n").find("line 2: expected \"two\", got \"\""), std::string::npos);
  EXPECT_NE(golden_difference("none.txt", "").find("No such file"), std::string::npos);
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace flyball
