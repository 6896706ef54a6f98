// The small parts: text that is safe to show, JSON, tables, accounts.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "report/account_view.h"
#include "report/json.h"
#include "report/table.h"
#include "report/utf8.h"

namespace flyball::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Utf8, KeepsWhatIsWellFormed) {
  EXPECT_EQ(clean_utf8("25 °C · a–b € 𝄞"), "25 °C · a–b € 𝄞");
  EXPECT_EQ(display_width("25 °C"), 5U);
  EXPECT_EQ(display_width("a·b"), 3U);
}

TEST(Utf8, ReplacesWhatCouldBreakAScreen) {
  EXPECT_EQ(clean_utf8("a\x1b[31mb"), "a\xEF\xBF\xBD[31mb");
  EXPECT_EQ(clean_utf8("a\nb\tc"), "a b c");
  EXPECT_EQ(clean_utf8(std::string("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(clean_utf8("\xC2\x9B"
                       "31m"),
            "\xEF\xBF\xBD"
            "31m")
      << "C1 control sequence introducer";
  EXPECT_EQ(clean_utf8("\xE2\x80\xAE"
                       "x"),
            "\xEF\xBF\xBD"
            "x")
      << "right-to-left override";
}

TEST(Utf8, ReplacesMalformedSequences) {
  EXPECT_EQ(clean_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong slash";
  EXPECT_EQ(clean_utf8("\xED\xA0\x80").find("\xED"), std::string::npos) << "surrogate";
  EXPECT_EQ(clean_utf8("ab\xE2\x82"), "ab\xEF\xBF\xBD\xEF\xBF\xBD") << "cut off";
  EXPECT_EQ(clean_utf8("\xF5\x80\x80\x80").find('\xF5'), std::string::npos);
}

TEST(Utf8, CleaningTwiceIsCleaningOnce) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string once = clean_utf8(bytes);
    RC_ASSERT(clean_utf8(once) == once);
  }));
}

