// Counts the time that the fake library itself takes, so that a benchmark can
// take it off. It is compiled together with the library and
// -finstrument-functions, which calls the two functions below at the begin and
// the end of every function. The total is in a file of one 64-bit number, the
// nanoseconds, whose path is in the environment variable FAKE_NVML_CLOCK;
// without it nothing is counted.
//
// The thread that waits for events is not counted: waiting costs nobody.
//
// With -Wl,--wrap=fopen the library also reads its control file only once, from
// the disk to memory. Dozens of system calls in every call are nothing that a
// driver does, and what they do to the caches would be counted as ours.

#include <fcntl.h>
#include <nvml.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define UNCOUNTED __attribute__((no_instrument_function))
// Hidden, because the C library has functions of these names that do nothing.
#define HOOK __attribute__((no_instrument_function, visibility("hidden")))

// They are absent where the library leaves events out.
#pragma weak nvmlEventSetWait_v2
#pragma weak nvmlEventSetWait

static uint64_t *total;
static _Thread_local int depth, waits;
static _Thread_local uint64_t begun;

UNCOUNTED static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) UNCOUNTED static void open_total(void) {
  const char *path = getenv("FAKE_NVML_CLOCK");
  int file = path ? open(path, O_RDWR) : -1;
  void *memory;
  if (file < 0) return;
  memory = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory != MAP_FAILED) total = memory;
}

HOOK void __cyg_profile_func_enter(void *function, void *caller) {
  (void)caller;
  if (depth++ > 0) return;
  waits = function != NULL && (function == (void *)nvmlEventSetWait_v2 || function == (void *)nvmlEventSetWait);
  begun = now();
}

HOOK void __cyg_profile_func_exit(void *function, void *caller) {
  (void)function, (void)caller;
  if (--depth > 0 || waits || total == NULL) return;
  __atomic_fetch_add(total, now() - begun, __ATOMIC_RELAXED);
}

FILE *__real_fopen(const char *path, const char *mode);

UNCOUNTED FILE *__wrap_fopen(const char *path, const char *mode) {
  static char text[4096];
  static size_t length;
  const char *control = getenv("FAKE_NVML_CONTROL");
  if (control == NULL || strcmp(path, control) != 0 || strcmp(mode, "r") != 0) return __real_fopen(path, mode);
  if (length == 0) {
    FILE *file = __real_fopen(path, mode);
    if (file == NULL) return NULL;
    length = fread(text, 1, sizeof text, file);
    fclose(file);
    if (length == 0) return NULL;
  }
  return fmemopen(text, length, mode);
}
