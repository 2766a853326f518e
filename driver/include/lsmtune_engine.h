/* lsmtune_engine.h: what a shared library exports, so that lsmtune measures and tunes its engine.
 *
 * `lsmtune bench --engine NAME --library PATH` loads the library at run time and measures it like
 * RocksDB and LevelDB: nothing of lsmtune is compiled against it. docs/plugins.md has an example.
 *
 * Version 1. A library of another version is refused. Nothing here ever changes within a version.
 *
 * Texts are NUL-terminated UTF-8. Keys are one byte or more, values none or more, and all bytes can
 * be in them. Every function that is given `char **error` sets it, where it fails, to a text of one
 * line that it allocated, and leaves it alone where it succeeds; lsmtune passes what it is given to
 * lsmtune_engine_free. An error of the operating system ends with its own words ("No space left on device"), because by
 * these lsmtune knows a full or failing disk.
 *
 * One process opens one database or several, and many threads call all functions of one at once;
 * a cursor is used by one thread at a time. lsmtune closes every cursor before its database.
 */
#ifndef LSMTUNE_ENGINE_H
#define LSMTUNE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LSMTUNE_ENGINE_INTERFACE 1

/* --- What the library is: data, which lsmtune also reads from the file, without running it. */

/* LSMTUNE_ENGINE_INTERFACE. */
extern const uint32_t lsmtune_engine_interface;

/* The name that --engine takes: lower-case letters, digits, `-` and `_`. */
extern const char lsmtune_engine_name[];

/* The engine's own version; begins with a digit. */
extern const char lsmtune_engine_release[];

/* LSMTUNE_SYNC | LSMTUNE_WAL | LSMTUNE_NO_LOG: which of them lsmtune_engine_open takes. */
extern const uint32_t lsmtune_engine_durabilities;
#define LSMTUNE_SYNC 1u   /* a write is on the device when it returns */
#define LSMTUNE_WAL 2u    /* a write is in the log; the operating system decides when to sync */
#define LSMTUNE_NO_LOG 4u /* no log: what is in memory is lost with the process */

/* The options: a JSON object of name to
 *   type       "int", "float", "bool" or "enum"
 *   default    as the engine has it
 *   least, most   what the engine takes of an int or float; without them, anything
 *   low, high  the range worth searching of an int or float, log: true on a log scale, step
 *   choices    the values of an enum
 *   unit       "bytes", "s", "ms", "us", "bits" or "%"
 *   effect     "runtime" where files on disk do not depend on it; else "layout", the default
 *   trade_off  what it costs and gains: a sentence of 20 characters or more
 * lsmtune checks names and values by it before lsmtune_engine_open is called. Values of bools are
 * "true" and "false". A tuner's space follows from it.
 */
extern const char lsmtune_engine_options[];

/* --- Databases. */

typedef struct lsmtune_database lsmtune_database;
typedef struct lsmtune_cursor lsmtune_cursor;

typedef struct {
  const char *data;
  size_t size;
} lsmtune_slice;

/* One entry of a batch. A `value.data` of NULL removes the key. */
typedef struct {
  lsmtune_slice key;
  lsmtune_slice value;
} lsmtune_entry;

/* Opens the database of the folder `path`; `count` options are set, others have their defaults.
 * With `create` it makes the folder (its parent exists) and the database where there is none;
 * without, it fails where there is none, and leaves nothing behind. Fails where the database is
 * open already. Errors name `path`. Returns NULL where it fails. */
lsmtune_database *lsmtune_engine_open(const char *path, const char *const *names,
                                      const char *const *values, size_t count,
                                      uint32_t durability, int create, char **error);

/* Closes it, and ends its threads. Afterwards it can be opened again, with all that was written. */
void lsmtune_engine_close(lsmtune_database *database);

void lsmtune_engine_put(lsmtune_database *database, lsmtune_slice key, lsmtune_slice value,
                        char **error);

/* To remove an absent key is no error. */
void lsmtune_engine_delete(lsmtune_database *database, lsmtune_slice key, char **error);

/* Applies the entries in their order, all or none; a cursor sees all of them or none. */
void lsmtune_engine_write(lsmtune_database *database, const lsmtune_entry *entries, size_t count,
                          char **error);

/* Passes the value of `key` to `read`, once, and returns 1; returns 0 where there is none. The value
 * has to stay where it is only until `read` returns. */
int lsmtune_engine_get(lsmtune_database *database, lsmtune_slice key,
                       void (*read)(void *context, lsmtune_slice value), void *context,
                       char **error);

/* A cursor over the database as it is now, in the order of bytes. NULL where it fails. */
lsmtune_cursor *lsmtune_engine_cursor(lsmtune_database *database, char **error);
void lsmtune_engine_cursor_close(lsmtune_cursor *cursor);

/* Moves to the first entry at or after `from` (an empty one: to the first of all), or to the next
 * entry. Returns 1 and says key and value, which stay until the cursor moves or is closed; 0 at
 * the end. */
int lsmtune_engine_cursor_seek(lsmtune_cursor *cursor, lsmtune_slice from, lsmtune_slice *key,
                               lsmtune_slice *value, char **error);
int lsmtune_engine_cursor_next(lsmtune_cursor *cursor, lsmtune_slice *key, lsmtune_slice *value,
                               char **error);

/* Writes out what is in memory, and returns when no flush or compaction is pending or running. It
 * asks `cancelled(context)` at least every 50 ms, and returns where that is not 0. Its time is
 * charged to the writes. An engine without work in the background returns at once. */
void lsmtune_engine_drain(lsmtune_database *database, int (*cancelled)(void *context),
                          void *context, char **error);

/* Figures as lines of key=value. lsmtune knows `stall_us`, `pending_compaction_bytes`, and for every
 * level from 0 `level.N.files` and `level.N.bytes`; it passes over others. */
char *lsmtune_engine_stats(lsmtune_database *database);

/* Frees an error and what lsmtune_engine_stats returned. */
void lsmtune_engine_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
