#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/checksum.h"

namespace flyball {
namespace {

Result<> even(int n) {
  if (n % 2 != 0) return fail(ErrorCode::input, "it is odd", "n", "take an even one");
  return {};
}

Result<int> half(int n) {
  FLYBALL_TRY(even(n));
  return n / 2;
}

Result<int> quarter(int n) {
  FLYBALL_ASSIGN(const int once, half(n));
  FLYBALL_ASSIGN(const int twice, half(once));
  return twice;
}

Result<std::unique_ptr<int>> made(bool works) {
  if (!works) return fail(ErrorCode::unsupported, "no");
  return std::make_unique<int>(7);
}

Result<int> taken(bool works) {
  FLYBALL_ASSIGN(auto owned, made(works));
  return *owned;
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(taken(true).value(), 7);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{ErrorCode::input, "it is odd", "n", "take an even one"}));
  EXPECT_EQ(taken(false).error().code, ErrorCode::unsupported);
}

TEST(Error, SaysWhereWhatAndWhatToDo) {
  EXPECT_EQ(even(1).error().message(), "n: it is odd; take an even one");
  EXPECT_EQ((Error{ErrorCode::failed, "no", "", ""}).message(), "no");
  EXPECT_EQ((Error{ErrorCode::failed, "no", "x", ""}).message(), "x: no");
}

TEST(Error, CodesAreTheExitCodesThatScriptsRelyOn) {
  EXPECT_EQ((Error{ErrorCode::failed, "", "", ""}).exit_code(), 1);
  EXPECT_EQ((Error{ErrorCode::input, "", "", ""}).exit_code(), 2);
  EXPECT_EQ((Error{ErrorCode::refused, "", "", ""}).exit_code(), 3);
  EXPECT_EQ((Error{ErrorCode::unsupported, "", "", ""}).exit_code(), 4);
  EXPECT_EQ((Error{ErrorCode::degraded, "", "", ""}).exit_code(), 5);
}

TEST(Checksum, KnownVectors) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);  // the check value of CRC-32/ISO-HDLC
  EXPECT_EQ(crc32(""), 0U);
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2
}

}  // namespace
}  // namespace flyball
