#define _GNU_SOURCE
#include "fakegpu/lib/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000ull
#define WAIT_STEP_NS 1000000L      /* between looks at a slot or a hang */
#define TORN_LIMIT_NS 100000000ull /* a record is rewritten in microseconds: longer means a writer that stopped */

static struct {
  pthread_rwlock_t lock;
  unsigned int users; /* of nvmlInit */
  int fd;
  int writable;
  unsigned char* page;
  size_t size;
  uint64_t epoch;
  unsigned int generation; /* of handles: those of an earlier mapping are refused */
} session = {.lock = PTHREAD_RWLOCK_INITIALIZER, .fd = -1};

static uint64_t boot_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (uint64_t)t.tv_sec * NANOSECONDS + (uint64_t)t.tv_nsec;
}

static void wait_a_little(void) {
  const struct timespec t = {0, WAIT_STEP_NS};
  nanosleep(&t, NULL);
}

static struct fg_header* header(void) { return (struct fg_header*)(void*)session.page; }

static struct fg_slot* slot(uint32_t i) {
  return (struct fg_slot*)(void*)(session.page + header()->slot_offset + i * sizeof(struct fg_slot));
}

/* The owner holds an exclusive lock on the file for as long as it lives, whatever way it ends. */
static int owner_alive(void) {
  if (flock(session.fd, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(session.fd, LOCK_UN);
  return 0;
}

static int page_path(char* path, size_t size) {
  const char* set = getenv("FLYBALL_FAKEGPU");
  if (set != NULL && set[0] != '\0') return snprintf(path, size, "%s", set) < (int)size;
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime == NULL || runtime[0] == '\0') runtime = "/run";
  return snprintf(path, size, "%s/flyball-fakegpu.page", runtime) < (int)size;
}

static nvmlReturn_t map_page(void) {
  struct stat status;
  if (fstat(session.fd, &status) != 0 || status.st_size < (off_t)sizeof(struct fg_header)) {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  session.size = (size_t)status.st_size;
  void* page = mmap(NULL, session.size, PROT_READ | (session.writable ? PROT_WRITE : 0), MAP_SHARED, session.fd, 0);
  if (page == MAP_FAILED) return NVML_ERROR_OPERATING_SYSTEM;
  session.page = page;
  const struct fg_header* h = header();
  if (memcmp(h->magic, FG_MAGIC, sizeof h->magic) != 0 || h->version != FG_VERSION) {
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  }
  if (h->gpu_count > FG_MAX_GPUS || h->slot_count != FG_SLOTS || h->total_size > session.size ||
      h->total_size != FG_PAGE_SIZE(h->gpu_count) || h->gpu_offset != FG_GPU_OFFSET ||
      h->slot_offset != FG_SLOT_OFFSET(h->gpu_count)) {
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  }
  session.epoch = __atomic_load_n(&h->epoch, __ATOMIC_ACQUIRE);
  if (__atomic_load_n(&h->state, __ATOMIC_ACQUIRE) != FG_READY || !owner_alive()) return NVML_ERROR_DRIVER_NOT_LOADED;
  return NVML_SUCCESS;
}

static void unmap_page(void) {
  if (session.page != NULL) munmap(session.page, session.size);
  if (session.fd >= 0) close(session.fd);
  session.page = NULL;
  session.fd = -1;
}

static nvmlReturn_t open_page(void) {
  char path[4096];
  if (!page_path(path, sizeof path)) return NVML_ERROR_DRIVER_NOT_LOADED;
  session.writable = 1;
  session.fd = open(path, O_RDWR | O_CLOEXEC);
  if (session.fd < 0 && (errno == EACCES || errno == EROFS)) {
    session.writable = 0; /* reading is for all, setting for those who may write the page */
    session.fd = open(path, O_RDONLY | O_CLOEXEC);
  }
  if (session.fd < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
  const nvmlReturn_t result = map_page();
  if (result != NVML_SUCCESS) unmap_page();
  return result;
}

/* With the lock held. */
static nvmlReturn_t check(void) {
  if (session.users == 0) return NVML_ERROR_UNINITIALIZED;
  const struct fg_header* h = header();
  if (__atomic_load_n(&h->state, __ATOMIC_ACQUIRE) != FG_READY || !owner_alive()) return NVML_ERROR_DRIVER_NOT_LOADED;
  if (__atomic_load_n(&h->epoch, __ATOMIC_ACQUIRE) != session.epoch) {
    return __atomic_load_n(&h->ended_session_code, __ATOMIC_RELAXED);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t fg_init(void) {
  pthread_rwlock_wrlock(&session.lock);
  nvmlReturn_t result = NVML_SUCCESS;
  if (session.users == 0) {
    result = open_page();
    if (result == NVML_SUCCESS) ++session.generation;
  }
  if (result == NVML_SUCCESS) ++session.users;
  pthread_rwlock_unlock(&session.lock);
  return result;
}

nvmlReturn_t fg_shutdown(void) {
  pthread_rwlock_wrlock(&session.lock);
  const nvmlReturn_t result = session.users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
  if (session.users > 0 && --session.users == 0) unmap_page();
  pthread_rwlock_unlock(&session.lock);
  return result;
}

nvmlReturn_t fg_check(void) {
  pthread_rwlock_rdlock(&session.lock);
  const nvmlReturn_t result = check();
  pthread_rwlock_unlock(&session.lock);
  return result;
}

/* A handle is a number: generation of the mapping, MIG bit, instance, board + 1. */
static nvmlDevice_t encode(unsigned int gpu, int is_mig, unsigned int instance) {
  const uintptr_t bits = ((uintptr_t)(session.generation & 0xffffffu) << 24) | ((uintptr_t)(is_mig != 0) << 20) |
                         ((uintptr_t)(instance & 0xfu) << 16) | (gpu + 1u);
  return (nvmlDevice_t)bits; /* NOLINT(performance-no-int-to-ptr): clients pass it back, nobody follows it */
}

static int decode(nvmlDevice_t device, struct fg_target* target) {
  const uintptr_t bits = (uintptr_t)device;
  const unsigned int gpu = (unsigned int)(bits & 0xffffu);
  if ((bits >> 24) != (session.generation & 0xffffffu) || gpu == 0 || gpu > header()->gpu_count) return 0;
  target->gpu = gpu - 1;
  target->is_mig = (int)((bits >> 20) & 1u);
  target->instance = (unsigned int)((bits >> 16) & 0xfu);
  return 1;
}

/* Seqlock: a copy is good if the sequence was even and did not change meanwhile. */
static nvmlReturn_t copy_record(unsigned int index, struct fg_gpu* record) {
  const unsigned char* at = session.page + header()->gpu_offset + index * sizeof(struct fg_gpu);
  const uint32_t* sequence = (const uint32_t*)(const void*)at;
  const uint64_t* from = (const uint64_t*)(const void*)at;
  uint64_t words[sizeof(struct fg_gpu) / sizeof(uint64_t)];
  const uint64_t start = boot_time();
  for (;;) {
    const uint32_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
    if ((before & 1u) == 0) {
      for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        words[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);  // the sequence is looked at after each
      if (__atomic_load_n(sequence, __ATOMIC_RELAXED) == before) break;
    }
    if (boot_time() - start > TORN_LIMIT_NS) return NVML_ERROR_UNKNOWN;
    sched_yield();
  }
  memcpy(record, words, sizeof *record);
  record->uuid[sizeof record->uuid - 1] = '\0';
  record->name[sizeof record->name - 1] = '\0';
  record->serial[sizeof record->serial - 1] = '\0';
  record->bus_id[sizeof record->bus_id - 1] = '\0';
  return NVML_SUCCESS;
}

/* With the lock held: the record and what its faults say. *hangs is set when the call must not come back yet. */
static nvmlReturn_t read_locked(unsigned int index, enum fg_call call, struct fg_gpu* record, int* hangs) {
  *hangs = 0;
  const nvmlReturn_t result = copy_record(index, record);
  if (result != NVML_SUCCESS) return result;
  *hangs = record->fault_mode[call] == FG_FAULT_HANG;
  if ((record->flags & FG_LOST) != 0) return NVML_ERROR_GPU_IS_LOST;
  return record->fault_code[call];
}

static nvmlReturn_t read_or_hang(nvmlDevice_t device, const unsigned int* index, enum fg_call call,
                                 struct fg_gpu* record, struct fg_target* target) {
  for (;;) {
    int hangs = 0;
    pthread_rwlock_rdlock(&session.lock);
    nvmlReturn_t result = check();
    if (result == NVML_SUCCESS) {
      const int known = index != NULL ? *index < header()->gpu_count : decode(device, target);
      if (!known) {
        result = NVML_ERROR_INVALID_ARGUMENT;
      } else {
        result = read_locked(index != NULL ? *index : target->gpu, call, record, &hangs);
      }
    }
    /* A hanging call holds no lock: other boards and other calls go on. */
    pthread_rwlock_unlock(&session.lock);
    if (!hangs) return result;
    wait_a_little();
  }
}

nvmlReturn_t fg_read(nvmlDevice_t device, enum fg_call call, struct fg_gpu* record, struct fg_target* target) {
  struct fg_target unused;
  return read_or_hang(device, NULL, call, record, target != NULL ? target : &unused);
}

nvmlReturn_t fg_read_index(unsigned int index, enum fg_call call, struct fg_gpu* record) {
  struct fg_target unused;
  return read_or_hang(NULL, &index, call, record, &unused);
}

nvmlReturn_t fg_peek_index(unsigned int index, struct fg_gpu* record) {
  pthread_rwlock_rdlock(&session.lock);
  nvmlReturn_t result = check();
  if (result == NVML_SUCCESS) {
    result = index < header()->gpu_count ? copy_record(index, record) : NVML_ERROR_INVALID_ARGUMENT;
  }
  pthread_rwlock_unlock(&session.lock);
  return result;
}

nvmlReturn_t fg_give(nvmlDevice_t device, enum fg_call call, unsigned int* to, size_t member) {
  struct fg_gpu record;
  const nvmlReturn_t result = fg_read(device, call, &record, NULL);
  if (result != NVML_SUCCESS) return result;
  if (to == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned int value;
  memcpy(&value, (const char*)&record + member, sizeof value);
  *to = fg_shown(&record, call, value);
  return NVML_SUCCESS;
}

nvmlReturn_t fg_header_copy(struct fg_header* copy) {
  pthread_rwlock_rdlock(&session.lock);
  const nvmlReturn_t result = check();
  if (result == NVML_SUCCESS) {
    memcpy(copy, header(), sizeof *copy);
    copy->driver_version[sizeof copy->driver_version - 1] = '\0';
    copy->nvml_version[sizeof copy->nvml_version - 1] = '\0';
  }
  pthread_rwlock_unlock(&session.lock);
  return result;
}

nvmlReturn_t fg_handle(unsigned int gpu, int is_mig, unsigned int instance, nvmlDevice_t* device) {
  pthread_rwlock_rdlock(&session.lock);
  const nvmlReturn_t result = check();
  if (result == NVML_SUCCESS) *device = encode(gpu, is_mig, instance);
  pthread_rwlock_unlock(&session.lock);
  return result;
}

static int move_slot(struct fg_slot* s, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&s->state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static struct fg_slot* claim_slot(void) {
  for (uint32_t i = 0; i < FG_SLOTS; ++i) {
    struct fg_slot* s = slot((i + (uint32_t)getpid()) % FG_SLOTS);
    if (move_slot(s, FG_SLOT_FREE, FG_SLOT_CLAIMED)) return s;
  }
  return NULL;
}

/* With the read lock held; the mapping stays. */
static nvmlReturn_t post_and_wait(unsigned int gpu, enum fg_operation operation, unsigned int a, unsigned int b) {
  if (!session.writable) return NVML_ERROR_NO_PERMISSION;
  struct fg_slot* s = claim_slot();
  if (s == NULL) return NVML_ERROR_INSUFFICIENT_RESOURCES;
  s->client_pid = (uint32_t)getpid();
  s->claimed = boot_time();
  s->epoch = session.epoch;
  s->gpu = gpu;
  s->operation = operation;
  s->a = a;
  s->b = b;
  s->result = NVML_ERROR_UNKNOWN;
  __atomic_store_n(&s->state, FG_SLOT_POSTED, __ATOMIC_RELEASE);
  const uint64_t limit = boot_time() + __atomic_load_n(&header()->setter_timeout_ms, __ATOMIC_RELAXED) * 1000000ull;
  while (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != FG_SLOT_DONE) {
    const int gone = !owner_alive();
    if (gone || boot_time() > limit) {
      if (move_slot(s, FG_SLOT_POSTED, FG_SLOT_ABANDONED) || move_slot(s, FG_SLOT_TAKEN, FG_SLOT_ABANDONED)) {
        return gone ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_TIMEOUT;
      }
    }
    wait_a_little();
  }
  const nvmlReturn_t result = s->result;
  __atomic_store_n(&s->state, FG_SLOT_FREE, __ATOMIC_RELEASE);
  return result;
}

nvmlReturn_t fg_post(unsigned int gpu, enum fg_operation operation, unsigned int a, unsigned int b) {
  pthread_rwlock_rdlock(&session.lock);
  nvmlReturn_t result = check();
  if (result == NVML_SUCCESS) result = post_and_wait(gpu, operation, a, b);
  pthread_rwlock_unlock(&session.lock);
  return result;
}

/* Not NVML's: names the present load of the "driver", as the inode of /sys/module/nvidia does for the real one. The
 * same number in every process; 0 without a session. */
NVML_API unsigned long long flyball_stand_in_load(void);
NVML_API unsigned long long flyball_stand_in_load(void) {
  pthread_rwlock_rdlock(&session.lock);
  const unsigned long long epoch = session.users > 0 ? session.epoch : 0;
  pthread_rwlock_unlock(&session.lock);
  return epoch;
}
