/* What a program does to the files below one folder, as one ordered log.

   For LD_PRELOAD. The functions of the C library that change files are defined here once more: each
   does its work by the system call, and notes what was done, before any other thread can do
   anything else to a file. python/lsmtune/proof/file_log.py reads the log.

   LSMTUNE_FILES_BELOW   the folder
   LSMTUNE_FILES_LOG     the log, a file that is not there yet and not below the folder; a process
                         that finds it there (a child, another program) is left alone
   LSMTUNE_FILES_FAULT   "ignore-sync": syncs are not noted, as on a device that lies

   Noted: opening for writing, writes with their data, changes of size, holes, renames, links,
   removals, new folders, syncs of files and folders, closes; and whatever is written to a pipe,
   which is how lsmtune's driver says what it has done. Syncs are noted and not performed: what was
   written here is thrown away, and a power loss is only computed.

   Refused, as if the kernel did not know them: shared mappings that can be written to, io_uring,
   asynchronous writes, and copies within the kernel (copy_file_range, sendfile, splice, clones).
   Those that other ways than the C library lead to are refused by the kernel (seccomp).

   No state is kept of descriptors, which could be duplicated: whose file it is says /proc/self/fd,
   and which file it is its inode number. The log says when a number belongs to a new file.

   Linux with glibc 2.17 or later, 64 bits. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#if !defined(__linux__) || !defined(__GLIBC__) || __SIZEOF_LONG__ != 8
#error "for Linux with the GNU C library, 64 bits"
#endif

/* Numbers of calls that are younger than the oldest headers; the same on all 64-bit machines. */
#define CALL_IO_URING_SETUP 425
#define CALL_IO_URING_ENTER 426
#define CALL_IO_URING_REGISTER 427
#define CALL_OPENAT2 437
#if defined(__x86_64__)
#define CALL_RENAMEAT2 316
#define CALL_COPY_FILE_RANGE 326
#define CALL_PWRITEV2 328
#define CALL_OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALL_RENAMEAT2 276
#define CALL_COPY_FILE_RANGE 285
#define CALL_PWRITEV2 287
#define CALL_OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "for x86-64 and aarch64"
#endif

#define FALLOCATE_KEEP_SIZE 0x01
#define FALLOCATE_PUNCH_HOLE 0x02
#define FALLOCATE_ZERO_RANGE 0x10
#define CLONE_FILE 0x40049409u
#define CLONE_RANGE 0x4020940du
#define DEDUPE_RANGE 0xc0189436u
#define WRITE_DSYNC 2 /* RWF_DSYNC, RWF_SYNC */
#define WRITE_SYNC 4
#define DSYNC 010000 /* O_DSYNC, a part of O_SYNC */
#define TMPFILE 020000000

/* --- the log: this head, then the path, the other path, and the data */

enum kind {
    HELLO = 1,  /* path: the folder; file, if it is there already; the version in the flags */
    OPENED,     /* file, path; CREATED, TRUNCATED, FOLDER */
    WRITTEN,    /* file, offset, data; SYNCED */
    SYNCHED,    /* file; FOLDER; DATA_ONLY */
    RESIZED,    /* file, length */
    ZEROED,     /* file, offset, length */
    RENAMED,    /* path, other path; file */
    LINKED,     /* path, other path; file */
    UNLINKED,   /* path */
    MADE,       /* path, file: a folder */
    REMOVED,    /* path: a folder */
    SYNCHED_ALL,
    MARKED,     /* data written to a pipe; file is that of the pipe */
    REFUSED,    /* path: the name of the call */
    CLOSED,     /* file */
    RANGE_SYNCHED, /* file, offset, length: promises nothing */
};

enum { CREATED = 1, TRUNCATED = 2, FOLDER = 4, SYNCED = 8, DATA_ONLY = 16 };

struct head {
    uint32_t magic; /* "lsmF" */
    uint16_t kind, flags;
    uint32_t path_bytes, other_bytes;
    uint64_t file; /* inode number */
    int64_t offset, length;
    uint64_t data_bytes;
};
#define MAGIC 0x466d736cu
#define VERSION 1

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char below[PATH_MAX];
static size_t below_bytes;
static int log_fd = -1;
static pid_t owner;
static int ignore_sync;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "lsmtune-files: no %s in the C library\n", name);
        abort();
    }
    return found;
}

