// Names of what comes with the program: what is said of one that there is not.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace flyball::cli
