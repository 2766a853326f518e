//! What messages say about a latency histogram. [`LatencyStatistics`] is the only list of its
//! statistics: add a line there to add a statistic, and the schema follows.

use base64::Engine as _;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Defines [`LatencyStatistics`]: each line is a field and the function that gives its nanoseconds.
macro_rules! latency_statistics {
    ($($(#[$doc:meta])+ $field:ident = $nanoseconds:expr;)+) => {
        /// Statistics of latencies, in microseconds. In `T` they are known or may be unknown.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct LatencyStatistics<T> {
            $($(#[$doc])+ pub $field: T,)+
        }

        impl LatencyStatistics<f64> {
            fn of(histogram_ns: &Histogram<u64>) -> Self {
                LatencyStatistics {
                    $($field: $nanoseconds(histogram_ns) / 1000.0,)+
                }
            }
        }

        impl LatencyStatistics<Option<f64>> {
            /// The statistics of `reply`; unknown where there were no operations.
            pub fn known(reply: Option<&LatencyReply>) -> Self {
                LatencyStatistics {
                    $($field: reply.map(|reply| reply.statistics.$field),)+
                }
            }
        }
    };
}

latency_statistics! {
    /// Mean.
    latency_us_mean = Histogram::mean;
    /// Median.
    latency_us_p50 = quantile(0.5);
    /// 95th percentile.
    latency_us_p95 = quantile(0.95);
    /// 99th percentile.
    latency_us_p99 = quantile(0.99);
    /// 99.9th percentile.
    latency_us_p999 = quantile(0.999);
    /// Largest.
    latency_us_max = |histogram_ns: &Histogram<u64>| histogram_ns.max() as f64;
}

fn quantile(share: f64) -> impl Fn(&Histogram<u64>) -> f64 {
    move |histogram_ns| histogram_ns.value_at_quantile(share) as f64
}

/// Latency of one operation type. Times in microseconds; the histogram counts nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))] // serde cannot: the statistics are fields too
pub struct LatencyReply {
    /// Operations recorded.
    pub count: u64,
    /// Mean, percentiles, largest.
    #[serde(flatten)]
    pub statistics: LatencyStatistics<f64>,
    /// The whole histogram, HDR V2 compressed, in base64.
    pub histogram_ns_base64: String,
}

impl LatencyReply {
    /// Of a histogram of nanoseconds.
    pub fn of(histogram_ns: &Histogram<u64>) -> Self {
        LatencyReply {
            count: histogram_ns.len(),
            statistics: LatencyStatistics::of(histogram_ns),
            histogram_ns_base64: encoded(histogram_ns),
        }
    }
}

fn encoded(histogram_ns: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram_ns, &mut bytes)
        .expect("writing to memory cannot fail");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
