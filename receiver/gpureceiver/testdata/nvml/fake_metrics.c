// What the fake library tells about a GPU's metrics, and its MIG devices.

#include "fake.h"

int open_samples;

// A MIG device of a layout: where it is in the enumeration, and what it is.
struct part {
  unsigned int layout, index;
  unsigned int gpu_instance, compute_instance;
  const char *profile;
};

// In layout 1 two compute instances share a GPU instance, not in the order of
// their ids. Layout 2 is another one, with an id that is used again. In layout
// 3 a compute instance is gone that told what is its GPU instance's.
static const struct part parts[] = {
    {1, 1, 3, 1, "1c.2g.20gb"},
    {1, 3, 3, 0, "1c.2g.20gb"},
    {1, 4, 5, 0, "1g.10gb"},
    {2, 0, 3, 0, "3g.40gb"},
    {3, 1, 3, 1, "1c.2g.20gb"},
};

#define PARTS (sizeof parts / sizeof *parts)

static struct nvmlDevice_st mig_devices[PARTS];

static const struct part *part_of(nvmlDevice_t device) {
  return &parts[device.handle->mig - 1];
}

const char *mig_profile(nvmlDevice_t device) {
  // Some drivers' names do not have it.
  return control("unnamed", 0) ? "" : part_of(device)->profile;
}

// keyed is control for a key with a number in it.
static long long keyed(const char *prefix, unsigned int number, long long fallback) {
  char key[64];
  snprintf(key, sizeof key, "%s:%u", prefix, number);
  return control(key, fallback);
}

#ifndef NO_NVML

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
  ENTER(device.handle->index);
  memory->bar1Total = 128ULL << 30;
  memory->bar1Used = 3ULL << 20;
  memory->bar1Free = memory->bar1Total - memory->bar1Used;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER(device.handle->index);
  *milliwatts = 600000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER(device.handle->index);
  *milliwatts = 650000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *milliwatts) {
  ENTER(device.handle->index);
  *milliwatts = 700000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low, unsigned int *high) {
  ENTER(device.handle->index);
  *low = 200000;
  *high = 710000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t kind, unsigned int *celsius) {
  ENTER(device.handle->index);
  *celsius = kind == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN ? 95 : 92;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz) {
  ENTER(device.handle->index);
  *megahertz = 1000 + 100 * (unsigned int)type;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *megahertz) {
  ENTER(device.handle->index);
  *megahertz = 2000 + 100 * (unsigned int)type;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state) {
  ENTER(device.handle->index);
  *state = (nvmlPstates_t)control("pstate", 2);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
  ENTER(device.handle->index);
  *generation = 4;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
  ENTER(device.handle->index);
  *generation = 5;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *lanes) {
  ENTER(device.handle->index);
  *lanes = 8;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *lanes) {
  ENTER(device.handle->index);
  *lanes = 16;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kilobytes) {
  ENTER(device.handle->index);
  *kilobytes = counter == NVML_PCIE_UTIL_RX_BYTES ? 2000 : 1000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count) {
  ENTER(device.handle->index);
  if (counter != NVML_VOLATILE_ECC) return NVML_ERROR_INVALID_ARGUMENT;
  *count = (unsigned long long)control("ecc", 11) + (type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? 1 : 0);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, nvmlMemoryLocation_t location, unsigned long long *count) {
  ENTER(device.handle->index);
  if (counter != NVML_AGGREGATE_ECC) return NVML_ERROR_INVALID_ARGUMENT;
  if (location == NVML_MEMORY_LOCATION_TEXTURE_SHM) return NVML_ERROR_NOT_SUPPORTED;
  *count = 100ULL * type + 10ULL * location;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *state) {
  ENTER(device.handle->index);
  if (link >= 4) return NVML_ERROR_INVALID_ARGUMENT;
  *state = link == 3 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length) {
  ENTER(device.handle->index);
  snprintf(serial, length, "165000000000%d", device.handle->index);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length) {
  ENTER(device.handle->index);
  snprintf(version, length, "96.00.99.00.01");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  ENTER(device.handle->index);
  *major = (int)control("capability", 90) / 10;
  *minor = (int)control("capability", 90) % 10;
  return NVML_SUCCESS;
}

// Power cap and the hardware's thermal slowdown hold the clocks down.
#ifndef NEW_DRIVER
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
  ENTER(device.handle->index);
  *reasons = 0x44;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent) {
  ENTER(device.handle->index);
  if (!control("fans", 0)) return NVML_ERROR_NOT_SUPPORTED;
  *percent = 35;
  return NVML_SUCCESS;
}
#endif

