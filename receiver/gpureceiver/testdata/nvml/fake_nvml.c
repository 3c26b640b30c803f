// A library that looks like NVML to go-nvml and does what a control file says,
// which it reads again at every call. Each line of the file is a key, a space
// and a number:
//
//   count N            number of GPUs, 2 by default, read by nvmlInit_v2 only
//   init N             what nvmlInit_v2 returns
//   all N              what every other call returns
//   lost N             the index of a GPU that fell off the bus, -2 for all
//   lost_after N       GPU 0 falls off the bus after so many calls about it
//   epoch N            GPUs answer "unknown error" unless N is as it was at the
//                      last nvmlInit_v2, as when a container loses its devices
//   energy N           energy in mJ of GPU 0; GPU 1 has 1000 more
//   samples N          three utilization samples, 10, 20 and 30, after time N
//                      in microseconds; without it there are none, as on a GPU
//                      in MIG mode
//   step N             microseconds between them, 1 by default
//   sample_value N     the first of them is N, the others twice and thrice that
//   engines 1          the other engines and power have samples too
//   fans N             number of fans, 0 by default
//   capability N       ten times the compute capability, 90 by default
//   field:F N          the value of field F
//   type:F N           the type of field F
//   status:F N         what field F returns
//   nvlink5 N          NVLinks tell bytes one by one only, link 0 N of them
//   fabric_state N     state of the registration with the fabric, 3 by default,
//   fabric_status N    and its status
//   gpm:M N            thousandths of metric M of GPM
//   gpm_status:M N     what metric M of GPM returns
//   mig N              GPU 0 has MIG, switched off for 0, else with the MIG
//                      devices of layout N
//   pid N              the PID of the process on each GPU, with 19 GiB
//   memory N           its memory in MiB
//   pid2 N             the PID of another one, with 5 GiB
//   growing N          how many processes appear while they are listed
//   gone N             the driver lists no process
//   record 1           write each call, and its GPU, to the file CONTROL.calls
//   result:F N         what the function F returns
//   hang:F N           F does not return for GPU N, or for -1 when it has none,
//                      as long as the line is there; while it hangs the file
//                      CONTROL.hangs exists
//
// The path of the control file is in the environment variable FAKE_NVML_CONTROL.
// Defines leave symbols out, as drivers do: OLD_DRIVER, NEW_DRIVER, NO_NVML, NO_MPS.

#include "fake.h"

static struct nvmlDevice_st devices[GPUS];
static int opened;
static long long epoch, gpus;

long long control(const char *key, long long fallback) {
  const char *path = getenv("FAKE_NVML_CONTROL");
  FILE *file = path ? fopen(path, "r") : NULL;
  char name[128];
  long long value;
  long long found = fallback;
  if (!file) return fallback;
  while (fscanf(file, "%127s %lld", name, &value) == 2) {
    if (strcmp(name, key) == 0) found = value;
  }
  fclose(file);
  return found;
}

void hang(const char *function, int index) {
  char key[128], marker[4096];
  struct timespec pause = {0, 1000000};
  snprintf(key, sizeof key, "hang:%s", function);
  if (control(key, -2) != index) return;
  snprintf(marker, sizeof marker, "%s.hangs", getenv("FAKE_NVML_CONTROL"));
  FILE *file = fopen(marker, "w");
  if (file) fclose(file);
  while (control(key, -2) == index) nanosleep(&pause, NULL);
  remove(marker);
}

// record writes down which function was called about which GPU.
static void record(const char *function, int index) {
  char path[4096];
  if (!control("record", 0)) return;
  snprintf(path, sizeof path, "%s.calls", getenv("FAKE_NVML_CONTROL"));
  FILE *file = fopen(path, "a");
  if (!file) return;
  fprintf(file, "%s %d\n", function, index);
  fclose(file);
}

static int is_lost(int index) {
  static long long calls;
  long long lost = control("lost", -1), after = control("lost_after", -1);
  if (index < 0) return 0;
  if (lost == index || lost == -2) return 1;
  return index == 0 && after >= 0 && ++calls > after;
}

nvmlReturn_t enter(const char *function, int index) {
  char key[128];
  record(function, index);
  hang(function, index);
  if (!opened) return NVML_ERROR_UNINITIALIZED;
  if (is_lost(index)) return NVML_ERROR_GPU_IS_LOST;
  if (index >= 0 && control("epoch", 0) != epoch) return NVML_ERROR_UNKNOWN;
  snprintf(key, sizeof key, "result:%s", function);
  return (nvmlReturn_t)control(key, control("all", NVML_SUCCESS));
}

