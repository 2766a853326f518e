/* A disk with faults by name: calls of the C library on files below one folder fail when told to.

   For LD_PRELOAD, in tests only.

   FAULT_BELOW    the beginning of the paths that are meant
   FAULT          CALL:WHAT:at=N or CALL:WHAT:from=N: the N-th such call, or it and all later ones
   FAULT_PROGRAM  a part of the name of the programs that are meant; all without it
   FAULT_COUNTS   a file of 8 numbers of 64 bits, which all programs share: calls so far, by kind
   FAULT_HITS     a file to which each hit is appended: the call and the path

   CALL is one of the names below; `change` is all but reads. WHAT is the name of an error, or
     short  half of the bytes are written or read, at least one
     slow   the call takes 5 ms longer
   EINTR comes with every second call: programs try again for as long as it lasts.

   Linux with glibc, 64 bits. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { READ, WRITE, SYNC, SYNC_FOLDER, OPEN, RENAME, LINK, UNLINK, CALLS };
static const char *const NAMES[] = {"read", "write",  "sync", "sync-folder",
                                    "open", "rename", "link", "unlink"};

static const struct {
    const char *name;
    int error;
} ERRORS[] = {{"eio", EIO},       {"enospc", ENOSPC}, {"edquot", EDQUOT}, {"eintr", EINTR},
              {"emfile", EMFILE}, {"einval", EINVAL}, {"erofs", EROFS},   {"enosys", ENOSYS},
              {"eperm", EPERM},   {"eacces", EACCES}, {"enolck", ENOLCK}, {"eopnotsupp", EOPNOTSUPP}};

enum { SHORT = -1, SLOW = -2 };

static char below[PATH_MAX];
static const char *hits;
static int meant[CALLS], fault;
static int64_t at = -1, from = -1;
static uint64_t own_counts[CALLS], *counts = own_counts;

__attribute__((constructor)) void file_faults_begin(void) {
    const char *folder = getenv("FAULT_BELOW"), *what = getenv("FAULT");
    const char *program = getenv("FAULT_PROGRAM"), *shared = getenv("FAULT_COUNTS");
    char self[PATH_MAX] = "", call[32], name[32], when[8];
    long long number = 0;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || folder == NULL) return;
    if (program != NULL && strstr(strrchr(self, '/'), program) == NULL) return;
    hits = getenv("FAULT_HITS");
    int fd = shared == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, shared, O_RDWR, 0);
    if (fd >= 0) {
        void *page = mmap(NULL, sizeof own_counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED) counts = page;
        syscall(SYS_close, fd);
    }
    if (what != NULL && *what != 0) {
        if (sscanf(what, "%31[^:]:%31[^:]:%7[^=]=%lld", call, name, when, &number) != 4) abort();
        int found = 0;
        for (int kind = 0; kind < CALLS; kind++) {
            int change = strcmp(call, "change") == 0 && kind != READ;
            found += meant[kind] = change || strcmp(call, NAMES[kind]) == 0;
        }
        fault = strcmp(name, "short") == 0 ? SHORT : strcmp(name, "slow") == 0 ? SLOW : 0;
        for (size_t known = 0; known < sizeof ERRORS / sizeof *ERRORS; known++)
            if (strcmp(name, ERRORS[known].name) == 0) fault = ERRORS[known].error;
        if (!found || fault == 0) abort();
        *(strcmp(when, "from") == 0 ? &from : &at) = number;
    }
    snprintf(below, sizeof below, "%s", folder);
}

/* The path of `name` in the folder `fd`, or of `fd` where there is no name. */
static void path_of(int fd, const char *name, char path[2 * PATH_MAX]) {
    char link[64];
    *path = 0;
    if (name != NULL && *name == '/') {
        snprintf(path, 2 * PATH_MAX, "%s", name);
        return;
    }
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
    long bytes = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    if (bytes < 0) return;
    snprintf(path + bytes, (size_t)(2 * PATH_MAX - bytes), "%s%s", name == NULL ? "" : "/",
             name == NULL ? "" : name);
}

