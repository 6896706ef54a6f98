#include "base/scratch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/random.h"

namespace flyball {
namespace {

TEST(Scratch, GivesBackWhatWasPutAsideInMemoryAndInAFile) {
  Random random(1);
  for (const std::size_t in_memory : {std::size_t{0}, std::size_t{1000}, Scratch::kInMemory}) {
    Scratch scratch(in_memory);
    std::string all;
    for (int i = 0; i < 200; ++i) {
      const std::string piece(random.below(300), static_cast<char>('a' + i % 26));
      const auto at = scratch.append(piece);
      ASSERT_TRUE(at) << at.error().message();
      ASSERT_EQ(*at, all.size());
      all += piece;
    }
    const Scratch moved = std::move(scratch);
    for (int i = 0; i < 200; ++i) {
      const std::size_t from = random.below(all.size()), size = random.below(all.size() - from);
      std::string got(size, '\0');
      ASSERT_TRUE(moved.read(from, got.data(), size));
      ASSERT_EQ(got, all.substr(from, size));
    }
    char beyond = 0;
    EXPECT_FALSE(moved.read(all.size(), &beyond, 1));
  }
}

TEST(Scratch, AFolderThatTakesNothingIsAnErrorThatNamesTheRemedy) {
  const char* before = ::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", "/nowhere", 1);
  Scratch scratch(0);
  const auto refused = scratch.append("x");
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("/nowhere"), std::string::npos);
  EXPECT_NE(refused.error().remedy.find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace flyball
