/* What the board shows and what can be set: power, limits, clocks, state. */
#include <stdio.h>
#include <string.h>

#include "fakegpu/lib/session.h"

#define SUPPORTED_REASONS 0x1ffull
#define CLOCK_STEP_MHZ 15u
#define SCOPE_GPU 0u

/* The default field: a trailing mean where the chip has one, else the instantaneous value. */
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_POWER, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (milliwatts == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *milliwatts = fg_shown(&record, FG_CALL_POWER,
                         (record.flags & FG_HAS_AVERAGE) != 0 ? record.power_average_mw : record.power_instant_mw);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_ENERGY, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if ((record.flags & FG_HAS_ENERGY) == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (millijoules == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *millijoules =
      record.fault_mode[FG_CALL_ENERGY] == FG_FAULT_VALUE ? record.fault_value[FG_CALL_ENERGY] : record.energy_mj;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned int* mode) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_LIMIT, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (mode == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *mode = 1;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return fg_give(device, FG_CALL_LIMIT, milliwatts, offsetof(struct fg_gpu, limit_requested_mw));
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return fg_give(device, FG_CALL_DEFAULT_LIMIT, milliwatts, offsetof(struct fg_gpu, limit_default_mw));
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return fg_give(device, FG_CALL_ENFORCED, milliwatts, offsetof(struct fg_gpu, limit_enforced_mw));
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t* value) {
  if (value != NULL && value->version != NVML_STRUCT_VERSION(nvmlPowerValue_v2_t, 2u)) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  if (value != NULL && value->scope != SCOPE_GPU) return NVML_ERROR_NOT_SUPPORTED;
  return nvmlDeviceGetPowerManagementLimit(device, value != NULL ? &value->milliwatts : NULL);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* minimum,
                                                          unsigned int* maximum) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_CONSTRAINTS, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (minimum == NULL || maximum == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *minimum = fg_shown(&record, FG_CALL_CONSTRAINTS, record.limit_minimum_mw);
  *maximum = fg_shown(&record, FG_CALL_CONSTRAINTS, record.limit_maximum_mw);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int milliwatts) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_SET_LIMIT, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (target.is_mig) return NVML_ERROR_NOT_SUPPORTED;
  if (milliwatts < record.limit_minimum_mw || milliwatts > record.limit_maximum_mw) return NVML_ERROR_INVALID_ARGUMENT;
  return fg_post(target.gpu, FG_SET_LIMIT, milliwatts, 0);
}
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t* value) {
  if (value == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if (value->version != NVML_STRUCT_VERSION(nvmlPowerValue_v2_t, 2u)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (value->scope != SCOPE_GPU) return NVML_ERROR_NOT_SUPPORTED;
  return nvmlDeviceSetPowerManagementLimit(device, value->milliwatts);
}

/* The value of one field, or why there is none. */
static nvmlReturn_t field_value(const struct fg_gpu* record, unsigned int field, unsigned int* type,
                                unsigned long long* value) {
  *type = NVML_VALUE_UNSIGNED_INT;
  switch (field) {
    case NVML_FIELD_ECC_CURRENT:
    case NVML_FIELD_ECC_PENDING:
      *value = 1;
      return NVML_SUCCESS;
    case NVML_FIELD_TOTAL_ENERGY:
    case NVML_FIELD_ENERGY:
      *type = NVML_VALUE_UNSIGNED_LONG_LONG;
      *value = record->energy_mj;
      return (record->flags & FG_HAS_ENERGY) != 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FIELD_POWER_AVERAGE:
      *value = record->power_average_mw;
      return (record->flags & FG_HAS_AVERAGE) != 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FIELD_POWER_INSTANT:
      *value = record->power_instant_mw;
      return (record->flags & FG_HAS_INSTANT) != 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FIELD_POWER_MINIMUM_LIMIT:
      *value = record->limit_minimum_mw;
      return NVML_SUCCESS;
    case NVML_FIELD_POWER_MAXIMUM_LIMIT:
      *value = record->limit_maximum_mw;
      return NVML_SUCCESS;
    case NVML_FIELD_POWER_DEFAULT_LIMIT:
      *value = record->limit_default_mw;
      return NVML_SUCCESS;
    case NVML_FIELD_POWER_CURRENT_LIMIT:
      *value = record->limit_enforced_mw;
      return NVML_SUCCESS;
    case NVML_FIELD_POWER_REQUESTED_LIMIT:
      *value = record->limit_requested_mw;
      return NVML_SUCCESS;
    default:
      return NVML_ERROR_NOT_SUPPORTED;
  }
}

static void fill_field(const struct fg_gpu* record, nvmlFieldValue_t* entry) {
  unsigned long long value = 0;
  entry->timestamp_us = (long long)record->sensor_time_us;
  entry->latency_us = 0;
  entry->value.as_ull = 0;
  entry->status = entry->scope == SCOPE_GPU ? field_value(record, entry->field, &entry->type, &value)
                                            : (nvmlReturn_t)NVML_ERROR_NOT_SUPPORTED;
  if (record->fault_mode[FG_CALL_FIELDS] == FG_FAULT_VALUE) value = record->fault_value[FG_CALL_FIELDS];
  int poisoned = 0;
  for (size_t i = 0; i < FG_MAX_FIELD_FAULTS; ++i) {
    const struct fg_field_fault* fault = &record->field_fault[i];
    if (fault->field != entry->field || fault->field == 0) continue;
    if (fault->code != NVML_SUCCESS) entry->status = fault->code;
    poisoned = poisoned || fault->poison != 0;
  }
  if (entry->status != NVML_SUCCESS) return;
  if (poisoned) {
    entry->type = NVML_VALUE_DOUBLE;
    entry->value.as_double = (double)value;
  } else if (entry->type == NVML_VALUE_UNSIGNED_INT) {
    entry->value.as_uint = (unsigned int)value;
  } else {
    entry->value.as_ull = value;
  }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_FIELDS, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (count <= 0 || values == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) fill_field(&record, &values[i]);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_UTILIZATION, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (utilization == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if ((record.flags & FG_MIG) != 0) return NVML_ERROR_NOT_SUPPORTED;
  utilization->gpu = fg_shown(&record, FG_CALL_UTILIZATION, record.utilization_gpu);
  utilization->memory = fg_shown(&record, FG_CALL_UTILIZATION, record.utilization_memory);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int* celsius) {
  if (sensor != 0) {
    const nvmlReturn_t result = fg_check();
    return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
  }
  return fg_give(device, FG_CALL_TEMPERATURE, celsius, offsetof(struct fg_gpu, temperature));
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t* temperature) {
  if (temperature == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1u)) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  unsigned int celsius = 0;
  const nvmlReturn_t result = nvmlDeviceGetTemperature(device, temperature->sensor, &celsius);
  if (result == NVML_SUCCESS) temperature->temperature = (int)celsius;
  return result;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int threshold, unsigned int* celsius) {
  if (threshold == 0) {
    return fg_give(device, FG_CALL_TEMPERATURE, celsius, offsetof(struct fg_gpu, temperature_shutdown));
  }
  if (threshold == 1) {
    return fg_give(device, FG_CALL_TEMPERATURE, celsius, offsetof(struct fg_gpu, temperature_slowdown));
  }
  const nvmlReturn_t result = fg_check();
  return result != NVML_SUCCESS ? result : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t clock_of(nvmlDevice_t device, unsigned int type, unsigned int* megahertz, size_t sm,
                             size_t memory) {
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
    case NVML_CLOCK_VIDEO:
      return fg_give(device, FG_CALL_CLOCK, megahertz, sm);
    case NVML_CLOCK_MEM:
      return fg_give(device, FG_CALL_CLOCK, megahertz, memory);
    default: {
      const nvmlReturn_t result = fg_check();
      return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
  }
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int* megahertz) {
  return clock_of(device, type, megahertz, offsetof(struct fg_gpu, sm_clock), offsetof(struct fg_gpu, memory_clock));
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int* megahertz) {
  return clock_of(device, type, megahertz, offsetof(struct fg_gpu, sm_clock_maximum),
                  offsetof(struct fg_gpu, memory_clock_maximum));
}
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned int type, unsigned int* megahertz) {
  return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned int type, unsigned int* megahertz) {
  return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned int type, unsigned int* megahertz) {
  return nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int* megahertz) {
  if (id > 3) return NVML_ERROR_INVALID_ARGUMENT;
  return id == 0 ? nvmlDeviceGetClockInfo(device, type, megahertz) : nvmlDeviceGetMaxClockInfo(device, type, megahertz);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count, unsigned int* megahertz) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_CLOCK, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  const int fits = *count >= 1 && megahertz != NULL;
  *count = 1;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  megahertz[0] = record.memory_clock_maximum;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_clock, unsigned int* count,
                                                  unsigned int* megahertz) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_CLOCK, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory_clock != record.memory_clock_maximum) return NVML_ERROR_NOT_FOUND;
  const unsigned int have = (record.sm_clock_maximum - record.sm_clock_minimum) / CLOCK_STEP_MHZ + 1;
  const int fits = *count >= have && megahertz != NULL;
  *count = have;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int i = 0; i < have; ++i) megahertz[i] = record.sm_clock_maximum - i * CLOCK_STEP_MHZ;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int low, unsigned int high) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_LOCK_CLOCKS, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (target.is_mig) return NVML_ERROR_NOT_SUPPORTED;
  if (low > high || high < record.sm_clock_minimum || low > record.sm_clock_maximum) return NVML_ERROR_INVALID_ARGUMENT;
  return fg_post(target.gpu, FG_LOCK_CLOCKS, low, high);
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_RESET_CLOCKS, &record, &target);
  if (result != NVML_SUCCESS) return result;
  return target.is_mig ? NVML_ERROR_NOT_SUPPORTED : fg_post(target.gpu, FG_RESET_CLOCKS, 0, 0);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_THROTTLE, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (reasons == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *reasons = record.fault_mode[FG_CALL_THROTTLE] == FG_FAULT_VALUE ? record.fault_value[FG_CALL_THROTTLE]
                                                                   : record.throttle_reasons;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_THROTTLE, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (reasons == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *reasons = SUPPORTED_REASONS;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksThrottleReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int* state) {
  return fg_give(device, FG_CALL_STATE, state, offsetof(struct fg_gpu, performance_state));
}
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned int* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int* percent) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_FAN, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if ((record.flags & FG_HAS_FAN) == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (percent == NULL || fan != 0) return NVML_ERROR_INVALID_ARGUMENT;
  *percent = fg_shown(&record, FG_CALL_FAN, record.fan);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  return nvmlDeviceGetFanSpeed_v2(device, 0, percent);
}
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* fans) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_FAN, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (fans == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *fans = (record.flags & FG_HAS_FAN) != 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_MEMORY, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (memory == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = record.memory_total;
  memory->used = record.memory_used;
  memory->free = record.memory_total - record.memory_used;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2u)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlMemory_t plain;
  const nvmlReturn_t result = nvmlDeviceGetMemoryInfo(device, &plain);
  if (result != NVML_SUCCESS) return result;
  memory->total = plain.total;
  memory->reserved = 0;
  memory->free = plain.free;
  memory->used = plain.used;
  return NVML_SUCCESS;
}

