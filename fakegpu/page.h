#ifndef FLYBALL_FAKEGPU_PAGE_H
#define FLYBALL_FAKEGPU_PAGE_H
/* The page between flyball-fakegpu (the one writer of it) and the fake library: C11 and C++20. doc/fakegpu.md describes
 * it byte by byte; a change of layout is a new FG_VERSION. All numbers are native and fixed in width. */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FG_MAGIC "FLYGPU\r\n" /* 8 bytes, no terminator */
#define FG_VERSION 1u
#define FG_MAX_GPUS 64u
#define FG_SLOTS 64u
#define FG_MAX_FIELD_FAULTS 8u
#define FG_SETTER_TIMEOUT_MS 2000u

enum fg_page_state { FG_STARTING = 0, FG_READY = 1, FG_CLOSED = 2 };

/* Groups of library calls that faults are set for. The order is part of the format: new ones go before FG_CALLS. */
enum fg_call {
  FG_CALL_POWER = 0,
  FG_CALL_ENERGY = 1,
  FG_CALL_LIMIT = 2,
  FG_CALL_ENFORCED = 3,
  FG_CALL_CONSTRAINTS = 4,
  FG_CALL_DEFAULT_LIMIT = 5,
  FG_CALL_SET_LIMIT = 6,
  FG_CALL_LOCK_CLOCKS = 7,
  FG_CALL_RESET_CLOCKS = 8,
  FG_CALL_FIELDS = 9,
  FG_CALL_UTILIZATION = 10,
  FG_CALL_TEMPERATURE = 11,
  FG_CALL_CLOCK = 12,
  FG_CALL_THROTTLE = 13,
  FG_CALL_FAN = 14,
  FG_CALL_MEMORY = 15,
  FG_CALL_STATE = 16,    /* performance state, compute and ECC mode, processes */
  FG_CALL_IDENTITY = 17, /* name, UUID, PCI, serial, minor */
  FG_CALL_PERSISTENCE = 18,
  FG_CALL_SET_PERSISTENCE = 19,
  FG_CALL_MIG = 20,
  FG_CALL_HANDLE = 21, /* looking the board up */
  FG_CALLS = 32
};

enum fg_fault_mode {
  FG_FAULT_NONE = 0,
  FG_FAULT_HANG = 1,  /* the call does not come back while this stands */
  FG_FAULT_VALUE = 2, /* success with fault_value in place of the value */
};

enum fg_gpu_flag {
  FG_HAS_ENERGY = 1,
  FG_HAS_INSTANT = 2,
  FG_HAS_AVERAGE = 4,
  FG_HAS_FAN = 8,
  FG_LOST = 16,
  FG_MIG = 32,
  FG_PERSISTENCE = 64,
};

struct fg_header {
  char magic[8];
  uint32_t version;
  uint32_t total_size; /* of the file */
  uint32_t gpu_count;
  uint32_t gpu_offset;
  uint32_t gpu_stride;
  uint32_t slot_offset;
  uint32_t slot_stride;
  uint32_t slot_count;
  uint32_t state; /* atomic; enum fg_page_state */
  uint32_t owner_pid;
  uint64_t owner_start; /* start time of that process in clock ticks since boot (field 22 of /proc/PID/stat) */
  uint64_t epoch;       /* atomic; differs with every load of the "driver" */
  uint64_t heartbeat;   /* atomic; CLOCK_BOOTTIME in ns, of the last publication */
  uint32_t setter_timeout_ms;
  uint32_t cuda_version; /* 12040 = 12.4 */
  char driver_version[32];
  char nvml_version[32];
  uint32_t ended_session_code; /* atomic; what calls of a session of an older epoch return */
  uint32_t reserved[91];
};

struct fg_field_fault {
  uint32_t field;  /* NVML field id; 0 = unused */
  uint16_t code;   /* the entry's own return code; 0 = success */
  uint16_t poison; /* 1 = the value is in another member of the union than its type says */
};