typedef long (*by_number)(long, ...);

static by_number kernel(void) {
    static by_number found;
    if (found == NULL) found = (by_number)next("syscall");
    return found;
}

/* A system call, by the C library's `syscall`, which sets errno. */
#define CALL(...) kernel()(__VA_ARGS__)

/* Another name of a function: on 64 bits, those with a 64 are the same. */
#define IS(function) __attribute__((alias(#function)))

static void give_up(const char *why) {
    fprintf(stderr, "lsmtune-files: %s: %s\n", why, strerror(errno));
    abort(); /* a log with a hole would tell of losses that there are not */
}

static void append(struct iovec *parts, int count) {
    while (count > 0) {
        /* No call takes more, and the head and the paths stand before the parts of a full one. */
        ssize_t done = CALL(SYS_writev, log_fd, parts, count < IOV_MAX ? count : IOV_MAX);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) give_up("the log of what happens to files cannot be written");
        while (count > 0 && (size_t)done >= parts->iov_len) {
            done -= (ssize_t)parts->iov_len;
            parts++, count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
}

/* Notes one record; `count` parts of data follow its paths. The lock is held. */
static void note_parts(struct head head, const char *path, const char *other,
                       const struct iovec *data, int count) {
    int before = errno;
    struct iovec parts[3 + 16], *all = parts;
    if (count > 16 && (all = malloc(sizeof *all * (size_t)(3 + count))) == NULL)
        give_up("no memory for the log of what happens to files");
    head.magic = MAGIC;
    head.path_bytes = path == NULL ? 0 : (uint32_t)strlen(path);
    head.other_bytes = other == NULL ? 0 : (uint32_t)strlen(other);
    head.data_bytes = 0;
    for (int part = 0; part < count; part++) {
        head.data_bytes += data[part].iov_len;
        all[3 + part] = data[part];
    }
    all[0] = (struct iovec){&head, sizeof head};
    all[1] = (struct iovec){(void *)path, head.path_bytes};
    all[2] = (struct iovec){(void *)other, head.other_bytes};
    append(all, 3 + count);
    if (all != parts) free(all);
    errno = before;
}

static void note(struct head head, const char *path, const char *other) {
    note_parts(head, path, other, NULL, 0);
}

static int watching(void) { return log_fd >= 0 && CALL(SYS_getpid) == owner; }

static void enter(void) { pthread_mutex_lock(&lock); }

static void leave(void) {
    int before = errno;
    pthread_mutex_unlock(&lock);
    errno = before;
}

static long refuse(const char *name, int error) {
    if (watching()) {
        enter();
        note((struct head){.kind = REFUSED}, name, NULL);
        leave();
    }
    errno = error;
    return -1;
}

/* --- which file it is */

static int is_below(const char *path) {
    return strncmp(path, below, below_bytes) == 0 &&
           (path[below_bytes] == '/' || path[below_bytes] == 0);
}

/* The path of an open descriptor; 0 where there is none. */
static int path_of(int fd, char path[PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t bytes = CALL(SYS_readlinkat, AT_FDCWD, name, path, PATH_MAX - 1);
    if (bytes < 0) return 0;
    path[bytes] = 0;
    return 1;
}

static int is_watched(int fd) {
    char path[PATH_MAX];
    int before = errno;
    int watched = watching() && fd != log_fd && path_of(fd, path) && is_below(path);
    errno = before;
    return watched;
}

/* Whether the entry `name` is below the folder; its absolute path, links in its parents followed. */
static int entry_of(int folder, const char *name, char path[PATH_MAX]) {
    if (!watching() || name == NULL || *name == 0) return 0;
    int before = errno;
    char parent[PATH_MAX];
    size_t bytes = strlen(name);
    while (bytes > 1 && name[bytes - 1] == '/') bytes--;
    size_t start = bytes;
    while (start > 0 && name[start - 1] != '/') start--;
    if (start >= sizeof parent) goto no;
    memcpy(parent, name, start);
    parent[start] = 0;
    int fd = (int)CALL(SYS_openat, folder, start == 0 ? "." : parent,
                       O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) goto no;
    int known = path_of(fd, path);
    CALL(SYS_close, fd);
    size_t length = known ? strlen(path) : 0;
    if (!known || length + 1 + (bytes - start) >= PATH_MAX) goto no;
    path[length] = '/';
    memcpy(path + length + 1, name + start, bytes - start);
    path[length + 1 + (bytes - start)] = 0;
    errno = before;
    return is_below(path);
no:
    errno = before;
    return 0;
}

/* What a descriptor is; the numbers that are the same in `struct stat` of every glibc. */
struct found {
    uint64_t file;
    int64_t size;
    unsigned mode;
};

static struct found status_of(int fd) {
    struct stat status;
    int before = errno;
    memset(&status, 0, sizeof status);
    if (CALL(SYS_fstat, fd, &status) != 0) give_up("a file that is written to has no status");
    errno = before;
    return (struct found){status.st_ino, status.st_size, status.st_mode};
}

static int status_at(int folder, const char *name, struct found *found) {
    struct stat status;
    int before = errno;
    long result = CALL(SYS_newfstatat, folder, name, &status, AT_SYMLINK_NOFOLLOW);
    if (result == 0) *found = (struct found){status.st_ino, status.st_size, status.st_mode};
    errno = before;
    return result == 0;
}

/* --- opening and closing */

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (!writes || flags & O_PATH || !entry_of(folder, name, path))
        return (int)CALL(SYS_openat, folder, name, flags, mode);
    if ((flags & TMPFILE) == TMPFILE) return (int)refuse("O_TMPFILE", EOPNOTSUPP);
    enter();
    struct found before = {0, 0, 0};
    int existed = status_at(folder, name, &before);
    int fd = (int)CALL(SYS_openat, folder, name, flags, mode);
    if (fd >= 0) {
        int noted = (existed ? 0 : CREATED) | (existed && flags & O_TRUNC ? TRUNCATED : 0);
        note((struct head){.kind = OPENED, .flags = (uint16_t)noted, .file = status_of(fd).file},
             path, NULL);
    }
    leave();
    return fd;
}

#define MODE_OF(flags)                                                  \
    mode_t mode = 0;                                                    \
    if ((flags) & O_CREAT || ((flags) & TMPFILE) == TMPFILE) {          \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        mode = va_arg(rest, mode_t);                                    \
        va_end(rest);                                                   \
    }

int open(const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_at(AT_FDCWD, name, flags, mode);
}
int open64(const char *name, int flags, ...) IS(open);
int openat(int folder, const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_at(folder, name, flags, mode);
}
int openat64(int folder, const char *name, int flags, ...) IS(openat);
int creat(const char *name, mode_t mode) {
    return open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
int creat64(const char *name, mode_t mode) IS(creat);
/* What `open` becomes under _FORTIFY_SOURCE. */
int __open_2(const char *name, int flags) { return open_at(AT_FDCWD, name, flags, 0); }
int __open64_2(const char *name, int flags) IS(__open_2);
int __openat_2(int folder, const char *name, int flags) { return open_at(folder, name, flags, 0); }
int __openat64_2(int folder, const char *name, int flags) IS(__openat_2);

int close(int fd) {
    if (fd == log_fd && watching()) {
        errno = EBADF;
        return -1;
    }
    if (!is_watched(fd)) return (int)CALL(SYS_close, fd);
    enter();
    note((struct head){.kind = CLOSED, .file = status_of(fd).file}, NULL, NULL);
    int result = (int)CALL(SYS_close, fd);
    leave();
    return result;
}

/* --- writing */

/* Notes the first `bytes` bytes of `parts`. */
static void note_data(struct head head, const struct iovec *parts, int count, ssize_t bytes) {
    struct iovec some[IOV_MAX];
    int used = 0;
    for (; used < count && bytes > 0; used++) {
        some[used] = parts[used];
        if ((ssize_t)some[used].iov_len > bytes) some[used].iov_len = (size_t)bytes;
        bytes -= (ssize_t)some[used].iov_len;
    }
    note_parts(head, NULL, NULL, some, used);
}

/* `offset` -1: where the descriptor is. `synced`: this one write is to be synced. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off64_t offset,
                           int synced) {
    enter();
    struct found found = status_of(fd);
    int flags = (int)CALL(SYS_fcntl, fd, F_GETFL, 0);
    int64_t at = offset;
    if (flags & O_APPEND)
        at = found.size; /* Linux appends, whatever the offset of a pwrite says */
    else if (offset < 0)
        at = CALL(SYS_lseek, fd, 0, SEEK_CUR);
    ssize_t done = offset < 0 ? CALL(SYS_writev, fd, parts, count)
                              : CALL(SYS_pwritev, fd, parts, count, offset, 0);
    if (done > 0) {
        int noted = (synced || flags & DSYNC) && !ignore_sync ? SYNCED : 0;
        note_data((struct head){.kind = WRITTEN, .flags = (uint16_t)noted, .file = found.file,
                                .offset = at, .length = done},
                  parts, count, done);
    }
    leave();
    return done;
}

static int is_pipe(int fd) {
    struct stat status;
    int before = errno;
    int piped = watching() && CALL(SYS_fstat, fd, &status) == 0 && S_ISFIFO(status.st_mode);
    errno = before;
    return piped;
}

/* A pipe is noted before it is written to, and not under the lock: a full one would hold all up.
   So what it says was true when it is noted. */
static void note_mark(int fd, const struct iovec *parts, int count) {
    enter();
    note_data((struct head){.kind = MARKED, .file = status_of(fd).file}, parts, count, SSIZE_MAX);
    leave();
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_watched(fd)) return write_parts(fd, parts, count, -1, 0);
    if (count <= IOV_MAX && is_pipe(fd)) note_mark(fd, parts, count);
    return CALL(SYS_writev, fd, parts, count);
}
ssize_t write(int fd, const void *data, size_t bytes) {
    struct iovec part = {(void *)data, bytes};
    if (watching()) return writev(fd, &part, 1);
    return CALL(SYS_write, fd, data, bytes);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    if (offset >= 0 && is_watched(fd)) return write_parts(fd, parts, count, offset, 0);
    return CALL(SYS_pwritev, fd, parts, count, offset, 0);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) IS(pwritev);
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    struct iovec part = {(void *)data, bytes};
    return pwritev(fd, &part, 1, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) IS(pwrite);
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    if (is_watched(fd)) {
        if (flags & ~(WRITE_DSYNC | WRITE_SYNC)) return refuse("pwritev2", EOPNOTSUPP);
        return write_parts(fd, parts, count, offset, flags);
    }
    return CALL(CALL_PWRITEV2, fd, parts, count, offset, 0, flags);
}
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
    IS(pwritev2);

