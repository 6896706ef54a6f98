#pragma once
// The few facts of NVIDIA's management library that we rely on, in our own declarations: the library is found at run
// time and nothing of NVIDIA's is needed to build. Source of every number and layout: the public header nvml.h, API
// version 12, as shipped with CUDA 12.x (field ids 185 to 192 since driver 530); checked by size below.

#include <cstddef>
#include <cstdint>

namespace flyball::nvml {

struct Handle;  ///< opaque; valid until the library is shut down
using DeviceHandle = Handle*;

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kVersionMismatch = 18,
  kInUse = 19,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kUnknown = 999,
};

// Sizes of the text buffers that callers offer.
constexpr unsigned kUuidBytes = 96;
constexpr unsigned kNameBytes = 96;
constexpr unsigned kVersionBytes = 80;

/// Bus identity; the long form of the bus id stands last.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_and_vendor;  ///< device id in the upper half, vendor (0x10de) in the lower
  unsigned subsystem;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Utilization {
  unsigned gpu;     ///< percent
  unsigned memory;  ///< percent
};

/// Which member of the union holds a field's value.
enum ValueType : unsigned {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

union Value {
  double as_double;
  int as_int;
  unsigned as_uint;
  unsigned long as_ulong;
  unsigned long long as_ulonglong;
  long long as_longlong;
  unsigned short as_ushort;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_us;
  long long latency_us;
  ValueType type;
  Return status;  ///< of this entry alone: the call may succeed and this fail
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

constexpr unsigned kFieldPowerAverage = 185;  ///< mW over 1 s; Ampere except GA100, and later
constexpr unsigned kFieldPowerInstant = 186;  ///< mW now
constexpr unsigned kScopeGpu = 0;
constexpr unsigned kScopeModule = 1;  ///< CPU + memory + GPU of one module

constexpr unsigned kArchitectureVolta = 5;
constexpr unsigned kArchitectureAmpere = 7;
constexpr unsigned kArchitectureUnknown = 0xFFFFFFFF;

constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kMigEnabled = 1;
constexpr unsigned kFeatureEnabled = 1;

// "No value", as the library writes it into fields of either width.
constexpr std::uint32_t kNotAvailable32 = 0xFFFFFFFFU;
constexpr std::uint64_t kNotAvailable64 = ~std::uint64_t{0};

}  // namespace flyball::nvml
