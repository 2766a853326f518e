/* LevelDB with faults: linked to the real library, in front of three of its functions.

   The value of write_buffer_size says which fault a database has, so that one study can have a
   trial with a fault and trials without. Every other function is the real library's. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CRASH_ON_OPEN = 1048577,
    CRASH_IN_MID_RUN = 1048578,
    HANG = 1048579,
    EAT_MEMORY = 1048580,
    FILL_DISK = 1048581,
};

static size_t fault;
static void *volatile nowhere;
static char place[4096];

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "faulty_leveldb: no %s behind this library\n", name);
        abort();
    }
    return found;
}

void leveldb_options_set_write_buffer_size(void *options, size_t bytes) {
    void (*set)(void *, size_t) = real("leveldb_options_set_write_buffer_size");
    fault = bytes;
    set(options, bytes);
}

void *leveldb_open(const void *options, const char *name, char **error) {
    void *(*open_database)(const void *, const char *, char **) = real("leveldb_open");
    if (fault == CRASH_ON_OPEN) abort();
    snprintf(place, sizeof place, "%s/ballast", name);
    return open_database(options, name, error);
}

static void eat_memory(void) {
    for (;;) {
        char *piece = malloc(1 << 22);
        if (piece != NULL) memset(piece, 1, 1 << 22);
        usleep(1000);
    }
}

static void fill_disk(void) {
    static char block[1 << 16];
    int file = open(place, O_CREAT | O_WRONLY | O_APPEND, 0644);
    memset(block, 1, sizeof block);
    while (file >= 0 && write(file, block, sizeof block) > 0) {
    }
    if (file >= 0) close(file);
}

void leveldb_write(void *database, const void *options, void *batch, char **error) {
    static void (*write_batch)(void *, const void *, void *, char **);
    static long writes;
    if (write_batch == NULL) write_batch = real("leveldb_write");
    if (++writes == 1000) {
        if (fault == CRASH_IN_MID_RUN) *(volatile int *)nowhere = 1;
        if (fault == HANG) for (;;) pause();
        if (fault == EAT_MEMORY) eat_memory();
        if (fault == FILL_DISK) fill_disk();
    }
    write_batch(database, options, batch, error);
}
