// The reader of the format prometheus, and by its own choice every other.
#include "series/reader.h"

#include "telemetry_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return flyball::series::read_telemetry(data, size, flyball::series::Format::prometheus);
}
