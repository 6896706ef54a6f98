/* A client of NVML as others write them: dlopen by soname, public names, its own declarations; knows nothing of the
 * fake. Prints a line a GPU. `nvml_client UUID MILLIWATTS` sets a limit first. Exit: 0 done, 1 with the failing call on
 * stderr. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct nvmlDevice_st* Device;

static void* library;

static void* resolve(const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "missing: %s\n", name);
    exit(1);
  }
  return symbol;
}

static void must(const char* what, unsigned int code) {
  if (code == 0) return;
  const char* (*text)(unsigned int);
  *(void**)(&text) = resolve("nvmlErrorString");
  fprintf(stderr, "%s: %s (%u)\n", what, text(code), code);
  exit(1);
}

static unsigned int (*init)(void);
static unsigned int (*end)(void);
static unsigned int (*get_count)(unsigned int*);
static unsigned int (*by_index)(unsigned int, Device*);
static unsigned int (*by_uuid)(const char*, Device*);
static unsigned int (*get_uuid)(Device, char*, unsigned int);
static unsigned int (*get_name)(Device, char*, unsigned int);
static unsigned int (*get_power)(Device, unsigned int*);
static unsigned int (*get_energy)(Device, unsigned long long*);
static unsigned int (*get_enforced)(Device, unsigned int*);
static unsigned int (*set_limit)(Device, unsigned int);

static void resolve_all(void) {
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  *(void**)(&init) = resolve("nvmlInit_v2");
  *(void**)(&end) = resolve("nvmlShutdown");
  *(void**)(&get_count) = resolve("nvmlDeviceGetCount_v2");
  *(void**)(&by_index) = resolve("nvmlDeviceGetHandleByIndex_v2");
  *(void**)(&by_uuid) = resolve("nvmlDeviceGetHandleByUUID");
  *(void**)(&get_uuid) = resolve("nvmlDeviceGetUUID");
  *(void**)(&get_name) = resolve("nvmlDeviceGetName");
  *(void**)(&get_power) = resolve("nvmlDeviceGetPowerUsage");
  *(void**)(&get_energy) = resolve("nvmlDeviceGetTotalEnergyConsumption");
  *(void**)(&get_enforced) = resolve("nvmlDeviceGetEnforcedPowerLimit");
  *(void**)(&set_limit) = resolve("nvmlDeviceSetPowerManagementLimit");
}

int main(int argc, char** argv) {
  resolve_all();
  must("init", init());
  if (argc == 3) {
    Device device;
    must("handle by UUID", by_uuid(argv[1], &device));
    must("set limit", set_limit(device, (unsigned int)strtoul(argv[2], NULL, 10)));
  }
  unsigned int count = 0;
  must("count", get_count(&count));
  for (unsigned int i = 0; i < count; ++i) {
    Device device;
    char uuid[96];
    char name[96];
    unsigned int power = 0, limit = 0;
    unsigned long long energy = 0;
    must("handle", by_index(i, &device));
    must("UUID", get_uuid(device, uuid, sizeof uuid));
    must("name", get_name(device, name, sizeof name));
    must("power", get_power(device, &power));
    must("energy", get_energy(device, &energy));
    must("enforced limit", get_enforced(device, &limit));
    printf("%s %s power_mw=%u energy_mj=%llu enforced_mw=%u\n", uuid, name, power, energy, limit);
  }
  must("shutdown", end());
  return 0;
}
