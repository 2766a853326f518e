//! `lsmtune-driver`: reads one request, performs it, writes messages. See `lsmtune_driver`.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use rustix::process::{getpid, kill_process, Signal};

use lsmtune_driver::protocol::{Control, ErrorReply, Message, Outcome, Request};
use lsmtune_driver::run::{execute, hello, Sink};

/// Performs one measured run of a key-value store and reports it as JSON lines.
///
/// The request is one line of JSON on standard input, which then stays open: a line
/// {"command":"cancel"} stops the run within 300 milliseconds, and the end of input kills the driver at once, since nobody
/// is left to report to.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Read the request from this file, and leave standard input alone.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Write messages to this file descriptor, so that what engines print does not mix with them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    output_fd: u32,
}

/// How long a cancelled run may take to end in good order: its threads stop within an operation,
/// but a stalled write, a flush or the closing of a database full of compactions can take any time.
const CANCEL_GRACE: Duration = Duration::from_millis(100);

struct Lines {
    output: BufWriter<File>,
    /// The last message was sent.
    ended: bool,
}

impl Lines {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        serde_json::to_writer(&mut self.output, message)?;
        self.output.write_all(b"\n")?;
        self.ended |= matches!(message, Message::Finished { .. } | Message::Failed { .. });
        self.output.flush()
    }
}

/// The lines of a run and of whoever has to end it.
#[derive(Clone)]
struct SharedLines(Arc<Mutex<Lines>>);

impl Sink for SharedLines {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.send(message)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match perform(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lsmtune-driver: {error}");
            ExitCode::from(2)
        }
    }
}

fn perform(arguments: &Arguments) -> io::Result<bool> {
    let mut lines = open_output(arguments.output_fd)?;
    lines.send(&hello())?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let text = match &arguments.request {
        Some(path) => read_file(path)?,
        None => read_line_and_watch(Arc::clone(&cancelled), lines.clone())?,
    };
    match serde_json::from_str::<Request>(&text) {
        Ok(request) => execute(&request, &cancelled, &mut lines),
        Err(error) => {
            let error = ErrorReply::new("request", format!("request: {error}"));
            let outcome = Outcome::Invalid;
            lines
                .send(&Message::Failed { outcome, error })
                .map(|()| false)
        }
    }
}

/// Opens an inherited descriptor by its name in `/proc`, which needs no unsafe code.
fn open_output(fd: u32) -> io::Result<SharedLines> {
    let path = format!("/proc/self/fd/{fd}");
    let output = File::options()
        .append(true)
        .open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("--output-fd {fd}: {error}")))?;
    Ok(SharedLines(Arc::new(Mutex::new(Lines {
        output: BufWriter::new(output),
        ended: false,
    }))))
}

fn read_file(path: &PathBuf) -> io::Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("--request {}: {error}", path.display()),
        )
    })
}

/// Reads the request line, then keeps listening: for a cancel, and for the end of the tuner.
fn read_line_and_watch(cancelled: Arc<AtomicBool>, lines: SharedLines) -> io::Result<String> {
    let mut request = String::new();
    let mut input = io::BufReader::new(io::stdin());
    input.read_line(&mut request)?;
    std::thread::spawn(move || listen(input, &cancelled, &lines));
    Ok(request)
}

fn listen(input: impl BufRead, cancelled: &AtomicBool, lines: &SharedLines) {
    for line in input.lines().map_while(Result::ok) {
        match serde_json::from_str::<Control>(&line) {
            Ok(Control::Cancel) => {
                cancelled.store(true, Ordering::Relaxed);
                std::thread::sleep(CANCEL_GRACE);
                end_cancelled(lines);
            }
            Err(error) => eprintln!("lsmtune-driver: ignored control line: {error}"),
        }
    }
    die();
}

/// Says what the run itself had no time to say, and ends it wherever it is: the database of a
/// cancelled run is thrown away, so that nothing is gained by closing it.
fn end_cancelled(lines: &SharedLines) {
    // Held until the end: nothing may follow a last message.
    let mut lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
    if !lines.ended {
        let outcome = Outcome::Cancelled;
        let error = ErrorReply::new("cancelled", "cancelled before its engine could be closed");
        // A tuner that no longer listens has no use for it.
        drop(lines.send(&Message::Failed { outcome, error }));
    }
    die();
}

/// A clean exit would wait for the engine's background threads, or crash in them.
fn die() {
    let _unreachable = kill_process(getpid(), Signal::KILL);
}
