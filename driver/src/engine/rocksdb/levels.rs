//! The shape of RocksDB's tree.

use super::RocksDatabase;
use crate::engine::{Database, LevelSize};

/// More levels than any configuration has. It ends the count, whatever the engine answers.
const LEVELS_MAX: usize = 1000;

impl RocksDatabase {
    /// See [`crate::engine::Database::levels`]. It reads the list of live tables, which the engine
    /// takes under one lock; separate properties could belong to different moments. Blob files are
    /// in no level.
    pub(super) fn tree(&self) -> Option<Vec<LevelSize>> {
        let mut levels = vec![LevelSize::default(); self.level_count()];
        // SAFETY: the database is open; the list is destroyed once and not used afterwards, and
        // every index is below its count.
        unsafe {
            let files = (self.api.livefiles)(self.db.get());
            if files.is_null() {
                return None;
            }
            for index in 0..(self.api.livefiles_count)(files) {
                let level = (self.api.livefiles_level)(files, index);
                if let Some(level) = usize::try_from(level).ok().and_then(|l| levels.get_mut(l)) {
                    level.files += 1;
                    level.bytes += (self.api.livefiles_size)(files, index) as u64;
                }
            }
            (self.api.livefiles_destroy)(files);
        }
        (!levels.is_empty()).then_some(levels)
    }

    /// The number of levels: the property of a level beyond the last one does not exist.
    fn level_count(&self) -> usize {
        let exists = |level: &usize| {
            let name = format!("rocksdb.num-files-at-level{level}");
            self.property(&name).is_some()
        };
        (0..LEVELS_MAX).take_while(exists).count()
    }
}