#ifndef OLD_DRIVER

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
  ENTER(device.handle->index);
  *reasons = 0x44;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *count) {
  ENTER(device.handle->index);
  *count = (unsigned int)control("fans", 0);
  return NVML_SUCCESS;
}

// The second fan does not answer.
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent) {
  ENTER(device.handle->index);
  if (fan == 1) return NVML_ERROR_UNKNOWN;
  *percent = 40 + fan;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period) {
  ENTER(device.handle->index);
  *utilization = 4;
  *period = 1000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period) {
  ENTER(device.handle->index);
  *utilization = 5;
  *period = 1000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
  ENTER(-1);
  *version = 12080;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture) {
  ENTER(device.handle->index);
  *architecture = NVML_DEVICE_ARCH_HOPPER;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info) {
  ENTER(device.handle->index);
  info->state = (unsigned char)control("fabric_state", 3);
  info->status = (nvmlReturn_t)control("fabric_status", 0);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable, unsigned int *pending, unsigned int *failed) {
  ENTER(device.handle->index);
  *correctable = 3;
  *uncorrectable = 1;
  *pending = (unsigned int)control("remap_pending", 0);
  *failed = 0;
  return NVML_SUCCESS;
}

struct field {
  unsigned int id, scope;
  nvmlValueType_t type;
  unsigned long long value;
};

// The fields of a GPU before NVLink 5. What is not here is not supported.
static const struct field fields[] = {
    {29, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 2},
    {30, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1},
    {38, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1},
    {45, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 2},
    {52, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 3},
    {59, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 4},
    {74, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1500000000},
    {75, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 750000000},
    {76, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 250000000},
    {82, 0, NVML_VALUE_TYPE_UNSIGNED_INT, 66},
    {91, 0, NVML_VALUE_TYPE_UNSIGNED_INT, 4},
    {94, 0, NVML_VALUE_TYPE_UNSIGNED_INT, 7},
    {138, ~0u, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 1000},
    {139, ~0u, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 2000},
    {160, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 5},
    {186, 0, NVML_VALUE_TYPE_UNSIGNED_INT, 351000},
    {186, 1, NVML_VALUE_TYPE_UNSIGNED_INT, 402000},
    {194, 0, NVML_VALUE_TYPE_SIGNED_INT, 0},
    {230, 0, NVML_VALUE_TYPE_UNSIGNED_INT, 0},
    {269, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 3000000000},
    {270, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 500000000},
    {271, 0, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, 0},
};

static void answer(nvmlFieldValue_t *asked) {
  long long links = control("nvlink5", 0);
  asked->nvmlReturn = (nvmlReturn_t)keyed("status", asked->fieldId, NVML_SUCCESS);
  // Without the line the GPU tells degrees and not margins.
  if (asked->fieldId == 194 && keyed("field", 194, 0) == 0) asked->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  if (asked->nvmlReturn != NVML_SUCCESS) return;
  if (links && (asked->fieldId == 202 || asked->fieldId == 204)) {
    if (asked->scopeId >= 3) {
      asked->nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
      return;
    }
    asked->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    asked->value.ullVal = (unsigned long long)links * (asked->scopeId + 1) * (asked->fieldId == 204 ? 10 : 1);
    return;
  }
  asked->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  if (links && (asked->fieldId == 138 || asked->fieldId == 139)) return;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (fields[i].id != asked->fieldId || fields[i].scope != asked->scopeId) continue;
    asked->nvmlReturn = NVML_SUCCESS;
    asked->valueType = (nvmlValueType_t)keyed("type", asked->fieldId, fields[i].type);
    // What is behind a smaller value is not defined.
    memset(&asked->value, 0xa5, sizeof asked->value);
    if (asked->valueType == NVML_VALUE_TYPE_UNSIGNED_INT || asked->valueType == NVML_VALUE_TYPE_SIGNED_INT) {
      asked->value.uiVal = (unsigned int)keyed("field", asked->fieldId, (long long)fields[i].value);
    } else {
      asked->value.ullVal = (unsigned long long)keyed("field", asked->fieldId, (long long)fields[i].value);
    }
  }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
  ENTER(device.handle->index);
  for (int i = 0; i < count; i++) answer(&values[i]);
  return NVML_SUCCESS;
}

