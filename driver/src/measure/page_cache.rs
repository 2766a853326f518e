//! The kernel's page cache: drops a database from it, and measures what it still holds.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;

use rustix::fs::{fadvise, Advice};

/// Writes out the files below `directory` and asks the kernel to drop their pages.
///
/// Pages that a process has mapped stay, and so does everything on a file system in memory.
/// [`cached_share`] says how much is left.
pub fn drop_cached(directory: &Path) -> io::Result<()> {
    each_file(directory, &mut |file, _| {
        // Dirty pages cannot be dropped.
        file.sync_data()?;
        Ok(fadvise(file, 0, None, Advice::DontNeed)?)
    })
}

/// Reads every file below `directory` once: the kernel holds as much of them as it has room for.
pub fn read_in(directory: &Path) -> io::Result<()> {
    let mut part = vec![0; 1 << 20];
    each_file(directory, &mut |mut file, _| {
        while file.read(&mut part)? > 0 {}
        Ok(())
    })
}

/// Share of the pages of all files below `directory` that are in memory; `None` if there are no
/// pages.
///
/// `mincore(2)` looks at every page and reads none of them in. (A read with `RWF_NOWAIT` would: the
/// kernel begins to read ahead before it says that it would have to wait.)
pub fn cached_share(directory: &Path) -> io::Result<Option<f64>> {
    let (mut cached, mut all) = (0_usize, 0_usize);
    each_file(directory, &mut |file, bytes| {
        let pages = cached_pages(file, bytes)?;
        all += pages.len();
        // Only the last bit of each byte has a meaning.
        cached += pages.iter().filter(|&page| page & 1 == 1).count();
        Ok(())
    })?;
    Ok((all > 0).then(|| cached as f64 / all as f64))
}

/// Opens every file below `directory` in turn, with its length, but no `LOCK`. Files that vanish
/// meanwhile are skipped, because engines delete obsolete ones in the background.
fn each_file(
    directory: &Path,
    each: &mut dyn FnMut(&File, usize) -> io::Result<()>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // To close any descriptor of it ends the lock that an engine of this process has: fcntl(2).
        if path.file_name().is_some_and(|name| name == "LOCK") {
            continue;
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            each_file(&path, each)?;
        } else if metadata.is_file() {
            let bytes = usize::try_from(metadata.len()).map_err(io::Error::other)?;
            each(&file, bytes)?;
        }
    }
    Ok(())
}

/// One byte for each page of `file`.
fn cached_pages(file: &File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut pages = vec![0; bytes.div_ceil(rustix::param::page_size())];
    if pages.is_empty() {
        return Ok(pages);
    }
    // SAFETY: the mapping is new, is never read through, and is gone when this block ends. The
    // vector has a byte for each page of the mapping.
    let failed = unsafe {
        let (protection, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        let mapped = libc::mmap(null_mut(), bytes, protection, kind, file.as_raw_fd(), 0);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let status = libc::mincore(mapped, bytes, pages.as_mut_ptr());
        let failed = (status != 0).then(io::Error::last_os_error);
        libc::munmap(mapped, bytes);
        failed
    };
    failed.map_or(Ok(pages), Err)
}
