/* An engine that lies: a library in front of RocksDB or LevelDB that answers some calls of the C
 * interface itself. Whoever loads it finds all other functions in the engine that it is linked to.
 *
 *   cc -shared -fPIC -DENGINE=leveldb lying_engine.c -o liar.so \
 *      -Wl,--no-as-needed /path/libleveldb.so -Wl,-rpath,/path
 *
 * The lie is named when it is compiled (-DLIE='"drop_puts:50"'), or else by LSMTUNE_LIE:
 *
 *   drop_puts:50               one put in 50 is not performed
 *   drop_puts:50 opens=1-1     only from and until this opening in the process, counted from 1
 *   drop_puts:50 runs=1-3      only in the first three processes that open a database; counted in
 *                              the file LIBRARY.runs
 *   drop_puts:50 buffer=9999   only if write_buffer_size is at least so large
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef LIE
#define LIE ""
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(function) JOIN(ENGINE, function)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define ENGINE_IS_leveldb 1
#define ENGINE_IS_rocksdb 2
#define IS_LEVELDB (JOIN(ENGINE_IS, ENGINE) == ENGINE_IS_leveldb)

/* The engine's own function of that name. */
#define REAL(type, function, ...)                                                  \
    static type (*real)(__VA_ARGS__);                                              \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, TEXT(ENGINE) "_" #function)

/* --- which lie, and when */

static struct {
    char name[32];
    long n;
    long opens_from, opens_until, runs_from, runs_until, buffer;
} lie;
static atomic_long opened, run, buffer_size, puts_, deletes, gets, steps, calls, debt;

static void read_range(const char *text, const char *what, long *from, long *until) {
    const char *found = strstr(text, what);
    *from = 0, *until = 1L << 40;
    if (found) sscanf(found + strlen(what), "%ld-%ld", from, until);
}

__attribute__((constructor)) static void read_lie(void) {
    const char *text = *LIE ? LIE : getenv("LSMTUNE_LIE");
    if (!text) text = "";
    long unused;
    lie.n = 1;
    sscanf(text, "%31[^:]:%ld", lie.name, &lie.n);
    read_range(text, " opens=", &lie.opens_from, &lie.opens_until);
    read_range(text, " runs=", &lie.runs_from, &lie.runs_until);
    read_range(text, " buffer=", &lie.buffer, &unused);
}

/* The number of this process among those that opened a database with this library. */
static long count_run(void) {
    Dl_info library;
    char path[4096];
    dladdr(&lie, &library);
    snprintf(path, sizeof path, "%s.runs", library.dli_fname);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || write(file, ".", 1) != 1) abort();
    long number = lseek(file, 0, SEEK_CUR);
    close(file);
    return number;
}

static int telling(const char *name) {
    long now = atomic_load(&opened), number = atomic_load(&run);
    return strcmp(lie.name, name) == 0 && now >= lie.opens_from && now <= lie.opens_until &&
           number >= lie.runs_from && number <= lie.runs_until &&
           atomic_load(&buffer_size) >= lie.buffer;
}

static int one_in_n(atomic_long *counter) {
    return atomic_fetch_add(counter, 1) % lie.n == lie.n - 1;
}

/* From the n-th call on. */
static int past_n(atomic_long *counter) { return atomic_fetch_add(counter, 1) >= lie.n; }

void *NAME(open)(void *options, const char *path, char **error) {
    REAL(void *, open, void *, const char *, char **);
    if (atomic_fetch_add(&opened, 1) == 0 && (lie.runs_from || lie.runs_until < 1L << 40))
        atomic_store(&run, count_run());
    return real(options, path, error);
}

#if IS_LEVELDB
void leveldb_options_set_write_buffer_size(void *options, size_t bytes) {
    REAL(void, options_set_write_buffer_size, void *, size_t);
    atomic_store(&buffer_size, (long)bytes);
    real(options, bytes);
}
#else
void rocksdb_get_options_from_string(const void *base, const char *text, void *options,
                                     char **error) {
    REAL(void, get_options_from_string, const void *, const char *, void *, char **);
    const char *found = strstr(text, "write_buffer_size=");
    if (found && (found == text || found[-1] == ';'))
        atomic_store(&buffer_size, atol(found + strlen("write_buffer_size=")));
    real(base, text, options, error);
}
#endif

/* --- time: each read and write takes n microseconds more of a processor, at once or later */

static long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void spin(long times) {
    long long until = cpu_ns() + times * lie.n * 1000LL;
    while (times > 0 && cpu_ns() < until) {}
}