// The last entries of the buffer stay unused, as the driver leaves them.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since,
                                  nvmlValueType_t *kind, unsigned int *count, nvmlSample_t *samples) {
  ENTER(device.handle->index);
  long long base = control("samples", -1), step = control("step", 1);
  unsigned int written = 0, scale = type == NVML_TOTAL_POWER_SAMPLES ? 10000 : 1;
  if (base < 0 || (type != NVML_GPU_UTILIZATION_SAMPLES && !control("engines", 0))) return NVML_ERROR_NOT_SUPPORTED;
  if ((unsigned long long)(base + 3 * step) <= since) return NVML_ERROR_NOT_FOUND;
  *kind = NVML_VALUE_TYPE_UNSIGNED_INT;
  if (!samples) {
    *count = 5;
    return NVML_SUCCESS;
  }
  for (unsigned int i = 1; i <= 3; i++) {
    unsigned long long time = (unsigned long long)(base + i * step);
    if (time <= since) continue;
    samples[written].timeStamp = time;
    samples[written++].sampleValue.uiVal = (unsigned int)control("sample_value", 10) * i * scale;
  }
  *count = written;
  return NVML_SUCCESS;
}

// A sample of GPM. The program ends where one is used that cannot be.
struct nvmlGpmSample_st {
  unsigned int magic;
  int taken, gpu_instance;
};

#define MAGIC 0x5a5a1234u

static void check(nvmlGpmSample_t sample) {
  if (!sample.handle || sample.handle->magic != MAGIC) _Exit(125);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
  ENTER(-1);
  sample->handle = calloc(1, sizeof *sample->handle);
  if (!sample->handle) return NVML_ERROR_MEMORY;
  sample->handle->magic = MAGIC;
  open_samples++;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  check(sample);
  sample.handle->magic = 0;
  free(sample.handle);
  open_samples--;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  check(sample);
  ENTER(device.handle->index);
  if (device.handle->mig) return NVML_ERROR_INVALID_ARGUMENT;
  if (device.handle->index == 0 && control("mig", 0)) return NVML_ERROR_NOT_SUPPORTED;
  sample.handle->taken++;
  sample.handle->gpu_instance = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance, nvmlGpmSample_t sample) {
  check(sample);
  ENTER(device.handle->index);
  if (device.handle->mig) return NVML_ERROR_INVALID_ARGUMENT;
  sample.handle->taken++;
  sample.handle->gpu_instance = (int)gpu_instance;
  return NVML_SUCCESS;
}

// The value of each metric is ten thousandths of its number above the GPU
// instance.
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked) {
  ENTER(-1);
  check(asked->sample1);
  check(asked->sample2);
  if (asked->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (!asked->sample1.handle->taken || !asked->sample2.handle->taken) _Exit(125);
  if (asked->sample1.handle->gpu_instance != asked->sample2.handle->gpu_instance) _Exit(125);
  for (unsigned int i = 0; i < asked->numMetrics; i++) {
    nvmlGpmMetric_t *metric = &asked->metrics[i];
    metric->nvmlReturn = (nvmlReturn_t)keyed("gpm_status", metric->metricId, NVML_SUCCESS);
    metric->value = asked->sample2.handle->gpu_instance + (double)keyed("gpm", metric->metricId, 1000 * metric->metricId) / 1000;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
  ENTER(device.handle->index);
  *minor = (unsigned int)device.handle->index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
  ENTER(device.handle->index);
  long long layout = device.handle->index == 0 ? control("mig", -1) : -1;
  if (layout < 0) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = layout > 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
  ENTER(device.handle->index);
  *count = 7;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *found) {
  ENTER(device.handle->index);
  for (size_t i = 0; i < PARTS; i++) {
    if (parts[i].layout != control("mig", 0) || parts[i].index != index) continue;
    mig_devices[i].index = device.handle->index;
    mig_devices[i].mig = (int)i + 1;
    found->handle = &mig_devices[i];
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
  ENTER(device.handle->index);
  if (!device.handle->mig) return NVML_ERROR_NOT_SUPPORTED;
  *id = part_of(device)->gpu_instance;
  return NVML_SUCCESS;
}

// A GPU instance of the parts.
struct nvmlGpuInstance_st {
  unsigned int id;
};

static struct nvmlGpuInstance_st gpu_instances[16];

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *found) {
  ENTER(device.handle->index);
  if (device.handle->mig || id >= 16) return NVML_ERROR_INVALID_ARGUMENT;
  gpu_instances[id].id = id;
  found->handle = &gpu_instances[id];
  return control("placements", 1) ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
  info->id = instance.handle->id;
  info->profileId = 14;
  info->placement.start = instance.handle->id - 1;
  info->placement.size = 2;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
  ENTER(device.handle->index);
  if (!device.handle->mig) return NVML_ERROR_NOT_SUPPORTED;
  *id = part_of(device)->compute_instance;
  return NVML_SUCCESS;
}

#endif
#endif
