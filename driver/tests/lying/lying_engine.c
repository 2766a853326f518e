/* An engine that lies: a library in front of RocksDB or LevelDB that answers some calls of the C
 * interface itself. Whoever loads it finds all other functions in the engine that it is linked to.
 *
 *   cc -shared -fPIC -DENGINE=leveldb lying_engine.c -o liar.so \
 *      -Wl,--no-as-needed /path/libleveldb.so -Wl,-rpath,/path
 *
 * The environment says which lie it tells, and how often:
 *
 *   LSMTUNE_LIE=drop_puts:50   one put in 50 is not performed
 *   LSMTUNE_LIE_FROM, _UNTIL   only from and until this opening of the database, counted from 1
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(function) JOIN(ENGINE, function)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The engine's own function of that name. */
#define REAL(type, function, ...)                                                  \
    static type (*real)(__VA_ARGS__);                                              \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, TEXT(ENGINE) "_" #function)

static struct {
    char name[32];
    long n;
    long from, until;
} lie;
static atomic_long opened, puts_, deletes, gets, steps, calls;

__attribute__((constructor)) static void read_lie(void) {
    const char *text = getenv("LSMTUNE_LIE");
    lie.n = 1;
    if (text) sscanf(text, "%31[^:]:%ld", lie.name, &lie.n);
    const char *from = getenv("LSMTUNE_LIE_FROM"), *until = getenv("LSMTUNE_LIE_UNTIL");
    lie.from = from ? atol(from) : 0;
    lie.until = until ? atol(until) : 1L << 40;
}

static int telling(const char *name) {
    long now = atomic_load(&opened);
    return now >= lie.from && now <= lie.until && strcmp(lie.name, name) == 0;
}

static int one_in_n(atomic_long *counter) {
    return atomic_fetch_add(counter, 1) % lie.n == lie.n - 1;
}

/* After the n-th call of any kind. */
static int past_n(void) { return atomic_fetch_add(&calls, 1) >= lie.n; }

static void slow(void) {
    if (telling("slow")) usleep((useconds_t)lie.n);
}

void *NAME(open)(void *options, const char *path, char **error) {
    REAL(void *, open, void *, const char *, char **);
    atomic_fetch_add(&opened, 1);
    return real(options, path, error);
}

/* --- writes */

static int dropped(const char *key, size_t length) {
    (void)key, (void)length;
    return telling("drop_puts") && one_in_n(&puts_) ||
           telling("lose_tail") && atomic_fetch_add(&puts_, 1) >= lie.n;
}

void NAME(writebatch_put)(void *batch, const char *key, size_t length, const char *value,
                          size_t bytes) {
    REAL(void, writebatch_put, void *, const char *, size_t, const char *, size_t);
    if (!dropped(key, length)) real(batch, key, length, value, bytes);
}

void NAME(writebatch_delete)(void *batch, const char *key, size_t length) {
    REAL(void, writebatch_delete, void *, const char *, size_t);
    if (!(telling("forget_deletes") && one_in_n(&deletes))) real(batch, key, length);
}

void NAME(write)(void *db, const void *options, void *batch, char **error) {
    REAL(void, write, void *, const void *, void *, char **);
    slow();
    if (telling("fail_after") && past_n()) {
        *error = strdup("IO error: the device is gone");
        return;
    }
    real(db, options, batch, error);
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

/* What is returned in place of a value. */
static const char *falsified(const char *value, size_t *bytes) {
    static const char wrong[] = "xxx";
    if (value && telling("wrong_value") && one_in_n(&gets)) {
        *bytes = sizeof wrong - 1;
        return wrong;
    }
    if (value && *bytes && telling("wrong_length") && one_in_n(&gets)) --*bytes;
    return value;
}

#define ENGINE_IS_leveldb 1
#define ENGINE_IS_rocksdb 2
#if JOIN(ENGINE_IS, ENGINE) == ENGINE_IS_leveldb
char *leveldb_get(void *db, const void *options, const char *key, size_t length, size_t *bytes,
                  char **error) {
    REAL(char *, get, void *, const void *, const char *, size_t, size_t *, char **);
    char other[64];
    slow();
    if (absent()) return NULL;
    char *value = real(db, options, looked_up(key, length, other), length, bytes, error);
    const char *shown = falsified(value, bytes);
    if (shown != value) memcpy(value, shown, *bytes);
    return value;
}
#else
void *rocksdb_get_pinned(void *db, const void *options, const char *key, size_t length,
                         char **error) {
    REAL(void *, get_pinned, void *, const void *, const char *, size_t, char **);
    char other[64];
    slow();
    if (absent()) return NULL;
    return real(db, options, looked_up(key, length, other), length, error);
}

const char *rocksdb_pinnableslice_value(const void *slice, size_t *bytes) {
    REAL(const char *, pinnableslice_value, const void *, size_t *);
    const char *value = real(slice, bytes);
    return falsified(value, bytes);
}
#endif

/* --- scans */

void NAME(iter_next)(void *iterator) {
    REAL(void, iter_next, void *);
    static unsigned char (*valid)(const void *);
    if (!valid) valid = (unsigned char (*)(const void *))dlsym(RTLD_NEXT, TEXT(ENGINE) "_iter_valid");
    real(iterator);
    if (telling("skip_in_scan") && one_in_n(&steps) && valid(iterator)) real(iterator);
}

const char *NAME(iter_value)(const void *iterator, size_t *bytes) {
    REAL(const char *, iter_value, const void *, size_t *);
    const char *value = real(iterator, bytes);
    if (telling("wrong_in_scan") && one_in_n(&steps) && *bytes) --*bytes;
    return value;
}

/* --- flushes */

#if JOIN(ENGINE_IS, ENGINE) == ENGINE_IS_leveldb
void leveldb_compact_range(void *db, const char *from, size_t from_bytes, const char *to,
                           size_t to_bytes) {
    REAL(void, compact_range, void *, const char *, size_t, const char *, size_t);
    if (!telling("hold_flushes")) real(db, from, from_bytes, to, to_bytes);
}
#else
void rocksdb_flush(void *db, const void *options, char **error) {
    REAL(void, flush, void *, const void *, char **);
    if (!telling("hold_flushes")) real(db, options, error);
}
#endif