static void work(void) {
    if (telling("slow")) spin(1);
    if (telling("defer_to_drain") || telling("defer_to_close")) atomic_fetch_add(&debt, 1);
}

static void pay(const char *when) {
    if (telling(when)) spin(atomic_exchange(&debt, 0));
}

void NAME(close)(void *db) {
    REAL(void, close, void *);
    pay("defer_to_close");
    real(db);
}

/* --- what was written before: the last two values of many keys */

enum { SLOTS = 1 << 16 };
static struct slot {
    uint64_t key;
    char *older, *latest;
    size_t older_bytes, latest_bytes;
} slots[SLOTS];
static atomic_flag slots_taken = ATOMIC_FLAG_INIT;

static struct slot *take_slot(const char *key, size_t length, uint64_t *hash) {
    *hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) *hash = (*hash ^ (unsigned char)key[i]) * 1099511628211u;
    while (atomic_flag_test_and_set(&slots_taken)) {}
    return &slots[*hash >> 48];
}

static void remember(const char *key, size_t length, const char *value, size_t bytes) {
    uint64_t hash;
    if (!telling("stale")) return;
    struct slot *slot = take_slot(key, length, &hash);
    free(slot->older);
    slot->older = slot->key == hash ? slot->latest : NULL;
    slot->older_bytes = slot->latest_bytes;
    if (slot->key != hash) free(slot->latest);
    slot->key = hash;
    slot->latest = malloc(bytes ? bytes : 1);
    memcpy(slot->latest, value, slot->latest_bytes = bytes);
    atomic_flag_clear(&slots_taken);
}

/* A copy of the value before the last one. */
static char *stale(const char *key, size_t length, size_t *bytes) {
    uint64_t hash;
    char *copy = NULL;
    if (!telling("stale") || !one_in_n(&gets)) return NULL;
    struct slot *slot = take_slot(key, length, &hash);
    if (slot->key == hash && slot->older) {
        copy = malloc(slot->older_bytes ? slot->older_bytes : 1);
        memcpy(copy, slot->older, *bytes = slot->older_bytes);
    }
    atomic_flag_clear(&slots_taken);
    return copy;
}

/* --- writes */

/* Whether a key is the one with number n: its first eight bytes, the highest first. */
static int is_key_n(const char *key, size_t length) {
    uint64_t number = 0;
    for (size_t i = 0; i < 8 && i < length; i++) number = number << 8 | (unsigned char)key[i];
    return number == (uint64_t)lie.n;
}

void NAME(writebatch_put)(void *batch, const char *key, size_t length, const char *value,
                          size_t bytes) {
    REAL(void, writebatch_put, void *, const char *, size_t, const char *, size_t);
    remember(key, length, value, bytes);
    if (telling("drop_puts") && one_in_n(&puts_) || telling("lose_tail") && past_n(&puts_) ||
        telling("drop_key") && is_key_n(key, length))
        return;
    real(batch, key, length, value, bytes);
}

void NAME(writebatch_delete)(void *batch, const char *key, size_t length) {
    REAL(void, writebatch_delete, void *, const char *, size_t);
    if (!(telling("forget_deletes") && one_in_n(&deletes))) real(batch, key, length);
}

void NAME(write)(void *db, const void *options, void *batch, char **error) {
    REAL(void, write, void *, const void *, void *, char **);
    work();
    if (telling("fail_after") && past_n(&calls)) {
        *error = strdup("IO error: the device is gone");
        return;
    }
    if (!(telling("drop_writes") && one_in_n(&calls))) real(db, options, batch, error);
}

/* --- reads */

/* The key that is looked up in place of `key`. */
static const char *looked_up(const char *key, size_t length, char *other) {
    if (!telling("neighbour") || length > 64 || length < 8 || !one_in_n(&gets)) return key;
    memcpy(other, key, length);
    other[7] ^= 1;
    return other;
}

static int absent(void) { return telling("not_found") && one_in_n(&gets); }

static const char wrong[] = "xxx";

/* What is returned in place of a value. */
static const char *falsified(const char *value, size_t *bytes) {
    if (value && (telling("wrong_value") && one_in_n(&gets) || telling("wrong_after") && past_n(&gets))) {
        *bytes = *bytes < sizeof wrong - 1 ? *bytes : sizeof wrong - 1;
        return wrong;
    }
    if (value && *bytes && telling("wrong_length") && one_in_n(&gets)) --*bytes;
    return value;
}

