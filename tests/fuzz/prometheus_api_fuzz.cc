// Answers of any kind: samples rise in time, and nothing but numbers and NaN comes out.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "meter/prometheus/api.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::meter;
  auto all = decode_matrix({reinterpret_cast<const char*>(data), size});
  if (!all) return all.error().message().empty() ? std::abort(), 0 : 0;
  for (const PrometheusSeries& one : *all) {
    for (std::size_t i = 0; i < one.samples.size(); ++i) {
      if (std::isinf(one.samples[i].value)) std::abort();
      if (i > 0 && one.samples[i].at <= one.samples[i - 1].at) std::abort();
    }
  }
  (void)only_series(std::move(*all));
  return 0;
}
