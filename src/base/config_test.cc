#include "base/config.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace flyball {
namespace {

using enum ConfigType;

constexpr ConfigKey kKeys[] = {
    {"run.interval", duration, "10s", 1, 3600, "Between decisions", "habit"},
    {"run.cap", power, "", 1, 2000, "A limit", ""},
    {"run.clock", frequency, "", 1e8, 4e9, "A clock", ""},
    {"run.max_loss", fraction, "0.012", 0, 0.5, "Loss", "habit"},
    {"run.alpha", number, "", 0, 100, "Weight", ""},
    {"run.tries", whole, "5", 0, 10, "Tries", "habit"},
    {"run.live", flag, "false", 0, 0, "Live", "safe"},
    {"run.policy", text, "model", 0, 0, "Policy", "habit"},
    {"run.gpus", texts, "", 0, 0, "GPUs", ""},
    {"site.gpu.*.maximum", power, "", 1, 2000, "Most", ""},
};

Config accepted(std::string_view file) {
  auto config = Config::parse(file, "f.toml", kKeys);
  if (config) return *std::move(config);
  ADD_FAILURE() << config.error().front().message();
  return Config::defaults(kKeys);
}

/// All faults as "line: what; remedy".
std::vector<std::string> faults(std::string_view file) {
  const auto config = Config::parse(file, "f", kKeys);
  std::vector<std::string> all;
  if (config) return all;
  for (const Error& error : config.error()) {
    EXPECT_EQ(error.code, ErrorCode::input);
    all.push_back(error.message());
  }
  return all;
}

std::string fault(std::string_view file) {
  const auto all = faults(file);
  EXPECT_EQ(all.size(), 1U) << file;
  return all.empty() ? "none" : all.front();
}

TEST(Config, DefaultsHoldWhereTheFileIsSilent) {
  const Config config = accepted("");
  EXPECT_EQ(config.duration("run.interval"), Seconds(10));
  EXPECT_EQ(config.fraction("run.max_loss"), 0.012);
  EXPECT_EQ(config.whole("run.tries"), 5);
  EXPECT_EQ(config.flag("run.live"), false);
  EXPECT_EQ(config.text("run.policy"), "model");
  EXPECT_FALSE(config.power("run.cap"));
  EXPECT_TRUE(config.texts("run.gpus").empty());
  EXPECT_EQ(config.where("run.interval"), "default");
}

TEST(Config, ReadsEachType) {
  const Config config = accepted(R"([run] # comment with [ and "
interval = "30min"
cap = "0.4kW"
clock = "1410MHz"
max_loss = "1.5%"
alpha = 3
tries = 7
live = true
policy = 'static:250W'
gpus = ["GPU-1",
  "GPU-2", # the second
]
[site.gpu.GPU-1]
maximum = "300W"
[site.gpu."MIG-1/2"]
maximum = "200W"
)");
  EXPECT_EQ(config.duration("run.interval"), Seconds(1800));
  EXPECT_EQ(config.power("run.cap"), Watts(400));
  EXPECT_EQ(config.frequency("run.clock"), Hertz(1.41e9));
  EXPECT_DOUBLE_EQ(*config.fraction("run.max_loss"), 0.015);
  EXPECT_EQ(config.number("run.alpha"), 3);
  EXPECT_EQ(config.whole("run.tries"), 7);
  EXPECT_EQ(config.flag("run.live"), true);
  EXPECT_EQ(config.text("run.policy"), "static:250W");
  EXPECT_EQ(config.texts("run.gpus"), (std::vector<std::string>{"GPU-1", "GPU-2"}));
  EXPECT_EQ(config.names("site.gpu"), (std::vector<std::string>{"GPU-1", "MIG-1/2"}));
  EXPECT_EQ(config.power("site.gpu.MIG-1/2.maximum"), Watts(200));
  EXPECT_EQ(config.where("run.cap"), "f.toml:3");
}

TEST(Config, AValueWithoutUnitIsRefusedWithTheFormToWrite) {
  EXPECT_EQ(fault("[run]\ncap = 400000"), "f:2: run.cap: 400000 has no unit; write \"400W\"");
  EXPECT_EQ(fault("[run]\ncap = 400"), "f:2: run.cap: 400 has no unit; write \"400W\"");
  EXPECT_EQ(fault("run.interval = 10"), "f:1: run.interval: 10 has no unit; write \"10s\"");
  EXPECT_EQ(fault("run.cap = 9e30"), "f:1: run.cap: 9e+30 has no unit; write \"400W\" or \"2.4kW\"");
  EXPECT_NE(fault("run.cap = '400'").find("'400' has no unit"), std::string::npos);
  EXPECT_NE(fault("run.cap = '400VA'").find("unknown unit 'VA'"), std::string::npos);
}

TEST(Config, OutsideTheRangeIsRefusedWithTheRange) {
  EXPECT_EQ(fault("run.cap = '3kW'"), "f:1: run.cap: \"3000W\" is outside \"1W\" to \"2000W\"");
  EXPECT_EQ(fault("run.max_loss = 51"), "f:1: run.max_loss: 51 is outside 0 to 0.5");
  EXPECT_EQ(fault("run.tries = -1"), "f:1: run.tries: -1 is outside 0 to 10");
  EXPECT_EQ(fault("run.alpha = nan"), "f:1: run.alpha: nan is outside 0 to 100");
  EXPECT_EQ(fault("run.alpha = inf"), "f:1: run.alpha: inf is outside 0 to 100");
}

TEST(Config, TheWrongTypeIsNamed) {
  EXPECT_EQ(fault("run.live = 'yes'"), "f:1: run.live: is not true or false; write true");
  EXPECT_EQ(fault("run.policy = 5"), "f:1: run.policy: is not a string; write \"name\"");
  EXPECT_EQ(fault("run.gpus = 'GPU-1'"), "f:1: run.gpus: is not a list of strings; write [\"a\", \"b\"]");
  EXPECT_EQ(fault("run.alpha = '3'"), "f:1: run.alpha: is a string; write a number without quotes");
  EXPECT_EQ(fault("run.tries = 2.5"), "f:1: run.tries: 2.5 is not a whole number");
  EXPECT_EQ(fault("run.cap = true"), "f:1: run.cap: is not a power; write \"400W\" or \"2.4kW\"");
  EXPECT_EQ(fault("run.cap = {}"), "f:1: run.cap: is not a power; write \"400W\" or \"2.4kW\"");
  EXPECT_NE(fault("run.gpus = ['a', 5]").find("is not a list of strings"), std::string::npos);
  EXPECT_EQ(fault("run = 5"), "f:1: run: is a section; write [run] once");
  EXPECT_EQ(fault("[[run]]\ncap = '5W'"), "f:1: run: is a section; write [run] once");
}

TEST(Config, AnUnknownKeyGetsTheNearestName) {
  EXPECT_EQ(fault("[run]\nintervall = '10s'"), "f:2: run.intervall: there is no such key; did you mean 'interval'?");
  EXPECT_EQ(fault("[run]\npolciy = 'x'"), "f:2: run.polciy: there is no such key; did you mean 'policy'?");
  EXPECT_EQ(fault("[rum]\ncap = '5W'"), "f:1: rum: there is no such key; did you mean 'run'?");
  EXPECT_EQ(fault("[site.gpu.GPU-1]\nmaximun = '5W'"),
            "f:2: site.gpu.GPU-1.maximun: there is no such key; did you mean 'maximum'?");
  EXPECT_NE(fault("[run]\nzzzzzzzz = 1").find("known here: alpha, cap"), std::string::npos);
}

TEST(Config, AllFaultsAreToldInOrderOfTheFile) {
  const auto all = faults("[site]\nfoo = 1\n[run]\npolicy = 1\ncap = 5\nalpha = 'x'\n");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].substr(0, 4), "f:2:");
  EXPECT_EQ(all[1].substr(0, 4), "f:4:");
  EXPECT_EQ(all[2].substr(0, 4), "f:5:");
  EXPECT_EQ(all[3].substr(0, 4), "f:6:");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "k" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(faults(many).size(), 50U);
}

