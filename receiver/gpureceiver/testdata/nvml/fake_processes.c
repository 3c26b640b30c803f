// The part of the fake library that tells of processes beyond those that
// compute. The lines of the control file for it:
//
//   graphics N         the PID of a process that draws, none by default
//   mps N              the PID of a process that computes through MPS
//   process_samples T  two samples of the process 4242 after the time T, in
//                      which it used 40 % and 60 % of the SMs, 10 % and 0 % of
//                      the encoder
//   overflow 1         more samples come between the two calls of the binding
//                      than it has room for, which it does not survive

#include "fake.h"

#if !defined(NO_NVML) && !defined(OLD_DRIVER)

static nvmlReturn_t one_process(const char *key, unsigned int *count, nvmlProcessInfo_t *infos) {
  long long pid = control(key, 0);
  if (pid == 0) {
    *count = 0;
    return NVML_SUCCESS;
  }
  if (*count < 1) {
    *count = 1;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = 1;
  memset(infos, 0, sizeof *infos);
  infos[0].pid = (unsigned int)pid;
  infos[0].usedGpuMemory = 20ULL << 30;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  ENTER(device.handle->index);
  return one_process("graphics", count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  ENTER(device.handle->index);
  return one_process("mps", count, infos);
}

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
    samples[i].pid = 4242;
    samples[i].timeStamp = (unsigned long long)base + i + 1;
    samples[i].smUtil = 40 + 20 * i;
    samples[i].encUtil = 10 - 10 * i;
  }
  *count = control("overflow", 0) ? 100 : 2;
  return NVML_SUCCESS;
}

#endif
