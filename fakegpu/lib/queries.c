/* Who is there: start and end, versions, handles, identity, MIG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakegpu/lib/session.h"

nvmlReturn_t nvmlInit_v2(void) { return fg_init(); }
nvmlReturn_t nvmlInit(void) { return fg_init(); }
nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  return (flags & ~3u) != 0 ? NVML_ERROR_INVALID_ARGUMENT : fg_init();
}
nvmlReturn_t nvmlShutdown(void) { return fg_shutdown(); }

const char* nvmlErrorString(nvmlReturn_t result) {
  static const struct {
    nvmlReturn_t code;
    const char* text;
  } kTexts[] = {
      {NVML_SUCCESS, "Success"},
      {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
      {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
      {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
      {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
      {NVML_ERROR_NOT_FOUND, "Not Found"},
      {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
      {NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
      {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
      {NVML_ERROR_TIMEOUT, "Timeout"},
      {NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
      {NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
      {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
      {NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
      {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
      {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
      {NVML_ERROR_OPERATING_SYSTEM, "Blocked by the operating system"},
      {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
      {NVML_ERROR_IN_USE, "In use by another client"},
      {NVML_ERROR_MEMORY, "Insufficient Memory"},
      {NVML_ERROR_NO_DATA, "No data"},
      {NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
      {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
      {NVML_ERROR_DEPRECATED, "Deprecated"},
      {NVML_ERROR_NOT_READY, "Not ready"},
      {NVML_ERROR_GPU_NOT_FOUND, "No GPU found"},
      {NVML_ERROR_INVALID_STATE, "Invalid state"},
  };
  for (size_t i = 0; i < sizeof kTexts / sizeof kTexts[0]; ++i) {
    if (kTexts[i].code == result) return kTexts[i].text;
  }
  return "Unknown Error";
}

/* Private interface of NVIDIA's own tools: there is none here. */
nvmlReturn_t nvmlInternalGetExportTable(const void** table, const void* id) {
  if (table == NULL || id == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *table = NULL;
  return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t give_text(const char* from, char* text, unsigned int length) {
  const size_t need = strlen(from) + 1;
  if (text == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  if (length < need) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(text, from, need);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  struct fg_header header;
  const nvmlReturn_t result = fg_header_copy(&header);
  return result != NVML_SUCCESS ? result : give_text(header.driver_version, text, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned int length) {
  struct fg_header header;
  const nvmlReturn_t result = fg_header_copy(&header);
  return result != NVML_SUCCESS ? result : give_text(header.nvml_version, text, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  struct fg_header header;
  const nvmlReturn_t result = fg_header_copy(&header);
  if (result != NVML_SUCCESS) return result;
  if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *version = (int)header.cuda_version;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  const nvmlReturn_t result = fg_check();
  if (result != NVML_SUCCESS) return result;
  char path[32];
  char line[256];
  snprintf(path, sizeof path, "/proc/%u/comm", pid);
  FILE* file = fopen(path, "re");
  if (file == NULL) return NVML_ERROR_NOT_FOUND;
  const char* read = fgets(line, sizeof line, file);
  fclose(file);
  if (read == NULL) return NVML_ERROR_NOT_FOUND;
  line[strcspn(line, "\n")] = '\0';
  return give_text(line, name, length);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  struct fg_header header;
  const nvmlReturn_t result = fg_header_copy(&header);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *count = header.gpu_count;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) { return nvmlDeviceGetCount_v2(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read_index(index, FG_CALL_HANDLE, &record);
  if (result != NVML_SUCCESS) return result;
  return device == NULL ? NVML_ERROR_INVALID_ARGUMENT : fg_handle(index, 0, 0, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void mig_uuid(const struct fg_gpu* record, unsigned int instance, char* text, size_t size) {
  /* The board's own, with the instance in the last digit: unlike and yet the same in every run. */
  snprintf(text, size, "MIG-%.*s%x", (int)(sizeof record->uuid - 6), record->uuid + 4, instance + 1);
}

enum key { BY_UUID, BY_SERIAL, BY_BUS };

/* nvidia-smi writes the domain with eight digits, older tools with four. */
static int same_bus(const char* given, const struct fg_gpu* record) {
  char* end;
  const unsigned long domain = strtoul(given, &end, 16);
  if (end == given || *end != ':') return 0;
  const char* at = end + 1;
  const unsigned long bus = strtoul(at, &end, 16);
  if (end == at || *end != ':') return 0;
  at = end + 1;
  const unsigned long device = strtoul(at, &end, 16);
  if (end == at) return 0;
  if (*end == '.') {
    at = end + 1;
    (void)strtoul(at, &end, 16);
    if (end == at) return 0;
  }
  if (*end != '\0') return 0;
  return domain == record->pci_domain && bus == record->pci_bus && device == record->pci_device;
}

static int is_it(enum key key, const char* given, const struct fg_gpu* record, struct fg_target* target) {
  target->is_mig = 0;
  target->instance = 0;
  if (key == BY_SERIAL) return strcmp(given, record->serial) == 0;
  if (key == BY_BUS) return same_bus(given, record);
  if (strcmp(given, record->uuid) == 0) return 1;
  if ((record->flags & FG_MIG) == 0) return 0;
  for (unsigned int i = 0; i < FG_MIG_INSTANCES; ++i) {
    char mig[64];
    mig_uuid(record, i, mig, sizeof mig);
    if (strcmp(given, mig) == 0) {
      target->is_mig = 1;
      target->instance = i;
      return 1;
    }
  }
  return 0;
}

static nvmlReturn_t find(enum key key, const char* given, nvmlDevice_t* device) {
  struct fg_header header;
  nvmlReturn_t result = fg_header_copy(&header);
  if (result != NVML_SUCCESS) return result;
  if (given == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  for (unsigned int i = 0; i < header.gpu_count; ++i) {
    struct fg_gpu record;
    struct fg_target target;
    result = fg_peek_index(i, &record);
    if (result != NVML_SUCCESS) return result;
    /* One lost or hanging board must not hide the others: its error counts only for itself. */
    if (!is_it(key, given, &record, &target)) continue;
    result = fg_read_index(i, FG_CALL_HANDLE, &record);
    return result != NVML_SUCCESS ? result : fg_handle(i, target.is_mig, target.instance, device);
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) { return find(BY_UUID, uuid, device); }
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return find(BY_SERIAL, serial, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  return find(BY_BUS, bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return find(BY_BUS, bus_id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* text, unsigned int length) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  return result != NVML_SUCCESS ? result : give_text(record.name, text, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned int length) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (!target.is_mig) return give_text(record.uuid, text, length);
  char mig[64];
  mig_uuid(&record, target.instance, mig, sizeof mig);
  return give_text(mig, text, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* text, unsigned int length) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  return result != NVML_SUCCESS ? result : give_text(record.serial, text, length);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* text, unsigned int length) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  return result != NVML_SUCCESS ? result : give_text("fake", text, length);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  return fg_give(device, FG_CALL_IDENTITY, index, offsetof(struct fg_gpu, index));
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  /* Not the index: minors follow the order of probing, NVML's index the bus. */
  struct fg_header header;
  unsigned int index = 0;
  nvmlReturn_t result = fg_header_copy(&header);
  if (result == NVML_SUCCESS) result = nvmlDeviceGetIndex(device, &index);
  if (result != NVML_SUCCESS) return result;
  if (minor == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *minor = header.gpu_count - 1 - index;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int* architecture) {
  return fg_give(device, FG_CALL_IDENTITY, architecture, offsetof(struct fg_gpu, architecture));
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int* brand) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (brand == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *brand = strncmp(record.name, "Tesla", 5) == 0 ? 2u : 14u;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major_version, int* minor_version) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (major_version == NULL || minor_version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *major_version = (int)record.compute_major;
  *minor_version = (int)record.compute_minor;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_IDENTITY, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (pci == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", record.pci_domain & 0xffffu,
           record.pci_bus & 0xffu, record.pci_device & 0xffu);
  memcpy(pci->bus_id, record.bus_id, sizeof pci->bus_id);
  pci->domain = record.pci_domain;
  pci->bus = record.pci_bus;
  pci->device = record.pci_device;
  pci->pci_device_id = record.pci_device_id;
  pci->pci_subsystem_id = record.pci_subsystem_id;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v1_t* pci) {
  nvmlPciInfo_t full;
  const nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(device, &full);
  if (result != NVML_SUCCESS) return result;
  if (pci == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  memcpy(pci->bus_id, full.bus_id_legacy, sizeof pci->bus_id);
  pci->domain = full.domain;
  pci->bus = full.bus;
  pci->device = full.device;
  pci->pci_device_id = full.pci_device_id;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current, unsigned int* pending) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_MIG, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (current == NULL || pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *current = *pending = (record.flags & FG_MIG) != 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, FG_CALL_MIG, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *count = (record.flags & FG_MIG) != 0 ? FG_MIG_INSTANCES : 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_MIG, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (is_mig == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  *is_mig = target.is_mig != 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t* mig) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(device, FG_CALL_MIG, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (mig == NULL || target.is_mig) return NVML_ERROR_INVALID_ARGUMENT;
  if ((record.flags & FG_MIG) == 0) return NVML_ERROR_NOT_SUPPORTED;
  return index < FG_MIG_INSTANCES ? fg_handle(target.gpu, 1, index, mig) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* device) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(mig, FG_CALL_MIG, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (device == NULL || !target.is_mig) return NVML_ERROR_INVALID_ARGUMENT;
  return fg_handle(target.gpu, 0, 0, device);
}

static nvmlReturn_t instance_id(nvmlDevice_t mig, unsigned int* id, unsigned int offset) {
  struct fg_gpu record;
  struct fg_target target;
  const nvmlReturn_t result = fg_read(mig, FG_CALL_MIG, &record, &target);
  if (result != NVML_SUCCESS) return result;
  if (id == NULL || !target.is_mig) return NVML_ERROR_INVALID_ARGUMENT;
  *id = offset > 0 ? target.instance + offset : 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int* id) { return instance_id(mig, id, 1); }
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int* id) { return instance_id(mig, id, 0); }
