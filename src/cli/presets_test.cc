// Names of what comes with the program: what is said of one that there is not.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/presets.h"
#include "cli/program_test_support.h"

namespace flyball::cli {
namespace {

class Presets : public ProgramTest {
 protected:
  void SetUp() override {
    for (const char* name : {"meters/pdu-rpdu2", "meters/ups-rfc1628", "scenarios/pretrain-8", "scenarios/v100-bert"})
      ASSERT_TRUE(files_.write_atomically(*presets_folder() + "/" + name + ".conf", ""));
  }
};

TEST_F(Presets, AnUnknownProfileGetsTheNearestNameAndAllThereAre) {
  EXPECT_EQ(refused({"meter", "commission", "ups-rfc1682"}),
            "flyball: error: ups-rfc1682: there is no file and no preset of that name\n"
            "  name a file, or a preset: did you mean 'ups-rfc1628'? There are pdu-rpdu2, ups-rfc1628\n");
  EXPECT_NE(refused({"meter", "commission", "rack12.conf"}).find("a preset: there are pdu-rpdu2, ups"),
            std::string::npos);
  EXPECT_NE(refused({"meter", "commission", "./rack12.conf"}).find("check the name"), std::string::npos)
      << "a path is no preset";
}

TEST_F(Presets, AnUnknownScenarioAsWell) {
  EXPECT_NE(refused({"run", "--scenario", "pretrain8"})
                .find("there is no scenario 'pretrain8'\n  did you mean 'pretrain-8'? There are pretrain-8, v100-bert"),
            std::string::npos)
      << errors_;
}

class Buildings : public ProgramTest {
 protected:
  void SetUp() override {
    for (const char* name : {"facility/facility-1000", "scenarios/pretrain-8"}) {
      const std::string path = *presets_folder() + "/" + name + ".conf";
      ASSERT_TRUE(files_.write_atomically(path, *system_filesystem().read(path, 1 << 20)));
    }
  }
};

TEST_F(Buildings, StandInTheirOwnList) {
  const std::string all = text({"scenarios"});
  EXPECT_LT(all.find("pretrain-8"), all.find("building"));
  EXPECT_LT(all.find("building"), all.find("facility-1000"));
  EXPECT_NE(text({"scenarios", "facility-1000"}).find("facility.it.gpus"), std::string::npos);
  const auto made = nlohmann::json::parse(text({"scenarios", "--json"}));
  EXPECT_EQ(made["scenarios"].size(), 1u);
  EXPECT_EQ(made["scenarios"][0]["name"], "pretrain-8");
  ASSERT_EQ(made["buildings"].size(), 1u);
  EXPECT_EQ(made["buildings"][0]["name"], "facility-1000");
  EXPECT_EQ(made["buildings"][0]["parameters"]["facility.it.gpus"], "1000");
  const auto less =
      nlohmann::json::parse(text({"scenarios", "facility-1000", "--set", "facility.it.gpus=500", "--json"}));
  EXPECT_EQ(less["buildings"][0]["parameters"]["facility.it.gpus"], "500");
  EXPECT_TRUE(less["scenarios"].empty());
  EXPECT_NE(refused({"scenarios", "facilty-1000"}).find("did you mean 'facility-1000'?"), std::string::npos) << errors_;
}

TEST_F(Buildings, AFaultHasASize) {
  for (const char* size : {"nan", "inf", "-inf", "1e999", "-0.5", "1e9", "x"}) {
    const std::string said =
        refused({"calibrate", "explain", "--scenario", "facility-1000", "--fault", "ups_mode", "--fault-size", size});
    EXPECT_NE(said.find("--fault-size"), std::string::npos) << said;
  }
}

TEST_F(Buildings, BareNumbersAreFinite) {
  const std::string csv = put("p.csv", "time,power_w\n1767225600,300\n1767225601,300\n");
  for (const std::string word : {"nan", "inf", "-1", "1e999"}) {
    refused({"analyze", "energy", csv, "--tokens=" + word});
    refused({"analyze", "energy", csv, "--gap=" + word});
    refused({"run", "--duration", "1min", "--alpha=" + word});
  }
}

}  // namespace
}  // namespace flyball::cli