TEST(Html, EscapedTextHoldsNoMarkup) {
  EXPECT_EQ(escape_html("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
  EXPECT_TRUE(rc::check(
      [](const std::string& bytes) { RC_ASSERT(escape_html(bytes).find_first_of("<>\"'") == std::string::npos); }));
}

TEST(Json, DocumentBeginsWithItsSchema) {
  Json made = document("run");
  made["energy_j"] = number(1.5);
  EXPECT_EQ(dump(made), "{\n  \"schema\": \"flyball.run/1\",\n  \"energy_j\": 1.5\n}\n");
  EXPECT_EQ(dump_line(made), "{\"schema\":\"flyball.run/1\",\"energy_j\":1.5}\n");
}

TEST(Json, WhatIsNotANumberIsNull) {
  EXPECT_TRUE(number(kNan).is_null());
  EXPECT_TRUE(number(kInfinity).is_null());
  EXPECT_TRUE(number(Sample<double>::absent(Status::lost)).is_null());
  EXPECT_EQ(number(Sample<double>(2.0)), 2.0);
  EXPECT_TRUE(estimate(std::optional<Estimate>()).is_null());
  const Json open = estimate(Estimate{0.5, -kInfinity, kInfinity, 0.95});
  EXPECT_EQ(open.dump(), R"({"value":0.5,"low":null,"high":null,"level":0.95})");
}

TEST(Json, TimesAreUtcAndUnsetTimesAreNull) {
  EXPECT_EQ(time(WallTime(1'000'000'000)), "1970-01-01T00:00:01.000Z");
  EXPECT_TRUE(time(WallTime()).is_null());
}

TEST(Json, BytesFromOutsideNeverMakeItThrow) {
  Json made = document("x");
  made["name"] = text("\xff\xfe<\x1b");
  made["raw"] = std::string("\xff");
  EXPECT_NO_THROW(dump(made));
  EXPECT_TRUE(Json::accept(dump(made)));
}

Table sample_table() {
  Table table;
  table.caption = "GPUs";
  table.columns = {{"name", Align::left}, {"limit", Align::right}, {"note", Align::left}};
  table.rows = {{"a", "250 W", ""}, {"b|<i>", "1,000 W", "25 °C"}, {"short"}};
  return table;
}

TEST(Table, AlignsInTheTerminal) {
  EXPECT_EQ(to_text(sample_table()),
            "GPUs\n"
            "name     limit  note\n"
            "a        250 W\n"
            "b|<i>  1,000 W  25 °C\n"
            "short\n");
}

TEST(Table, CountsRowsThatAreNotShown) {
  Table table = sample_table();
  for (int i = 0; i < 10; ++i) table.rows.push_back({"x"});
  const std::string text = to_text(table, 2);
  EXPECT_NE(text.find("… and 11 more\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("short"), std::string::npos);
}

TEST(Table, MarkdownKeepsItsColumns) {
  EXPECT_EQ(to_markdown(sample_table()),
            "**GPUs**\n\n"
            "| name | limit | note |\n"
            "|---|---:|---|\n"
            "| a | 250 W |  |\n"
            "| b\\|&lt;i> | 1,000 W | 25 °C |\n"
            "| short |  |  |\n");
}

TEST(Table, HtmlHasScopesAndNoMarkupFromCells) {
  const std::string html = to_html(sample_table());
  EXPECT_NE(html.find("<th scope=\"col\" class=\"n\">limit</th>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">b|&lt;i&gt;</th>"), std::string::npos);
  EXPECT_NE(html.find("<caption>GPUs</caption>"), std::string::npos);
  EXPECT_EQ(html.find("<i>"), std::string::npos);
}

TEST(Table, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(-0.2), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1732045), "1,732,045");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(kNan), "–");
}

TEST(Table, Estimates) {
  EXPECT_EQ(format_percent(Estimate{0.0342, 0.0310, 0.0374, 0.95}), "3.42 % (3.10 to 3.74 at 95 %)");
  EXPECT_EQ(format_percent(Estimate{0.0342, -kInfinity, kInfinity, 0.95}), "3.42 % (no interval)");
  EXPECT_EQ(format_percent(Estimate{kNan, 0, 0, 0.95}), "–");
}

Account sample_account() {
  Account account;
  account.energy = Joules(7.2e6);
  account.duration = Seconds(36000);
  account.tokens = 1'000'000;
  account.coverage_fraction = 0.998;
  account.scope = Scope::board;
  account.method = "counter";
  account.cost = 0.5;
  account.carbon_g = 700;
  return account;
}

TEST(AccountView, DerivesEachNumber) {
  const Json json = to_json(sample_account(), "EUR");
  EXPECT_EQ(json["energy_j"], 7.2e6);
  EXPECT_DOUBLE_EQ(json["mean_power_w"].get<double>(), 200 / 0.998);  // of the time that was measured
  EXPECT_DOUBLE_EQ(json["tokens_per_mwh"].get<double>(), 5e8);
  EXPECT_DOUBLE_EQ(json["wh_per_1000_tokens"].get<double>(), 2.0);
  EXPECT_EQ(json["scope"], "board");
  EXPECT_EQ(json["currency"], "EUR");
  EXPECT_EQ(json.begin().key(), "energy_j");
}

TEST(AccountView, WhatWasNotMeasuredIsNotZero) {
  Account account = sample_account();
  account.coverage_fraction = 0;
  account.energy = Joules(0);
  const Json json = to_json(account);
  for (const char* key : {"energy_j", "mean_power_w", "tokens_per_mwh", "wh_per_1000_tokens", "cost", "carbon_g"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_TRUE(json["currency"].is_null());
  const std::string text = to_text(account_table({"run"}, {account}));
  EXPECT_EQ(text.find("0.00 J"), std::string::npos) << text;
}

TEST(AccountView, WithoutTokensNothingIsPerToken) {
  Account account = sample_account();
  account.tokens = 0;
  const Json json = to_json(account);
  EXPECT_TRUE(json["tokens_per_mwh"].is_null());
  EXPECT_TRUE(json["wh_per_1000_tokens"].is_null());
  EXPECT_EQ(json["tokens"], 0.0);
}

TEST(AccountView, TablesPutAccountsSideBySide) {
  const std::string text = to_text(account_table({"on", "off"}, {sample_account(), sample_account()}, "EUR"));
  EXPECT_NE(text.find("7.20 MJ (2.000 kWh)  7.20 MJ (2.000 kWh)"), std::string::npos) << text;
  EXPECT_NE(text.find("500,000,000"), std::string::npos);
}

}  // namespace
}  // namespace flyball::report
