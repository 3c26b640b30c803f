// What the files of the fake library share.

#ifndef FAKE_H
#define FAKE_H

#include <nvml.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPUS 8

// A GPU, or a MIG device of it where mig is not 0.
struct nvmlDevice_st {
  int index;
  int mig;
};

// control returns the number behind a key of the control file.
long long control(const char *key, long long fallback);

// hang does not return while the control file says so.
void hang(const char *function, int index);

// enter is what every function begins with. The index is that of the GPU, -1
// where there is none.
nvmlReturn_t enter(const char *function, int index);

// open_sets and waiting count the event sets that are not freed, and the
// threads that wait for events.
extern int open_sets, waiting;

// open_samples counts the samples of GPM that are not freed.
extern int open_samples;

// mig_profile is the size of a MIG device.
const char *mig_profile(nvmlDevice_t device);

#define ENTER(index)                               \
  do {                                             \
    nvmlReturn_t r = enter(__func__, (index));     \
    if (r != NVML_SUCCESS) return r;               \
  } while (0)

#endif