TEST(Config, WhatIsNotTomlIsRefusedWithItsLine) {
  EXPECT_EQ(fault("[run]\ncap = ").substr(0, 3), "f:2");
  EXPECT_NE(fault("[run]\ncap = '5W'\ncap = '6W'").find("f:3"), std::string::npos) << "twice";
  EXPECT_NE(fault("[run\n").find("not TOML"), std::string::npos);
}

TEST(Config, LinesThatAreNotTomlAreToldTogetherWithAllElse) {
  const auto all = faults("[run]\ncap = 5W\npolicy = model\ntries = 99\n[site.gpu.\"a\"]\nmaximum = 5kW\n");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].substr(0, 9), "f:2: the ");
  EXPECT_EQ(all[1].substr(0, 9), "f:3: the ");
  EXPECT_EQ(all[2], "f:4: run.tries: 99 is outside 0 to 10");
  EXPECT_EQ(all[3].substr(0, 9), "f:6: the ");
  // An open list makes faults of all that follows: only the first is told.
  EXPECT_EQ(faults("[run]\ngpus = ['a'\ncap = '5W'\nclock = 'x'\n").size(), 1U);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "k" + std::to_string(i) + " = x\n";
  EXPECT_EQ(faults(many).size(), 50U);
}

TEST(Config, WhatCanBeUsedStandsBesideTheFaults) {
  const auto made = Config::parse_partly("[run]\ncap = '5W'\ntries = 99\npolicy = model\n", "f", kKeys);
  EXPECT_EQ(made.faults.size(), 2U);
  EXPECT_EQ(made.config.power("run.cap"), Watts(5));
  EXPECT_TRUE(made.config.refused("run.tries"));
  EXPECT_TRUE(made.config.refused("run.policy"));
  EXPECT_FALSE(made.config.refused("run.cap"));
  EXPECT_EQ(made.config.whole("run.tries"), 5) << "the default";
}