/* States that the fake's boards are always in. */
static nvmlReturn_t constant(nvmlDevice_t device, enum fg_call call, unsigned int* to, unsigned int value) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, call, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (to == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *to = value;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int* mode) {
  return constant(device, FG_CALL_STATE, mode, 0);
}
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned int* mode) {
  return constant(device, FG_CALL_STATE, mode, 0);
}
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned int* active) {
  return constant(device, FG_CALL_STATE, active, 0);
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  const nvmlReturn_t result = constant(device, FG_CALL_STATE, current, 1);
  return result != NVML_SUCCESS ? result : constant(device, FG_CALL_STATE, pending, 1);
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int kind, unsigned int counter,
                                         unsigned long long* errors) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_STATE, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (errors == NULL || kind > 1 || counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
  *errors = 0;
  return NVML_SUCCESS;
}

/* The twin's job is no process of this machine. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int* count) {
  return constant(device, FG_CALL_STATE, count, 0);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count, void* infos) {
  (void)infos;
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int* mode) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_PERSISTENCE, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (mode == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *mode = (record.flags & FG_PERSISTENCE) != 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_SET_PERSISTENCE, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (mode > 1) return NVML_ERROR_INVALID_ARGUMENT;
  return target.is_mig ? NVML_ERROR_NOT_SUPPORTED : fg_post(target.gpu, FG_SET_PERSISTENCE, mode, 0);
}