/* Whether this call is to fail: -1 with errno, 1 for a short one, 0 for one that is as always. */
static int hit(enum call call, int fd, const char *name) {
    char path[2 * PATH_MAX], line[2 * PATH_MAX + 32];
    int before = errno;
    if (*below == 0) return 0;
    path_of(fd, name, path);
    if (strncmp(path, below, strlen(below)) != 0) {
        errno = before;
        return 0;
    }
    int64_t number = 0;
    __sync_fetch_and_add(&counts[call], 1);
    for (int kind = 0; kind < CALLS; kind++)
        if (meant[kind]) number += (int64_t)__sync_fetch_and_add(&counts[kind], 0);
    int now = meant[call] && (number == at || (from >= 0 && number >= from));
    if (now && fault == EINTR && from >= 0) now = (number - from) % 2 == 0;
    if (now && hits != NULL) {
        int log = (int)syscall(SYS_openat, AT_FDCWD, hits, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int bytes = snprintf(line, sizeof line, "%s %s\n", NAMES[call], path);
        if (log >= 0) syscall(SYS_write, log, line, bytes), syscall(SYS_close, log);
    }
    if (now && fault == SLOW) usleep(5000);
    errno = now && fault > 0 ? fault : before;
    return !now || fault == SLOW ? 0 : fault == SHORT ? 1 : -1;
}

#define REAL(result, name, ...)                                        \
    static result (*real)(__VA_ARGS__);                                \
    if (real == NULL) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

#define TRANSFER(call, name, data)                                     \
    ssize_t name(int fd, data buffer, size_t bytes) {                  \
        REAL(ssize_t, #name, int, data, size_t);                       \
        int now = hit(call, fd, NULL);                                 \
        return now < 0 ? -1 : real(fd, buffer, now ? half(bytes) : bytes); \
    }
TRANSFER(READ, read, void *)
TRANSFER(WRITE, write, const void *)

#define TRANSFER_AT(call, name, data)                                  \
    ssize_t name(int fd, data buffer, size_t bytes, off64_t place) {   \
        REAL(ssize_t, #name, int, data, size_t, off64_t);              \
        int now = hit(call, fd, NULL);                                 \
        return now < 0 ? -1 : real(fd, buffer, now ? half(bytes) : bytes, place); \
    }
TRANSFER_AT(READ, pread, void *)
TRANSFER_AT(READ, pread64, void *)
TRANSFER_AT(WRITE, pwrite, const void *)
TRANSFER_AT(WRITE, pwrite64, const void *)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    int now = hit(WRITE, fd, NULL);
    if (now > 0 && count > 0) return syscall(SYS_write, fd, parts->iov_base, half(parts->iov_len));
    return now < 0 ? -1 : real(fd, parts, count);
}
ssize_t sendfile64(int to, int source, off64_t *offset, size_t bytes) {
    REAL(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    int now = hit(WRITE, to, NULL);
    return now < 0 ? -1 : real(to, source, offset, now ? half(bytes) : bytes);
}
ssize_t sendfile(int to, int source, off_t *offset, size_t bytes) {
    return sendfile64(to, source, offset, bytes);
}

/* What changes sizes counts as a write, too, and is never short. */
#define ON_FILE(call, name, parameters, types, arguments)              \
    int name parameters {                                              \
        static int(*real) types;                                       \
        if (real == NULL) real = (int(*) types)dlsym(RTLD_NEXT, #name); \
        return hit(call, fd, NULL) < 0 ? -1 : real arguments;          \
    }
ON_FILE(WRITE, ftruncate, (int fd, off_t bytes), (int, off_t), (fd, bytes))
ON_FILE(WRITE, ftruncate64, (int fd, off64_t bytes), (int, off64_t), (fd, bytes))
ON_FILE(WRITE, fallocate, (int fd, int mode, off_t start, off_t bytes), (int, int, off_t, off_t),
        (fd, mode, start, bytes))
ON_FILE(WRITE, fallocate64, (int fd, int mode, off64_t start, off64_t bytes),
        (int, int, off64_t, off64_t), (fd, mode, start, bytes))

static enum call sync_of(int fd) {
    struct stat status;
    return syscall(SYS_fstat, fd, &status) == 0 && S_ISDIR(status.st_mode) ? SYNC_FOLDER : SYNC;
}
ON_FILE(sync_of(fd), fsync, (int fd), (int), (fd))
ON_FILE(sync_of(fd), fdatasync, (int fd), (int), (fd))

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    if (hit(OPEN, folder, name) < 0) return -1;
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}
#define OPENS(name, parameters, folder)                                \
    int name parameters {                                              \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                  \
        return open_at(folder, file, flags, mode);                     \
    }
OPENS(open, (const char *file, int flags, ...), AT_FDCWD)
OPENS(open64, (const char *file, int flags, ...), AT_FDCWD)
OPENS(openat, (int folder, const char *file, int flags, ...), folder)
OPENS(openat64, (int folder, const char *file, int flags, ...), folder)

#define ON_NAME(call, name, parameters, types, arguments)              \
    int name parameters {                                              \
        static int(*real) types;                                       \
        if (real == NULL) real = (int(*) types)dlsym(RTLD_NEXT, #name); \
        return hit(call, folder, file) < 0 ? -1 : real arguments;      \
    }
#define HERE AT_FDCWD
ON_NAME(OPEN, mkdirat, (int folder, const char *file, mode_t mode), (int, const char *, mode_t),
        (folder, file, mode))
int mkdir(const char *file, mode_t mode) { return mkdirat(HERE, file, mode); }
ON_NAME(UNLINK, unlinkat, (int folder, const char *file, int flags), (int, const char *, int),
        (folder, file, flags))
int unlink(const char *file) { return unlinkat(HERE, file, 0); }
int rmdir(const char *file) { return unlinkat(HERE, file, AT_REMOVEDIR); }
ON_NAME(RENAME, renameat, (int from_folder, const char *old, int folder, const char *file),
        (int, const char *, int, const char *), (from_folder, old, folder, file))
int rename(const char *old, const char *file) { return renameat(HERE, old, HERE, file); }
ON_NAME(LINK, linkat,
        (int from_folder, const char *old, int folder, const char *file, int flags),
        (int, const char *, int, const char *, int), (from_folder, old, folder, file, flags))
int link(const char *old, const char *file) { return linkat(HERE, old, HERE, file, 0); }
