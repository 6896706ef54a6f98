#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <locale>

namespace flyball {
namespace {

TEST(Text, TrimSplitLower) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(to_lower("MiG-Ä"), "mig-Ä");
  EXPECT_TRUE(is_printable_ascii("a ~"));
  EXPECT_FALSE(is_printable_ascii("a\x7f"));
  EXPECT_FALSE(is_printable_ascii("\xc3\xa4"));
}

TEST(Text, NumbersAreWholeAndFinite) {
  EXPECT_EQ(parse_double(" 2.5e3 ").value(), 2500);
  EXPECT_EQ(parse_double("-0.25").value(), -0.25);
  for (const char* bad : {"", " ", "nan", "inf", "-inf", "1,5", "0x10", "1 2", "1e999", "5W", "--1"}) {
    const auto parsed = parse_double(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::input);
  }
  EXPECT_EQ(parse_int("-42").value(), -42);
  for (const char* bad : {"", "1.0", "9223372036854775808", "1e3", "0x1",
                          "7 "
                          "x"})
    EXPECT_FALSE(parse_int(bad)) << bad;
}

TEST(Text, ValuesWithUnits) {
  EXPECT_EQ(parse_watts("250W").value(), Watts(250));
  EXPECT_EQ(parse_watts(" 2.4 kW ").value(), Watts(2400));
  EXPECT_EQ(parse_watts("400000mW").value(), Watts(400));
  EXPECT_EQ(parse_watts("1e3W").value(), Watts(1000));
  EXPECT_EQ(parse_joules("1.5kWh").value(), Joules(5.4e6));
  EXPECT_EQ(parse_joules("36kJ").value(), Joules(36000));
  EXPECT_EQ(parse_seconds("10ms").value(), Seconds(0.01));
  EXPECT_EQ(parse_seconds("6h").value(), Seconds(21600));
  EXPECT_EQ(parse_seconds("2d").value(), Seconds(172800));
  EXPECT_EQ(parse_hertz("1410MHz").value(), Hertz(1.41e9));
  EXPECT_EQ(parse_fraction("1.2%").value(), 0.012);
  EXPECT_EQ(parse_fraction("0.012").value(), 0.012);
}

TEST(Text, AValueWithoutUnitIsRefusedWithTheFormNamed) {
  const auto error = parse_watts("400000").error();
  EXPECT_EQ(error.what, "'400000' has no unit");
  EXPECT_NE(error.remedy.find("250W"), std::string::npos);
}

TEST(Text, AnUnknownUnitIsNamedWithTheKnownOnes) {
  for (const char* bad : {"5kw", "5VA", "5W/h", "5 m W", "1h30min", "5e W"}) EXPECT_FALSE(parse_watts(bad)) << bad;
  const auto error = parse_watts("5VA").error();
  EXPECT_EQ(error.what, "'5VA' has the unknown unit 'VA'");
  EXPECT_NE(error.remedy.find("mW, W, kW, MW"), std::string::npos);
  for (const char* bad : {"", "W", "nanW", "infW", "1e999W"}) EXPECT_FALSE(parse_watts(bad)) << bad;
}

TEST(Text, LongInputIsNotRepeatedInFull) {
  EXPECT_LT(parse_watts(std::string(100'000, '9')).error().message().size(), 400U);
  EXPECT_LT(parse_watts("1" + std::string(100'000, 'x')).error().message().size(), 400U);
}

TEST(Text, ForPeople) {
  EXPECT_EQ(format(Watts(246.13)), "246.1 W");
  EXPECT_EQ(format(Watts(2400)), "2.40 kW");
  EXPECT_EQ(format(Watts(-0.5)), "-0.50 W");
  EXPECT_EQ(format(Joules(1.7e9)), "1.70 GJ");
  EXPECT_EQ(format(Seconds(57 * 60)), "57.00 min");
  EXPECT_EQ(format(Seconds(0.0125)), "12.50 ms");
  EXPECT_EQ(format(Hertz(1.41e9)), "1.41 GHz");
  EXPECT_EQ(format(Milliwatts(250'000)), "250.0 W");
  EXPECT_EQ(format_percent(0.0342), "3.42 %");
  EXPECT_EQ(format_percent(0.5, 0), "50 %");
}

TEST(Text, ExactTextReadsBackToTheSameNumber) {
  EXPECT_TRUE(rc::check([](double value) { RC_ASSERT(parse_double(format_exact(value)).value() == value); }));
  EXPECT_EQ(format_exact(0.1), "0.1");
}

/// Numbers as in much of Europe, without need of an installed locale.
class CommaNumbers : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Text, TheLocaleChangesNothing) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaNumbers));
  EXPECT_EQ(format_exact(1234.5), "1234.5");
  EXPECT_EQ(format(Watts(2400)), "2.40 kW");
  EXPECT_EQ(format_percent(0.5), "50.00 %");
  EXPECT_EQ(parse_double("0.5").value(), 0.5);
  EXPECT_FALSE(parse_double("0,5"));
  std::locale::global(before);
}

TEST(Text, ParsersTakeAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    parse_double(bytes);
    parse_int(bytes);
    parse_fraction(bytes);
    const auto power = parse_watts(bytes);
    if (power) RC_ASSERT(power->finite());
  }));
}

}  // namespace
}  // namespace flyball
