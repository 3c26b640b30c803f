// The part of the fake library that tells of processes beyond those that
// compute. The lines of the control file for it:
//
//   graphics N         the PID of a process that draws, none by default
//   mps N              the PID of a client of MPS, with 20 GiB
//   mps2 N             the PID of another one, with 10 GiB
//   process_samples T  two samples of a process after the time T, in which it
//                      used 40 % and 60 % of the SMs, 10 % and 0 % of the
//                      encoder
//   sampled N          its PID, 4242 by default
//   overflow 1         more samples come between the two calls of the binding
//                      than it has room for, which it does not survive
//
// NO_MPS leaves out the function for clients of MPS.

#include "fake.h"

#if !defined(NO_NVML) && !defined(OLD_DRIVER)

static nvmlReturn_t processes(const char *key, unsigned int *count, nvmlProcessInfo_t *infos) {
  long long pid = control(key, 0);
  long long second = strcmp(key, "mps") == 0 ? control("mps2", 0) : 0;
  unsigned int listed = (pid != 0) + (second != 0);
  if (*count < listed) {
    *count = listed;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = listed;
  memset(infos, 0, listed * sizeof *infos);
  for (unsigned int i = 0; i < listed; i++) {
    infos[i].pid = (unsigned int)(i == 0 ? pid : second);
    infos[i].usedGpuMemory = (i == 0 ? 20ULL : 10ULL) << 30;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  ENTER(device.handle->index);
  return processes("graphics", count, infos);
}

#ifndef NO_MPS
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  ENTER(device.handle->index);
  return processes("mps", count, infos);
}
#endif

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since) {
  ENTER(device.handle->index);
  long long base = control("process_samples", -1);
  if (base < 0 || (unsigned long long)base < since) return NVML_ERROR_NOT_FOUND;
  if (!samples) {
    *count = 2;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  memset(samples, 0, 2 * sizeof *samples);
  for (unsigned int i = 0; i < 2; i++) {
    samples[i].pid = (unsigned int)control("sampled", 4242);
    samples[i].timeStamp = (unsigned long long)base + i + 1;
    samples[i].smUtil = 40 + 20 * i;
    samples[i].encUtil = 10 - 10 * i;
  }
  *count = control("overflow", 0) ? 100 : 2;
  return NVML_SUCCESS;
}

#endif