#ifndef NO_NVML

nvmlReturn_t nvmlInit_v2(void) {
  record(__func__, -1);
  hang(__func__, -1);
  nvmlReturn_t r = (nvmlReturn_t)control("init", NVML_SUCCESS);
  if (r == NVML_SUCCESS) {
    opened++;
    epoch = control("epoch", 0);
    gpus = control("count", 2);
  }
  return r;
}

nvmlReturn_t nvmlShutdown(void) {
  hang(__func__, -1);
  // The real library ends the process here when it was never initialised.
  if (opened == 0) _Exit(127);
  opened--;
  // What waits in a library that goes away, or is left in it, is lost.
  if (opened == 0 && (waiting > 0 || open_sets > 0 || open_samples > 0)) _Exit(126);
  record(__func__, -1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  ENTER(-1);
  snprintf(version, length, "570.00.fake");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  ENTER(-1);
  *count = (unsigned int)gpus;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  ENTER((int)index);
  if (index >= GPUS) return NVML_ERROR_INVALID_ARGUMENT;
  devices[index].index = (int)index;
  device->handle = &devices[index];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
  ENTER(device.handle->index);
  snprintf(uuid, length, device.handle->mig ? "MIG-00000000-0000-0000-000%2$d-00000000000%1$d" : "GPU-00000000-0000-0000-0000-00000000000%1$d",
           device.handle->index, device.handle->mig);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
  ENTER(device.handle->index);
  snprintf(name, length, "NVIDIA Fake 80GB%s%s", device.handle->mig ? " MIG " : "", device.handle->mig ? mig_profile(device) : "");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
  ENTER(device.handle->index);
  memset(info, 0, sizeof *info);
  info->domain = 1;
  info->bus = 0x19u + (unsigned int)device.handle->index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  ENTER(device.handle->index);
  rates->gpu = (unsigned int)control("utilization", 42);
  rates->memory = 7;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  ENTER(device.handle->index);
  memory->total = 80ULL << 30;
  memory->used = 21ULL << 30;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER(device.handle->index);
  *milliwatts = 350500;
  return NVML_SUCCESS;
}

#ifndef NEW_DRIVER
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius) {
  ENTER(device.handle->index);
  *celsius = 55;
  return NVML_SUCCESS;
}
#else
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
  ENTER(device.handle->index);
  temperature->temperature = 56;
  return NVML_SUCCESS;
}
#endif

#ifndef OLD_DRIVER

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  ENTER(device.handle->index);
  memory->total = (device.handle->mig ? 20ULL : 80ULL) << 30;
  memory->reserved = 1ULL << 30;
  memory->used = (device.handle->mig ? 5ULL : 20ULL) << 30;
  memory->free = memory->total - memory->used - memory->reserved;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules) {
  ENTER(device.handle->index);
  *millijoules = (unsigned long long)control("energy", 5000) + 1000ULL * (unsigned long long)device.handle->index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period) {
  ENTER(device.handle->index);
  *utilization = 3;
  *period = 1000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period) {
  ENTER(device.handle->index);
  *utilization = 0;
  *period = 1000;
  return NVML_SUCCESS;
}

// One process with memory and one whose memory the driver does not tell.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos) {
  ENTER(device.handle->index);
  static unsigned int grown;
  unsigned int listed = control("gone", 0) ? 0 : 2 + grown;
  if (*count < listed) {
    *count = listed;
    if (grown < control("growing", 0)) grown += 3;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = listed;
  memset(infos, 0, listed * sizeof *infos);
  for (unsigned int i = 0; i < listed; i++) {
    infos[i].pid = i == 0 ? (unsigned int)control("pid", 4242) : 4242 + i;
    infos[i].usedGpuMemory = i == 1 ? UINT64_MAX : (unsigned long long)control("memory", 19 << 10) << 20;
  }
  if (listed > 1 && control("pid2", 0)) {
    infos[1].pid = (unsigned int)control("pid2", 0);
    infos[1].usedGpuMemory = 5ULL << 30;
  }
  return NVML_SUCCESS;
}

#endif
#endif
