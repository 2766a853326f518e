//! The driver's side of its conversation with the tuner: the messages that it sends, the commands
//! that it receives after the request, and how it stops between slices.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getpid, kill_process, Signal};

use lsmtune_driver::protocol::{Control, ErrorReply, Message, Outcome};
use lsmtune_driver::run::Sink;

/// How long a cancelled run may take to end in good order. Its threads stop within an operation,
/// but a stalled write, a flush, or closing a database full of compactions can take any time.
const CANCEL_GRACE: Duration = Duration::from_millis(100);
/// How long to leave an unread line to the thread that reads.
const READING: Duration = Duration::from_millis(1);

/// Standard input by lines. Its buffer never hides unread input from [`waits`].
#[derive(Debug)]
pub struct Input {
    file: File,
    bytes: Vec<u8>,
    ended: bool,
}

impl Input {
    /// Nothing may have been read from standard input before.
    pub fn stdin() -> io::Result<Self> {
        Ok(Input {
            file: File::from(io::stdin().as_fd().try_clone_to_owned()?),
            bytes: Vec::new(),
            ended: false,
        })
    }

    /// The next line, without its end, if it has arrived.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Reads once; waits if there is nothing to read.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        let count = loop {
            match self.file.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.ended = count == 0;
        self.bytes.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    /// The first line, or everything if the input ends before the line does.
    pub fn first_line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(line) = self.line() {
                return Ok(line);
            }
            if self.ended {
                return Ok(std::mem::take(&mut self.bytes));
            }
            self.read()?;
        }
    }
}

/// Whether `file` has something to read or has ended; waits for either if `wait`.
fn waits(file: impl AsFd, wait: bool) -> io::Result<bool> {
    let mut files = [PollFd::new(&file, PollFlags::IN)];
    let at_once = Timespec::default();
    match poll(&mut files, (!wait).then_some(&at_once)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug)]
struct Output {
    file: File,
    /// The last message was sent.
    ended: bool,
}

impl Output {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.ended |= matches!(message, Message::Finished { .. } | Message::Failed { .. });
        self.file.write_all(&line)
    }
}

/// The tuner, shared by the run and the thread that listens beside it.
#[derive(Debug, Clone)]
pub struct Tuner {
    output: Arc<Mutex<Output>>,
    cancelled: Arc<AtomicBool>,
    /// Held while a line is read and obeyed, and while the process stops, so that the process never
    /// stops between reading a line and obeying it.
    hearing: Arc<Mutex<()>>,
    listening: bool,
}

impl Tuner {
    /// Writes to an inherited descriptor. It is opened by its name in `/proc`, which needs no
    /// unsafe code.
    pub fn speaking_to(fd: u32) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{fd}");
        let file = File::options()
            .append(true)
            .open(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("--output-fd {fd}: {error}")))?;
        let output = Output { file, ended: false };
        Ok(Tuner {
            output: Arc::new(Mutex::new(output)),
            cancelled: Arc::default(),
            hearing: Arc::default(),
            listening: false,
        })
    }

    /// Set when the tuner cancels the run.
    pub fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }

    /// Listens to the rest of `input` beside the run, for a cancel. At the end of the input it
    /// kills the process, since nobody is left to report to.
    pub fn listen(&mut self, mut input: Input) {
        self.obey(&mut input);
        self.listening = true;
        let tuner = self.clone();
        std::thread::spawn(move || {
            if let Err(error) = tuner.hear(input) {
                eprintln!("lsmtune-driver: standard input: {error}");
            }
            die();
        });
    }

    fn hear(&self, mut input: Input) -> io::Result<()> {
        while !input.ended {
            if self.cancelled.load(Ordering::Relaxed) {
                std::thread::sleep(CANCEL_GRACE);
                self.end_cancelled();
            }
            if waits(&input.file, true)? {
                let _hearing = lock(&self.hearing);
                input.read()?;
                self.obey(&mut input);
            }
        }
        Ok(())
    }

    fn obey(&self, input: &mut Input) {
        while let Some(line) = input.line() {
            match serde_json::from_slice::<Control>(&line) {
                Ok(Control::Cancel) => self.cancelled.store(true, Ordering::Relaxed),
                Err(error) => eprintln!("lsmtune-driver: ignored control line: {error}"),
            }
        }
    }

    /// Sends the last message on behalf of the run, and ends the process at once. The database of a
    /// cancelled run is thrown away, so closing it would gain nothing.
    fn end_cancelled(&self) {
        // Held until the process ends: nothing may follow a last message.
        let mut output = lock(&self.output);
        if !output.ended {
            let outcome = Outcome::Cancelled;
            let error = ErrorReply::new("cancelled", "cancelled before its engine could be closed");
            // If the tuner no longer listens, the error does not matter.
            drop(output.send(&Message::Failed { outcome, error }));
        }
        die();
    }
}

impl Sink for Tuner {
    fn send(&mut self, message: &Message) -> io::Result<()> {
        lock(&self.output).send(message)
    }

    fn stop_process(&mut self) -> io::Result<()> {
        loop {
            let hearing = lock(&self.hearing);
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !self.listening || !waits(io::stdin(), false)? {
                // This call returns after the process has been continued.
                kill_process(getpid(), Signal::STOP)?;
                return Ok(());
            }
            drop(hearing);
            std::thread::sleep(READING);
        }
    }
}

/// A clean exit would wait for the engine's background threads, or crash in them.
fn die() {
    let _unreachable = kill_process(getpid(), Signal::KILL);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
