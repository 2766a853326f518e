/* A wall clock that steps back by an hour, again and again; the monotonic clock is left alone.

   For LD_PRELOAD. Every twentieth reading moves the clock by one hour, to and fro. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

static time_t step(void) {
    static atomic_long readings;
    return (atomic_fetch_add(&readings, 1) / 20) % 2 == 0 ? 0 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*read_clock)(clockid_t, struct timespec *);
    if (read_clock == NULL) read_clock = dlsym(RTLD_NEXT, "clock_gettime");
    int status = read_clock(clock, now);
    if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += step();
    return status;
}

int gettimeofday(struct timeval *now, void *zone) {
    static int (*read_time)(struct timeval *, void *);
    if (read_time == NULL) read_time = dlsym(RTLD_NEXT, "gettimeofday");
    int status = read_time(now, zone);
    if (status == 0) now->tv_sec += step();
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}