/* --- sizes */

static int resize(int fd, off64_t size) {
    enter();
    int result = (int)CALL(SYS_ftruncate, fd, size);
    if (result == 0)
        note((struct head){.kind = RESIZED, .file = status_of(fd).file, .length = size}, NULL, NULL);
    leave();
    return result;
}

int ftruncate(int fd, off_t size) {
    return is_watched(fd) ? resize(fd, size) : (int)CALL(SYS_ftruncate, fd, size);
}
int ftruncate64(int fd, off64_t size) IS(ftruncate);
int truncate(const char *name, off_t size) {
    char path[PATH_MAX];
    if (!entry_of(AT_FDCWD, name, path)) return (int)CALL(SYS_truncate, name, size);
    int fd = (int)CALL(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int result = resize(fd, size), error = errno;
    CALL(SYS_close, fd);
    errno = error;
    return result;
}
int truncate64(const char *name, off64_t size) IS(truncate);

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    if (!is_watched(fd)) return (int)CALL(SYS_fallocate, fd, mode, offset, bytes);
    int zeroes = mode & (FALLOCATE_PUNCH_HOLE | FALLOCATE_ZERO_RANGE);
    if (mode & ~(FALLOCATE_KEEP_SIZE | FALLOCATE_PUNCH_HOLE | FALLOCATE_ZERO_RANGE))
        return (int)refuse("fallocate", EOPNOTSUPP);
    enter();
    struct found before = status_of(fd);
    int result = (int)CALL(SYS_fallocate, fd, mode, offset, bytes);
    if (result == 0) {
        int64_t size = status_of(fd).size;
        if (size != before.size)
            note((struct head){.kind = RESIZED, .file = before.file, .length = size}, NULL, NULL);
        if (zeroes)
            note((struct head){.kind = ZEROED, .file = before.file, .offset = offset,
                               .length = bytes},
                 NULL, NULL);
    }
    leave();
    return result;
}
int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) IS(fallocate);
/* The C library's own would write zeros where the file system cannot, past these functions. */
int posix_fallocate(int fd, off_t offset, off_t bytes) {
    int before = errno;
    int result = fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
    errno = before;
    return result;
}
int posix_fallocate64(int fd, off64_t offset, off64_t bytes) IS(posix_fallocate);

