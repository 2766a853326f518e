//! What every engine must do, whatever it is: one function per obligation, each of which takes a
//! [`Fixture`]. A new engine adds a fixture and one line of [`conformance`].

mod data;
mod database;
mod fixtures;
pub mod model;
mod options;
mod parts;

pub use data::*;
pub use database::*;
pub use fixtures::*;

/// Runs the whole suite over the engine of the fixture that an expression may give.
macro_rules! conformance {
    ($($name:ident => $fixture:expr;)*) => { $( mod $name {
        $crate::conformance!(@tests $fixture;
            a_value_that_was_put_is_found,
            the_last_write_wins,
            any_bytes_are_keys_and_values,
            values_of_any_size_are_read_whole_in_any_order,
            a_scan_is_in_order_of_bytes,
            a_seek_finds_the_first_entry_at_or_after_the_key,
            a_cursor_sees_the_database_as_it_was,
            a_batch_is_applied_in_order,
            a_batch_is_seen_whole_or_not_at_all,
            data_is_kept_when_reopened,
            only_a_database_that_is_there_is_reopened,
            a_durability_that_cannot_be_had_is_refused,
            an_unknown_option_is_named_with_the_nearest,
            a_bad_value_is_named_with_what_is_allowed,
            drain_leaves_nothing_pending_and_the_work_is_recorded,
            levels_are_those_of_the_tables,
            a_drain_ends_soon_after_it_is_cancelled,
            threads_write_and_read_at_once,
            a_database_is_open_once,
            a_directory_that_cannot_be_made_is_an_error,
            identity_and_properties_are_told,
            a_probe_finds_compressions_and_options,
        );
        #[test]
        fn random_operations_agree_with_the_model() {
            if let Some(fixture) = $fixture {
                $crate::suite::model::agrees(&fixture);
            }
        }
    } )* };
    (@tests $fixture:expr; $($case:ident,)*) => { $(
        #[test]
        fn $case() {
            if let Some(fixture) = $fixture {
                $crate::suite::$case(&fixture);
            }
        }
    )* };
}
pub(crate) use conformance;
