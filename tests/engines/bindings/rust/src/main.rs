//! Opens a database in a folder with exported options, and prints the size of its block cache.

#![deny(warnings)]

use rocksdb::DB;
use std::error::Error;
use std::path::Path;

mod tuned_options {
    include!(env!("TUNED_OPTIONS"));
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (mut options, families) = tuned_options::tuned_options(Path::new(&arguments[1]))?;
    options.create_if_missing(true);
    let database = DB::open_cf_descriptors(&options, &arguments[2], families)?;
    let capacity = database.property_value("rocksdb.block-cache-capacity")?;
    print!("{}", capacity.ok_or("no block cache")?);
    Ok(())
}
