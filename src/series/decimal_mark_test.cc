// A decimal comma is read where nothing else can be meant, and thousands are never guessed.
#include "series/decimal_mark.h"

#include <gtest/gtest.h>

#include <vector>

namespace flyball::series {
namespace {

TEST(DecimalMark, ACommaIsReadBetweenSemicolons) {
  DecimalMark mark(';');
  const std::vector<std::pair<const char*, double>> cells = {
      {"1,5", 1.5}, {"-0,125", -0.125}, {"512,345", 512.345}, {"1234567,25", 1234567.25}, {"7", 7}, {"1,5e3", 1500}};
  std::uint64_t line = 1;
  for (const auto& [cell, expected] : cells) {
    double value = 0;
    EXPECT_FALSE(mark.read(cell, ++line, value)) << cell;
    EXPECT_DOUBLE_EQ(value, expected) << cell;
  }
}

std::string wrong(DecimalMark& mark, std::string_view cell, std::uint64_t line = 9) {
  double value = 0;
  const auto told = mark.read(cell, line, value);
  return told ? told->what + "; " + told->remedy : "";
}

TEST(DecimalMark, ElsewhereTheRemedyIsNamed) {
  for (const char separator : {',', '\t'}) {
    DecimalMark mark(separator);
    EXPECT_EQ(wrong(mark, "1.5"), "");
    for (const char* cell : {"1,5", "1,234", "1.234,5"})
      EXPECT_NE(wrong(mark, cell).find("separate the cells by semicolons"), std::string::npos) << cell;
    EXPECT_NE(wrong(mark, "five").find("write a number with a decimal point"), std::string::npos);
  }
}

TEST(DecimalMark, ThousandsAreNotGuessed) {
  DecimalMark mark(';');
  for (const char* cell : {"1.234,5", "1,234.5", "1.234.567", "1,234,567"})
    EXPECT_NE(wrong(mark, cell).find("marks for thousands"), std::string::npos) << cell;
  for (const char* cell : {"", ",", "-", "1,5 kW", "0x1,5", std::string(60, '1').append(",5").c_str()})
    EXPECT_NE(wrong(mark, cell).find("this is no number"), std::string::npos) << cell;
  EXPECT_EQ(wrong(mark, "1.234", 2), "") << "nothing yet says that this is not 1.234";
  EXPECT_NE(wrong(mark, "5,5").find("behind a point in '1.234' of line 2"), std::string::npos) << wrong(mark, "5,5");
  DecimalMark other(';');
  EXPECT_EQ(wrong(other, "5,5", 3), "");
  EXPECT_EQ(wrong(other, "2.25", 4), "") << "neither can be thousands";
  EXPECT_NE(wrong(other, "1.234").find("behind a comma in '5,5' of line 3"), std::string::npos);
  EXPECT_NE(wrong(other, "1,234").find("behind a point in '2.25' of line 4"), std::string::npos);
  EXPECT_EQ(wrong(other, "0,234"), "");
}

}  // namespace
}  // namespace flyball::series
