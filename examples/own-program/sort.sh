#!/bin/sh
# Usage: sort.sh LINES [OPTION OF SORT]...
# Sorts that many random lines, with THREADS from the environment, and reports the seconds.
set -eu

lines=$1
shift
cd "$LSMTUNE_DIRECTORY"
awk -v seed="$LSMTUNE_SEED" -v lines="$lines" \
  'BEGIN { srand(seed); for (i = 0; i < lines; i++) printf "%.9f\n", rand() }' >unsorted

started=$(date +%s.%N)
sort --temporary-directory=. --parallel="$THREADS" "$@" unsorted >sorted
ended=$(date +%s.%N)

# Appended, as a line of JSON: that is all that a result is.
awk -v a="$started" -v b="$ended" 'BEGIN { printf "{\"elapsed_s\": %.6f}\n", b - a }' >>"$LSMTUNE_RESULTS"