struct fg_gpu {
  uint32_t sequence; /* atomic; odd while being written */
  uint32_t index;
  char uuid[48];
  char name[96];
  char serial[32];
  char bus_id[32];
  uint32_t pci_domain, pci_bus, pci_device;
  uint32_t pci_device_id, pci_subsystem_id;
  uint32_t architecture; /* NVML_DEVICE_ARCH_* */
  uint32_t flags;        /* enum fg_gpu_flag */
  uint32_t power_average_mw, power_instant_mw;
  uint32_t limit_requested_mw, limit_enforced_mw, limit_minimum_mw, limit_maximum_mw, limit_default_mw;
  uint64_t energy_mj;
  uint64_t sensor_time_us; /* of the last refresh, UTC */
  uint64_t throttle_reasons;
  uint64_t memory_total, memory_used;                                                        /* bytes */
  uint32_t utilization_gpu, utilization_memory;                                              /* per cent */
  uint32_t temperature, temperature_slowdown, temperature_shutdown;                          /* degrees C */
  uint32_t sm_clock, memory_clock, sm_clock_maximum, sm_clock_minimum, memory_clock_maximum; /* MHz */
  uint32_t locked_low, locked_high;                                                          /* MHz; 0 = not locked */
  uint32_t fan;                                                                              /* per cent */
  uint32_t performance_state;
  uint32_t compute_major, compute_minor;
  uint32_t reserved0[34];
  uint16_t fault_code[FG_CALLS]; /* forced return code; 0 = none */
  uint8_t fault_mode[FG_CALLS];
  uint32_t fault_value[FG_CALLS];
  struct fg_field_fault field_fault[FG_MAX_FIELD_FAULTS];
  uint32_t reserved1[56];
};

/* A setter travels: free → claimed → posted → taken → done → free. A client that gives up leaves it abandoned; the
 * owner frees it. */
enum fg_slot_state {
  FG_SLOT_FREE = 0,
  FG_SLOT_CLAIMED = 1,
  FG_SLOT_POSTED = 2,
  FG_SLOT_TAKEN = 3,
  FG_SLOT_DONE = 4,
  FG_SLOT_ABANDONED = 5,
};

enum fg_operation { FG_SET_LIMIT = 1, FG_LOCK_CLOCKS = 2, FG_RESET_CLOCKS = 3, FG_SET_PERSISTENCE = 4 };

struct fg_slot {
  uint32_t state; /* atomic; enum fg_slot_state */
  uint32_t client_pid;
  uint64_t claimed; /* CLOCK_BOOTTIME in ns */
  uint64_t epoch;   /* of the client's session */
  uint32_t gpu;     /* index of the record */
  uint32_t operation;
  uint32_t a, b;   /* limit in mW; low and high clock in MHz; persistence 0 or 1 */
  uint32_t result; /* nvmlReturn_t */
  uint32_t reserved[5];
};

static_assert(sizeof(struct fg_header) == 512, "layout of the header");
static_assert(sizeof(struct fg_gpu) == 1024, "layout of a GPU record");
static_assert(sizeof(struct fg_slot) == 64, "layout of a slot");
static_assert(offsetof(struct fg_header, epoch) == 56, "layout of the header");
static_assert(offsetof(struct fg_gpu, energy_mj) == 272, "layout of a GPU record");
static_assert(offsetof(struct fg_gpu, fault_code) == 512, "layout of a GPU record");

#define FG_GPU_OFFSET ((uint32_t)sizeof(struct fg_header))
#define FG_SLOT_OFFSET(gpus) (FG_GPU_OFFSET + (uint32_t)(gpus) * (uint32_t)sizeof(struct fg_gpu))
#define FG_PAGE_SIZE(gpus) (FG_SLOT_OFFSET(gpus) + FG_SLOTS * (uint32_t)sizeof(struct fg_slot))

#endif
