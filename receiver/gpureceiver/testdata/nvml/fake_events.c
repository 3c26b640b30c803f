// The part of the fake library that tells events. The lines of the control
// file for it:
//
//   event N            tells an event when N is greater than it was: the XID of
//                      the line "xid" (79 by default) of the GPU "xid_gpu" (0),
//                      of the MIG device "xid_gi", "xid_ci" (-1, none)
//   event_types N      what the GPUs can tell, everything by default
//   persistence N      the persistence mode, on by default
//
// An old driver has the first version of the wait only.

#include "fake.h"

int open_sets, waiting;

#ifndef NO_NVML

struct nvmlEventSet_st {
  int registered[GPUS];
  struct nvmlDevice_st *devices[GPUS];
  int waiting;
};

static long long told;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
  ENTER(-1);
  set->handle = calloc(1, sizeof *set->handle);
  open_sets++;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  // It succeeds whatever the driver's state.
  (void)enter(__func__, -1);
  // Nobody may wait in a set that is freed.
  if (set.handle->waiting > 0) _Exit(125);
  free(set.handle);
  open_sets--;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
  ENTER(device.handle->index);
  *types = (unsigned long long)control("event_types", 0x1ff);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  int index = device.handle->index;
  ENTER(index);
  if (types & ~(unsigned long long)control("event_types", 0x1ff)) return NVML_ERROR_NOT_SUPPORTED;
  set.handle->registered[index] = 1;
  set.handle->devices[index] = device.handle;
  return NVML_SUCCESS;
}

static nvmlReturn_t wait_for_event(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds) {
  struct timespec pause = {0, 1000000}, begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  now = begin;
  while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds) {
    long long event = control("event", 0);
    int index = (int)control("xid_gpu", 0);
    if (event > told && set.handle->registered[index]) {
      told = event;
      data->device.handle = set.handle->devices[index];
      data->eventType = nvmlEventTypeXidCriticalError;
      data->eventData = (unsigned long long)control("xid", 79);
      data->gpuInstanceId = (unsigned int)control("xid_gi", -1);
      data->computeInstanceId = (unsigned int)control("xid_ci", -1);
      return NVML_SUCCESS;
    }
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
  return NVML_ERROR_TIMEOUT;
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds) {
#else
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds) {
#endif
  __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&set.handle->waiting, 1, __ATOMIC_SEQ_CST);
  nvmlReturn_t result = enter(__func__, -1);
  if (result == NVML_SUCCESS) result = wait_for_event(set, data, milliseconds);
  __atomic_sub_fetch(&set.handle->waiting, 1, __ATOMIC_SEQ_CST);
  __atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
  return result;
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
  ENTER(device.handle->index);
  *mode = control("persistence", 1) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

#endif