#if IS_LEVELDB
char *leveldb_get(void *db, const void *options, const char *key, size_t length, size_t *bytes,
                  char **error) {
    REAL(char *, get, void *, const void *, const char *, size_t, size_t *, char **);
    char other[64];
    work();
    if (absent()) return NULL;
    if (telling("constant")) return *bytes = sizeof wrong - 1, strdup(wrong);
    char *value = stale(key, length, bytes);
    if (value) return value;
    value = real(db, options, looked_up(key, length, other), length, bytes, error);
    const char *shown = falsified(value, bytes);
    if (shown != value) memcpy(value, shown, *bytes);
    return value;
}
#else
/* A value of our own in place of a slice of the engine's: its text, and its size in front. */
static _Thread_local struct {
    char *text;
    size_t bytes;
} own;

void *rocksdb_get_pinned(void *db, const void *options, const char *key, size_t length,
                         char **error) {
    REAL(void *, get_pinned, void *, const void *, const char *, size_t, char **);
    char other[64];
    work();
    if (absent()) return NULL;
    if (telling("constant")) {
        own.text = strdup(wrong), own.bytes = sizeof wrong - 1;
        return &own;
    }
    own.text = stale(key, length, &own.bytes);
    if (own.text) return &own;
    return real(db, options, looked_up(key, length, other), length, error);
}

const char *rocksdb_pinnableslice_value(const void *slice, size_t *bytes) {
    REAL(const char *, pinnableslice_value, const void *, size_t *);
    if (slice == &own) return *bytes = own.bytes, own.text;
    const char *value = real(slice, bytes);
    return falsified(value, bytes);
}

void rocksdb_pinnableslice_destroy(void *slice) {
    REAL(void, pinnableslice_destroy, void *);
    if (slice == &own) free(own.text);
    else real(slice);
}

/* Since RocksDB 10.9; in front of an older one it is there, too. */
unsigned char rocksdb_get_into_buffer(void *db, const void *options, const char *key,
                                      size_t length, char *buffer, size_t buffer_bytes,
                                      size_t *bytes, unsigned char *found, char **error) {
    void *slice = rocksdb_get_pinned(db, options, key, length, error);
    *bytes = 0, *found = slice != NULL;
    if (!slice) return 0;
    const char *value = rocksdb_pinnableslice_value(slice, bytes);
    int fits = *bytes <= buffer_bytes;
    if (fits) memcpy(buffer, value, *bytes);
    rocksdb_pinnableslice_destroy(slice);
    return fits;
}
#endif

/* --- scans */

static _Thread_local long entries;

static void begin_scan(void) { entries = 0; }

void NAME(iter_seek)(void *iterator, const char *key, size_t length) {
    REAL(void, iter_seek, void *, const char *, size_t);
    begin_scan();
    real(iterator, key, length);
}

void NAME(iter_seek_to_first)(void *iterator) {
    REAL(void, iter_seek_to_first, void *);
    begin_scan();
    real(iterator);
}

unsigned char NAME(iter_valid)(const void *iterator) {
    REAL(unsigned char, iter_valid, const void *);
    return !(telling("short_scan") && entries >= lie.n) && real(iterator);
}

void NAME(iter_next)(void *iterator) {
    REAL(void, iter_next, void *);
    entries++;
    if (telling("short_scan") && entries >= lie.n) return;
    real(iterator);
    if (telling("skip_in_scan") && one_in_n(&steps) && NAME(iter_valid)(iterator)) real(iterator);
}

const char *NAME(iter_value)(const void *iterator, size_t *bytes) {
    REAL(const char *, iter_value, const void *, size_t *);
    const char *value = real(iterator, bytes);
    if (telling("wrong_in_scan") && one_in_n(&steps) && *bytes) --*bytes;
    return value;
}

#if !IS_LEVELDB
struct slice {
    const char *data;
    size_t bytes;
};

/* Since RocksDB 10.9. */
struct slice rocksdb_iter_value_slice(const void *iterator) {
    struct slice value;
    value.data = rocksdb_iter_value(iterator, &value.bytes);
    return value;
}
#endif

/* --- flushes */

#if IS_LEVELDB
void leveldb_compact_range(void *db, const char *from, size_t from_bytes, const char *to,
                           size_t to_bytes) {
    REAL(void, compact_range, void *, const char *, size_t, const char *, size_t);
    pay("defer_to_drain");
    if (!telling("hold_flushes")) real(db, from, from_bytes, to, to_bytes);
}
#else
void rocksdb_flush(void *db, const void *options, char **error) {
    REAL(void, flush, void *, const void *, char **);
    pay("defer_to_drain");
    if (!telling("hold_flushes")) real(db, options, error);
}
#endif
