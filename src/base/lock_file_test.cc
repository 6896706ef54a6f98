#include "base/lock_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/temp_dir.h"

namespace flyball {
namespace {

constexpr LockWords kWords = {"another one runs", "stop it", "make its folder"};

TEST(LockFile, IsHeldByOneAndFreedWithIt) {
  const TempDir folder;
  const std::string path = folder.file("lock");
  {
    auto first = LockFile::take(path, kWords);
    ASSERT_TRUE(first);
    const LockFile moved = *std::move(first);
    const auto second = LockFile::take(path, kWords);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::refused);
    EXPECT_EQ(second.error().message(),
              path + ": another one runs, process " + std::to_string(::getpid()) + "; stop it");
  }
  EXPECT_TRUE(LockFile::take(path, kWords));
}

TEST(LockFile, AFileThatIsNoNumberNamesNobody) {
  const TempDir folder;
  const std::string path = folder.file("lock");
  const auto held = LockFile::take(path, kWords);
  ASSERT_TRUE(held);
  std::ofstream(path) << "nobody knows whom";
  EXPECT_EQ(LockFile::take(path, kWords).error().message(), path + ": another one runs; stop it");
}

TEST(LockFile, WithoutItsFolderThereIsNone) {
  const auto lock = LockFile::take("/nowhere/at/all/lock", kWords);
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message(), testing::HasSubstr("make its folder"));
}

}  // namespace
}  // namespace flyball