TEST(Config, HostileFilesAreRefusedBeforeTheyAreParsed) {
  EXPECT_NE(fault(std::string((1 << 20) + 1, '\n')).find("larger than 1048576"), std::string::npos);
  EXPECT_NE(fault("a = \"" + std::string(5000, 'x') + "\"").find("longer than 4096"), std::string::npos);
  EXPECT_NE(fault("run.policy = 'caf\xc3\xa9'").find("byte 0xC3 at column 18"), std::string::npos);
  EXPECT_NE(fault(std::string("a\0", 2)).find("byte 0x00"), std::string::npos);
  EXPECT_NE(fault("run.gpus = " + std::string(2000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(fault("a = {b={c={d={e={f={g={h={i={}}}}}}}}}").find("nested deeper"), std::string::npos);
  EXPECT_NE(fault("a.b.c.d.e.f.g.h.i = 1").find("more than 8 parts"), std::string::npos);
  EXPECT_NE(fault("[a.b.c.d.e.f.g.h.i]").find("more than 8 parts"), std::string::npos);
  EXPECT_NE(faults("run.policy = \"\"\"\nx\n\"\"\"").front().find("over several lines"), std::string::npos);
  EXPECT_NE(faults("run.policy = \"x\n").front().find("does not end"), std::string::npos);
  EXPECT_FALSE(faults("\"a.b\" = 1").empty());
  std::string list = "run.gpus = [\n";
  for (int i = 0; i < 5000; ++i) list += "\"a\",\n";
  EXPECT_NE(fault(list + "]").find("4096 at most"), std::string::npos);
}

TEST(Config, EntriesReadBackToTheSameConfiguration) {
  const Config config = accepted("[run]\ncap = '250.5W'\ngpus = ['a\"b', 'c\\d']\n[site.gpu.GPU-1]\nmaximum = '300W'");
  std::string again;
  for (const Config::Entry& entry : config.entries()) {
    if (!entry.value.empty()) again += entry.path + " = " + entry.value + '\n';
  }
  const Config second = accepted(again);
  EXPECT_EQ(second.power("run.cap"), Watts(250.5));
  EXPECT_EQ(second.texts("run.gpus"), config.texts("run.gpus"));
  EXPECT_EQ(second.power("site.gpu.GPU-1.maximum"), Watts(300));
  EXPECT_EQ(second.entries().size(), config.entries().size());
}

TEST(Config, TheTemplateIsAnEmptyConfigurationAndHoldsEveryKey) {
  const std::string text = config_template(kKeys);
  EXPECT_TRUE(faults(text).empty());
  for (const ConfigKey& key : kKeys) {
    EXPECT_NE(text.find("# " + std::string(key.path.substr(key.path.rfind('.') + 1)) + " = "), std::string::npos)
        << key.path;
  }
}

TEST(Config, AskingForWhatIsNotDeclaredEndsTheProgram) {
  const Config config = accepted("");
  EXPECT_DEATH(config.text("run.none"), "is not declared");
  EXPECT_DEATH(config.text("run.cap"), "another type");
}

TEST(Config, TakesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) { Config::parse(bytes, "f", kKeys); }));
  EXPECT_TRUE(rc::check([] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(
        rc::gen::elementOf(std::vector<std::string>{"[", "]",  "run", ".", "cap", "=",  "'", "\"", "\n", "{", "}",
                                                    ",", "5W", "1",   "#", " ",   "\\", "+", "e",  "_",  "-"}));
    std::string file;
    for (const std::string& piece : pieces) file += piece;
    Config::parse(file, "f", kKeys);
  }));
}

}  // namespace
}  // namespace flyball
