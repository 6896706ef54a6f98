// The entry of this room's test program: like the programs that use workers, it is its own worker when asked to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/worker/serve.h"

int main(int argc, char** argv) {
  if (flyball::worker::is_worker_program(argc, argv)) return flyball::worker::run_worker_program(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