/* --- syncs */

static int sync_one(int fd, int data_only) {
    if (!is_watched(fd))
        return (int)(data_only ? CALL(SYS_fdatasync, fd) : CALL(SYS_fsync, fd));
    enter();
    struct found found = status_of(fd);
    int flags = (S_ISDIR(found.mode) ? FOLDER : 0) | data_only;
    if (!ignore_sync)
        note((struct head){.kind = SYNCHED, .flags = (uint16_t)flags, .file = found.file}, NULL,
             NULL);
    leave();
    return 0;
}

int fsync(int fd) { return sync_one(fd, 0); }
int fdatasync(int fd) { return sync_one(fd, DATA_ONLY); }

static int sync_all(void) {
    enter();
    if (!ignore_sync) note((struct head){.kind = SYNCHED_ALL}, NULL, NULL);
    leave();
    return 0;
}
void sync(void) {
    if (watching())
        sync_all();
    else
        CALL(SYS_sync);
}
int syncfs(int fd) { return is_watched(fd) ? sync_all() : (int)CALL(SYS_syncfs, fd); }

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
    if (!is_watched(fd)) return (int)CALL(SYS_sync_file_range, fd, offset, bytes, flags);
    enter();
    note((struct head){.kind = RANGE_SYNCHED, .file = status_of(fd).file, .offset = offset,
                       .length = bytes},
         NULL, NULL);
    leave();
    return 0;
}

