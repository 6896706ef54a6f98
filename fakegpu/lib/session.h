#ifndef FLYBALL_FAKEGPU_SESSION_H
#define FLYBALL_FAKEGPU_SESSION_H
/* The library's one session with the owner of the page: mapping, liveness, reading a record, posting a setter. */

#include "fakegpu/lib/nvml_api.h"
#include "fakegpu/page.h"

#define FG_MIG_INSTANCES 2u /* per board with MIG on */

/* What a handle stands for. */
struct fg_target {
  unsigned int gpu;
  int is_mig;
  unsigned int instance; /* of a MIG handle */
};

nvmlReturn_t fg_init(void);
nvmlReturn_t fg_shutdown(void);
/* SUCCESS while the session holds: initialised, owner alive, same load of the driver. */
nvmlReturn_t fg_check(void);
/* A consistent copy of the board's record, after the faults set for `call` have had their say. Hangs if they say so. */
nvmlReturn_t fg_read(nvmlDevice_t device, enum fg_call call, struct fg_gpu* record, struct fg_target* target);
/* The same for a board by its index, whoever asks. */
nvmlReturn_t fg_read_index(unsigned int index, enum fg_call call, struct fg_gpu* record);
/* A copy of its record alone: no fault has its say. */
nvmlReturn_t fg_peek_index(unsigned int index, struct fg_gpu* record);
/* The read that most calls are: one number of the record, at byte `member` of it. */
nvmlReturn_t fg_give(nvmlDevice_t device, enum fg_call call, unsigned int* to, size_t member);
/* The owner's words about itself. */
nvmlReturn_t fg_header_copy(struct fg_header* header);
nvmlReturn_t fg_handle(unsigned int gpu, int is_mig, unsigned int instance, nvmlDevice_t* device);
/* Posts a setter and waits for its acknowledgement, at most for the time that the page states. */
nvmlReturn_t fg_post(unsigned int gpu, enum fg_operation operation, unsigned int a, unsigned int b);

/* `value`, or what a fault shows in its place. */
static inline unsigned int fg_shown(const struct fg_gpu* record, enum fg_call call, unsigned int value) {
  return record->fault_mode[call] == FG_FAULT_VALUE ? record->fault_value[call] : value;
}

#endif
