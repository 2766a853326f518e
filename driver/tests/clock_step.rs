//! Somebody sets the wall clock while a run measures: nothing that is timed may notice, and what
//! engines stamped by that clock is right or not known.

mod conversation;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use conversation::{
    background_work, engines, in_time, intervals, last_phase, measure, verified, workload,
    Conversation, Target,
};
use lsmtune_driver::protocol::Message;
use serde_json::json;

/// The wall clock of a process that preloads it is set by `STEP_S` seconds as soon as there is a file
/// `STEP_WHEN`.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);
static int set;

int clock_gettime(clockid_t id, struct timespec *now) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (id != CLOCK_REALTIME) return status;
    if (!set) set = access(getenv("STEP_WHEN"), F_OK) == 0;
    if (set) now->tv_sec += atol(getenv("STEP_S"));
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    int status = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return status;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
"#;

fn shim(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("step.c"), folder.join("step.so"));
    std::fs::write(&source, SHIM).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status();
    assert!(compiled.unwrap().success());
    library
}

/// A run whose clock is set in the midst of its second phase.
fn run(target: &Target, step_s: i64) -> (Vec<Message>, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let step_when = folder.path().join("now");
    let environment = [
        ("LD_PRELOAD", shim(folder.path()).display().to_string()),
        ("STEP_S", step_s.to_string()),
        ("STEP_WHEN", step_when.display().to_string()),
    ];
    let first = measure("fillrandom", json!({"duration_s": 0.1}));
    let mut second = measure("overwrite", json!({"duration_s": 1.0}));
    second["threads"] = json!(2);
    let options = json!({"write_buffer_size": "131072"});
    let phases = workload(100_000, json!([first, second]));
    let begun = Instant::now();
    let more = json!({"options": options});
    let mut run = Conversation::start_in(target, phases, more, &environment);
    let lines = BufReader::new(run.child.stdout.take().unwrap()).lines();
    let mut messages = Vec::new();
    for line in lines {
        let message = serde_json::from_str(&line.unwrap()).unwrap();
        if matches!(&message, Message::Interval(step) if step.index == 1 && step.elapsed_s > 0.2) {
            std::fs::write(&step_when, "").unwrap();
        }
        messages.push(message);
    }
    run.child.wait().unwrap();
    (messages, begun.elapsed())
}

/// Checks the times of a run that `took` so long and whose clock was set while its last phase was
/// measured. Returns whether they are those of a machine that was not busy.
fn times_are_sound(messages: &[Message], took: Duration) -> bool {
    let phase = last_phase(messages);
    assert!(phase.elapsed_s > 0.99, "{}", phase.elapsed_s);
    assert!(phase.drain_s < took.as_secs_f64());
    let latency = &phase.latencies["put"];
    let in_operations_s = latency.statistics.latency_us_mean * latency.count as f64 / 1e6;
    assert!(
        in_operations_s < 2.02 * phase.elapsed_s,
        "{in_operations_s}"
    );
    assert_eq!(phase.stall_s, None, "stamped by a clock that was set");
    assert_eq!(verified(messages).1 + verified(messages).2, 0);
    let Some(Message::Finished { elapsed_s, .. }) = messages.last() else {
        panic!("{messages:?}");
    };
    assert!(*elapsed_s < took.as_secs_f64());
    // The clock is set by 5 s or more.
    let steps = intervals(messages);
    phase.elapsed_s < 4.0 && steps.iter().all(|step| step.interval_s < 4.0)
}

#[test]
fn a_clock_set_back_leaves_background_work_unknown() {
    for target in engines() {
        in_time(|| {
            let (messages, took) = run(&target, -3600);
            let phase = last_phase(&messages);
            if phase.finished_unix_us >= phase.started_unix_us {
                return false; // the phase was over before the clock was set
            }
            let work = background_work(&messages);
            assert_eq!((work.flushes, work.compactions), (None, None));
            assert_eq!(work.levels, None);
            times_are_sound(&messages, took)
        });
    }
}

#[test]
fn a_clock_set_forward_changes_nothing() {
    for target in engines() {
        in_time(|| {
            let (messages, took) = run(&target, 5);
            let phase = last_phase(&messages);
            let stamped_s = (phase.finished_unix_us - phase.started_unix_us) as f64 / 1e6;
            if stamped_s < phase.elapsed_s + 4.9 {
                return false; // the phase was over before the clock was set
            }
            let work = background_work(&messages);
            // The flushes before and after the step: 128 KiB are some thousand writes.
            let written = phase.operations / 3000;
            assert!(work.flushes.unwrap() > written, "{work:?} of {written}");
            times_are_sound(&messages, took)
        });
    }
}