/* --- names */

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char path[PATH_MAX], other[PATH_MAX];
    int from_below = entry_of(from_folder, from, path), to_below = entry_of(to_folder, to, other);
    if (!from_below && !to_below)
        return (int)CALL(CALL_RENAMEAT2, from_folder, from, to_folder, to, flags);
    if (from_below != to_below || flags & ~1u) return (int)refuse("rename", EXDEV);
    enter();
    struct found found = {0, 0, 0};
    status_at(from_folder, from, &found);
    int result = (int)CALL(CALL_RENAMEAT2, from_folder, from, to_folder, to, flags);
    if (result == 0) note((struct head){.kind = RENAMED, .file = found.file}, path, other);
    leave();
    return result;
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}
int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char path[PATH_MAX], other[PATH_MAX];
    int from_below = entry_of(from_folder, from, path), to_below = entry_of(to_folder, to, other);
    if (!to_below) return (int)CALL(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (!from_below || flags & AT_EMPTY_PATH) return (int)refuse("link", EXDEV);
    enter();
    struct found found = {0, 0, 0};
    status_at(from_folder, from, &found);
    int result = (int)CALL(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (result == 0) note((struct head){.kind = LINKED, .file = found.file}, path, other);
    leave();
    return result;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int folder, const char *name) {
    char path[PATH_MAX];
    if (entry_of(folder, name, path)) return (int)refuse("symlink", EPERM);
    return (int)CALL(SYS_symlinkat, target, folder, name);
}
int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    if (!entry_of(folder, name, path)) return (int)CALL(SYS_unlinkat, folder, name, flags);
    enter();
    int result = (int)CALL(SYS_unlinkat, folder, name, flags);
    int kind = flags & AT_REMOVEDIR ? REMOVED : UNLINKED;
    if (result == 0) note((struct head){.kind = (uint16_t)kind}, path, NULL);
    leave();
    return result;
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char *name) {
    int result = unlinkat(AT_FDCWD, name, 0);
    return result != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(name) : result;
}

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!entry_of(folder, name, path)) return (int)CALL(SYS_mkdirat, folder, name, mode);
    enter();
    struct found found = {0, 0, 0};
    int result = (int)CALL(SYS_mkdirat, folder, name, mode);
    if (result == 0 && status_at(folder, name, &found))
        note((struct head){.kind = MADE, .file = found.file}, path, NULL);
    leave();
    return result;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

