//! `lsmtune-driver`: reads one request, performs it, writes messages. See `lsmtune_driver`.

mod tuner;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use lsmtune_driver::protocol::{Message, Outcome, Request};
use lsmtune_driver::run::{execute, hello, Sink};
use tuner::{Input, Tuner};

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
    let mut tuner = Tuner::speaking_to(arguments.output_fd)?;
    tuner.send(&hello())?;
    let (text, input) = match &arguments.request {
        Some(path) => (read_file(path)?, None),
        None => {
            let mut input = Input::stdin()?;
            (input.first_line()?, Some(input))
        }
    };
    match Request::parse(&text) {
        Ok(request) => {
            if let Some(input) = input {
                tuner.listen(input);
            }
            let mut sink = tuner.clone();
            execute(&request, tuner.cancelled(), &mut sink)
        }
        Err(error) => {
            let (outcome, error) = (Outcome::Invalid, *error);
            tuner.send(&Message::Failed { outcome, error })?;
            Ok(false)
        }
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("--request {}: {error}", path.display()),
        )
    })
}
