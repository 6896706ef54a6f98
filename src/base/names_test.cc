#include "base/names.h"

#include <gtest/gtest.h>

#include "base/memory_filesystem.h"

namespace flyball {
namespace {

TEST(Names, TheNearestIsMeant) {
  const std::vector<std::string> known = {"facility-1000", "pretrain-1", "pretrain-64"};
  EXPECT_EQ(nearest_name("facilty-1000", known), "facility-1000");
  EXPECT_EQ(nearest_name("pretrain-46", known), "pretrain-64");
  EXPECT_EQ(nearest_name("ups", known), "");
  EXPECT_EQ(nearest_name("t", {"s"}), "") << "nothing of it is there";
  EXPECT_EQ(names_in_words("ups", known), "there are facility-1000, pretrain-1, pretrain-64");
  EXPECT_EQ(names_in_words("pretrain1", known),
            "did you mean 'pretrain-1'? There are facility-1000, pretrain-1, pretrain-64");
  EXPECT_EQ(names_in_words("x", {}), "there are none");
  EXPECT_TRUE(names_in_words("x", std::vector<std::string>(60, "abc")).ends_with("abc and 10 more"));
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), {std::string(100'000, 'x')}).size(), 100'000U) << "bounded work";
}

TEST(Names, OfFilesWithTheEnding) {
  MemoryFilesystem files;
  for (const char* name : {"p/a.conf", "p/b.csv", "p/.conf", "p/c.conf"}) ASSERT_TRUE(files.write_atomically(name, ""));
  EXPECT_EQ(*names_of_files(files, "p", ".conf"), (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace flyball