/* --- what cannot be followed */

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    int kind = flags & (MAP_SHARED | MAP_PRIVATE); /* MAP_SHARED_VALIDATE is both */
    if (!(flags & MAP_ANONYMOUS) && kind != MAP_PRIVATE && protection & PROT_WRITE &&
        is_watched(fd)) {
        refuse("mmap", ENODEV);
        return MAP_FAILED;
    }
    return (void *)CALL(SYS_mmap, address, bytes, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
    IS(mmap);

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes,
                        unsigned flags) {
    if (is_watched(to)) return refuse("copy_file_range", ENOSYS);
    return CALL(CALL_COPY_FILE_RANGE, from, from_offset, to, to_offset, bytes, flags);
}
ssize_t sendfile(int to, int from, off_t *offset, size_t bytes) {
    if (is_watched(to)) return refuse("sendfile", ENOSYS);
    return CALL(SYS_sendfile, to, from, offset, bytes);
}
ssize_t sendfile64(int to, int from, off64_t *offset, size_t bytes) IS(sendfile);
ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes,
               unsigned flags) {
    if (is_watched(to)) return refuse("splice", ENOSYS);
    return CALL(SYS_splice, from, from_offset, to, to_offset, bytes, flags);
}
struct aiocb;
int aio_write(struct aiocb *control) {
    (void)control;
    return (int)refuse("aio_write", ENOSYS);
}
int aio_write64(struct aiocb *control) IS(aio_write);
int lio_listio(int mode, struct aiocb *const list[], int count, void *event) {
    (void)mode, (void)list, (void)count, (void)event;
    return (int)refuse("lio_listio", ENOSYS);
}
int lio_listio64(int mode, struct aiocb *const list[], int count, void *event) IS(lio_listio);

int ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int clones = request == CLONE_FILE || request == CLONE_RANGE || request == DEDUPE_RANGE;
    if (clones && is_watched(fd)) return (int)refuse("clone", EOPNOTSUPP);
    return (int)CALL(SYS_ioctl, fd, request, argument);
}

