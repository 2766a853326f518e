//! `lsmtune-driver`: reads one request, performs it, writes messages. See `lsmtune_driver`.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use clap::Parser;
use rustix::process::{getpid, kill_process, Signal};

use lsmtune_driver::protocol::{Control, ErrorReply, Message, Outcome, Request};
use lsmtune_driver::run::{execute, hello, Sink};

/// Performs one measured run of a key-value store and reports it as JSON lines.
///
/// The request is one line of JSON on standard input, which then stays open: a line
/// {"command":"cancel"} stops the run, and the end of input kills the driver at once, since nobody
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

struct Lines {
    output: BufWriter<File>,
}

impl Sink for Lines {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        serde_json::to_writer(&mut self.output, message)?;
        self.output.write_all(b"\n")?;
        self.output.flush()
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
        None => read_line_and_watch(Arc::clone(&cancelled))?,
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
fn open_output(fd: u32) -> io::Result<Lines> {
    let path = format!("/proc/self/fd/{fd}");
    let output = File::options()
        .append(true)
        .open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("--output-fd {fd}: {error}")))?;
    Ok(Lines {
        output: BufWriter::new(output),
    })
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
fn read_line_and_watch(cancelled: Arc<AtomicBool>) -> io::Result<String> {
    let mut request = String::new();
    let mut input = io::BufReader::new(io::stdin());
    input.read_line(&mut request)?;
    std::thread::spawn(move || listen(input, &cancelled));
    Ok(request)
}

fn listen(input: impl BufRead, cancelled: &AtomicBool) {
    for line in input.lines().map_while(Result::ok) {
        match serde_json::from_str::<Control>(&line) {
            Ok(Control::Cancel) => cancelled.store(true, Ordering::Relaxed),
            Err(error) => eprintln!("lsmtune-driver: ignored control line: {error}"),
        }
    }
    // A clean exit would wait for the engine's background threads, or crash in them.
    let _unreachable = kill_process(getpid(), Signal::KILL);
}