/* Calls by number. What changes files goes the same way as by name. */
long syscall(long number, ...) {
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int index = 0; index < 6; index++) a[index] = va_arg(rest, long);
    va_end(rest);
    if (!watching()) return CALL(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (number) {
    case SYS_openat: return open_at((int)a[0], (char *)a[1], (int)a[2], (mode_t)a[3]);
    case SYS_close: return close((int)a[0]);
    case SYS_write: return write((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_writev: return writev((int)a[0], (struct iovec *)a[1], (int)a[2]);
    case SYS_pwrite64: return pwrite((int)a[0], (void *)a[1], (size_t)a[2], a[3]);
    case SYS_pwritev: return pwritev((int)a[0], (struct iovec *)a[1], (int)a[2], a[3]);
    case CALL_PWRITEV2:
        return pwritev2((int)a[0], (struct iovec *)a[1], (int)a[2], a[3], (int)a[5]);
    case SYS_ftruncate: return ftruncate((int)a[0], a[1]);
    case SYS_truncate: return truncate((char *)a[0], a[1]);
    case SYS_fallocate: return fallocate((int)a[0], (int)a[1], a[2], a[3]);
    case SYS_fsync: return fsync((int)a[0]);
    case SYS_fdatasync: return fdatasync((int)a[0]);
    case SYS_syncfs: return syncfs((int)a[0]);
    case SYS_sync: return sync(), 0;
    case SYS_sync_file_range: return sync_file_range((int)a[0], a[1], a[2], (unsigned)a[3]);
    case SYS_renameat:
        return renameat((int)a[0], (char *)a[1], (int)a[2], (char *)a[3]);
    case CALL_RENAMEAT2:
        return renameat2((int)a[0], (char *)a[1], (int)a[2], (char *)a[3], (unsigned)a[4]);
    case SYS_linkat:
        return linkat((int)a[0], (char *)a[1], (int)a[2], (char *)a[3], (int)a[4]);
    case SYS_symlinkat: return symlinkat((char *)a[0], (int)a[1], (char *)a[2]);
    case SYS_unlinkat: return unlinkat((int)a[0], (char *)a[1], (int)a[2]);
    case SYS_mkdirat: return mkdirat((int)a[0], (char *)a[1], (mode_t)a[2]);
    case SYS_mmap:
        return (long)mmap((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5]);
    case SYS_ioctl: return ioctl((int)a[0], (unsigned long)a[1], (void *)a[2]);
#if defined(__x86_64__) /* the names of before, which newer machines do not have */
    case SYS_open: return open_at(AT_FDCWD, (char *)a[0], (int)a[1], (mode_t)a[2]);
    case SYS_creat: return creat((char *)a[0], (mode_t)a[1]);
    case SYS_rename: return rename((char *)a[0], (char *)a[1]);
    case SYS_link: return link((char *)a[0], (char *)a[1]);
    case SYS_symlink: return symlink((char *)a[0], (char *)a[1]);
    case SYS_unlink: return unlink((char *)a[0]);
    case SYS_mkdir: return mkdir((char *)a[0], (mode_t)a[1]);
    case SYS_rmdir: return rmdir((char *)a[0]);
#endif
    case CALL_OPENAT2: return refuse("openat2", ENOSYS);
    case CALL_COPY_FILE_RANGE:
        return copy_file_range((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3],
                               (size_t)a[4], (unsigned)a[5]);
    case SYS_sendfile: return sendfile((int)a[0], (int)a[1], (off64_t *)a[2], (size_t)a[3]);
    case SYS_splice:
        return splice((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4],
                      (unsigned)a[5]);
    case CALL_IO_URING_SETUP: return refuse("io_uring", ENOSYS);
    case SYS_io_setup: return refuse("io_setup", ENOSYS);
    default: return CALL(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

/* --- streams: the C library writes them past `write`, so they get writers of their own */

static ssize_t stream_read(void *stream, char *data, size_t bytes) {
    return read((int)(intptr_t)stream, data, bytes);
}
static ssize_t stream_write(void *stream, const char *data, size_t bytes) {
    ssize_t done = write((int)(intptr_t)stream, data, bytes);
    return done < 0 ? 0 : done; /* as fopencookie has it */
}
static int stream_seek(void *stream, off64_t *offset, int whence) {
    off64_t result = CALL(SYS_lseek, (int)(intptr_t)stream, *offset, whence);
    if (result >= 0) *offset = result;
    return result < 0 ? -1 : 0;
}
static int stream_close(void *stream) { return close((int)(intptr_t)stream); }

static FILE *stream_of(int fd, const char *mode) {
    cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    return fopencookie((void *)(intptr_t)fd, mode, functions);
}

static int writes(const char *mode) { return strpbrk(mode, "wa+") != NULL; }

FILE *fopen(const char *name, const char *mode) {
    char path[PATH_MAX];
    if (!writes(mode) || !entry_of(AT_FDCWD, name, path))
        return ((FILE * (*)(const char *, const char *)) next("fopen"))(name, mode);
    int flags = strchr(mode, '+') != NULL ? O_RDWR : O_WRONLY;
    if (*mode == 'w') flags |= O_CREAT | O_TRUNC;
    if (*mode == 'a') flags |= O_CREAT | O_APPEND;
    if (strchr(mode, 'x') != NULL) flags |= O_EXCL;
    if (strchr(mode, 'e') != NULL) flags |= O_CLOEXEC;
    int fd = open_at(AT_FDCWD, name, flags, 0666);
    if (fd < 0) return NULL;
    FILE *stream = stream_of(fd, mode);
    if (stream == NULL) close(fd);
    return stream;
}
FILE *fopen64(const char *name, const char *mode) IS(fopen);
FILE *fdopen(int fd, const char *mode) {
    if (writes(mode) && is_watched(fd)) return stream_of(fd, mode);
    return ((FILE * (*)(int, const char *)) next("fdopen"))(fd, mode);
}
FILE *freopen(const char *name, const char *mode, FILE *stream) {
    char path[PATH_MAX];
    if (name != NULL && writes(mode) && entry_of(AT_FDCWD, name, path)) {
        refuse("freopen", EACCES);
        return NULL;
    }
    return ((FILE * (*)(const char *, const char *, FILE *)) next("freopen"))(name, mode, stream);
}
FILE *freopen64(const char *name, const char *mode, FILE *stream) IS(freopen);

static int make_unique(char *template, int suffix, int flags) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static unsigned long counter;
    size_t bytes = strlen(template);
    if (suffix < 0 || bytes < 6 + (size_t)suffix) {
        errno = EINVAL;
        return -1;
    }
    char *place = template + bytes - (size_t)suffix - 6;
    for (int attempt = 0; attempt < 10000; attempt++) {
        unsigned long number =
            (unsigned long)getpid() * 2654435761ul + __sync_fetch_and_add(&counter, 1) * 40503ul;
        for (int letter = 0; letter < 6; letter++, number /= 36) place[letter] = letters[number % 36];
        int fd = open_at(AT_FDCWD, template, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}
int mkstemp(char *template) { return make_unique(template, 0, 0); }
int mkstemp64(char *template) IS(mkstemp);
int mkostemp(char *template, int flags) { return make_unique(template, 0, flags); }
int mkostemp64(char *template, int flags) IS(mkostemp);
int mkstemps(char *template, int suffix) { return make_unique(template, suffix, 0); }
int mkostemps(char *template, int suffix, int flags) {
    return make_unique(template, suffix, flags);
}

/* --- the beginning */

/* What nobody here sees when it is called by its number, the kernel refuses. */
static void refuse_in_kernel(void) {
#define REFUSE(number)                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA))
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_OWN_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(CALL_IO_URING_SETUP),
        REFUSE(CALL_IO_URING_ENTER),
        REFUSE(CALL_IO_URING_REGISTER),
        REFUSE(SYS_io_setup),
        REFUSE(SYS_io_submit),
        REFUSE(CALL_OPENAT2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* The real path of the folder, which need not be there yet. */
static int find_folder(const char *name) {
    char parent[PATH_MAX];
    const char *last = strrchr(name, '/');
    if (realpath(name, below) == NULL) {
        if (last == NULL || last - name >= PATH_MAX) return 0;
        snprintf(parent, sizeof parent, "%.*s", (int)(last - name), name);
        if (realpath(parent, below) == NULL) return 0;
        if (strlen(below) + strlen(last) >= PATH_MAX) return 0;
        strcat(below, last);
    }
    below_bytes = strlen(below);
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("LSMTUNE_FILES_BELOW"), *log = getenv("LSMTUNE_FILES_LOG");
    const char *fault = getenv("LSMTUNE_FILES_FAULT");
    char path[PATH_MAX];
    if (folder == NULL || log == NULL || !find_folder(folder)) return;
    ignore_sync = fault != NULL && strcmp(fault, "ignore-sync") == 0;
    if (fault != NULL && *fault != 0 && !ignore_sync) {
        fprintf(stderr, "lsmtune-files: LSMTUNE_FILES_FAULT: found %s; allowed: ignore-sync\n",
                fault);
        abort();
    }
    int fd = (int)CALL(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !path_of(fd, path)) return;
    /* Out of the way of programs that close or count on low numbers. */
    int high = (int)CALL(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 240);
    if (high >= 0) {
        CALL(SYS_close, fd);
        fd = high;
    }
    owner = (pid_t)CALL(SYS_getpid);
    refuse_in_kernel();
    log_fd = fd;
    struct found found = {0, 0, 0};
    status_at(AT_FDCWD, below, &found);
    note((struct head){.kind = HELLO, .flags = VERSION, .file = found.file}, below, NULL);
}
