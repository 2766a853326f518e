"""How db_bench's `mixgraph` is called for a mix of operations, and what it does otherwise.

Facts from `MixGraph` and what it uses in RocksDB's `tools/db_bench_tool.cc`, 7.8 to 11:

- one random number decides the key, the operation (modulo the sum of the shares in thousandths,
  each rounded up), the value's size and the scan's length;
- `key_dist_a` or `key_dist_b` of 0 means uniform keys, whatever `keyrange_dist_*` say;
- the k-th hottest key is a hash of k, over all keys or those of its range, and ranges are shuffled;
- values below 10 bytes become 10, above `mix_max_value_size` wrap around, as scans do;
- the sine needs `sine_mix_rate`; it limits reads and writes apart, in hundreds, from the first
  interval's end on, and not before the credit is spent with which both limits begin: a period of
  100 ms at a million a second. Each thread sets the limits up anew. An amplitude below 1 is a
  division by zero (`AddNoise`), and a build with assertions ends where a limit is below 1000 a
  second, as hundreds are asked for in periods of 100 ms (`GenericRateLimiter::Request`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Mix, Phase, SineRate, Workload
from lsmtune.programs.output import cannot
from lsmtune.programs.registry import ROCKSDB_NAME

RATIOS: Mapping[str, str] = {
    "get": "mix_get_ratio",
    "put": "mix_put_ratio",
    "scan": "mix_seek_ratio",
}
_LEAST_VALUE = 10
_MOST_VALUE = 1 << 20
_RANGE_MAX = 1000  # QueryDecider: shares in thousandths
_SHARE_TOLERANCE = 0.01  # a larger change of a share is said
_INTERVAL_MS_LEAST, _INTERVAL_MS_MOST = 100, 5000  # 5000 in the published commands
_INTERVALS = 100
_LIMIT_LEAST_OPS_S = 1000
_KEYS = "ranges with key_a and key_b, power, zipfian with theta below 1, uniform"


def mixgraph_flags(workload: Workload, phase: Phase, mix: Mix) -> dict[str, str]:
    """The flags, less the number of operations, that perform `mix` in `phase`.

    Raises InputError, naming db_bench and the phase's field, for what mixgraph cannot do.
    """
    strange = [name for name, _ in mix.operations if name not in RATIOS]
    if strange:
        field = f"{phase.name}: operations"
        raise cannot(ROCKSDB_NAME, field, found=strange[0], allowed=", ".join(RATIOS))
    if mix.first != 0 or mix.records != workload.num:
        stated = f"{mix.first} to {mix.first + mix.records - 1}"
        allowed = f"all keys, 0 to {workload.num - 1}"
        raise cannot(ROCKSDB_NAME, f"{phase.name}: records", found=stated, allowed=allowed)
    shares = phase.shares
    flags = {flag: repr(shares.get(name, 0.0)) for name, flag in RATIOS.items()}
    flags |= _key_flags(workload, phase, mix.keys)
    if "put" in shares:
        sizes = mix.value_sizes or Distribution.of("constant", size=workload.value_bytes)
        field = f"{phase.name}: value_sizes"
        pareto, (low, high) = _pareto(field, "value", sizes)
        raised = sizes.name == "pareto" and low > _LEAST_VALUE
        if low < _LEAST_VALUE or high > _MOST_VALUE or raised:
            allowed = f"low {_LEAST_VALUE}, high at most {_MOST_VALUE}"
            raise cannot(ROCKSDB_NAME, field, found=f"{low} to {high} bytes", allowed=allowed)
        flags |= {**pareto, "mix_max_value_size": str(high)}
    if "scan" in shares:
        lengths = mix.scan_lengths or Distribution.of("constant", size=1)
        field = f"{phase.name}: scan_lengths"
        pareto, (low, high) = _pareto(field, "iter", lengths)
        if lengths.name == "pareto" and low != 1:
            raise cannot(ROCKSDB_NAME, field, found=f"from {low}", allowed="low 1")
        # Lengths are taken modulo the maximum.
        most = high + 1 if lengths.name == "constant" else high
        flags |= {**pareto, "mix_max_scan_len": str(most)}
    return flags | _rate_flags(phase)


def mixgraph_differences(workload: Workload, phase: Phase, mix: Mix) -> Iterator[str]:
    """What mixgraph does otherwise than `mix` says, a line each; of a mix that it can perform."""
    lead = f"db_bench's mixgraph ({phase.name})"
    shares = phase.shares
    thousandths = {name: math.ceil(_RANGE_MAX * share) for name, share in shares.items()}
    whole = sum(thousandths.values())
    performed = {name: count / whole for name, count in thousandths.items()}
    if any(abs(performed[name] / share - 1) > _SHARE_TOLERANCE for name, share in shares.items()):
        listed = ", ".join(f"{name} {share:.3g}" for name, share in performed.items())
        yield f"{lead} rounds shares up to thousandths: {listed}"
    sizes = {"put": "value size", "scan": "scan length"}
    drawn = [sizes[name] for name in sizes if name in shares]
    if len(shares) > 1 and mix.operation_by_key != 1:
        drawn.insert(0, "operation")
    if drawn:
        what = ", ".join(drawn)
        yield f"{lead} decides key, {what} by one draw: they depend on each other"
    if "put" in shares and mix.value_sizes is not None and mix.value_sizes.name == "pareto":
        high = mix.value_sizes.get("high")
        yield f"{lead} wraps values above {high} bytes around and makes 10 of those below 10"
    if "scan" in shares and mix.scan_lengths is not None and mix.scan_lengths.name == "pareto":
        yield f"{lead} wraps scan lengths around at {mix.scan_lengths.get('high')}"
    yield from _key_differences(lead, workload, mix.keys)
    if isinstance(phase.rate, SineRate):
        after_s = _interval_ms(phase.rate) / 1000
        yield (
            f"{lead} limits the rate, after {after_s:g} s and 100000 reads or writes: an operation "
            "that waits is late without being slow"
        )
        least_ops_s = phase.rate.mean_ops_s - phase.rate.amplitude_ops_s
        writes = shares.get("put", 0.0)
        limit = min(share * least_ops_s for share in (writes, 1.0 - writes) if share > 0)
        if limit < _LIMIT_LEAST_OPS_S:
            yield (
                f"{lead} with assertions enabled aborts at a limit below {_LIMIT_LEAST_OPS_S} a "
                f"second; one goes down to {limit:.0f}"
            )


def _key_flags(workload: Workload, phase: Phase, keys: Distribution) -> dict[str, str]:
    given = {name: value for name, value in keys.parameters if isinstance(value, int | float)}
    theta = given.get("theta", 0.0)
    if keys.name == "uniform":
        return {}
    if keys.name == "power":
        return _power(given["a"], given["b"])
    if keys.name == "ranges" and given.get("key_a") and given.get("key_b"):
        ranges = {f"keyrange_dist_{name}": repr(float(given[name])) for name in "abcd"}
        number = {"keyrange_num": str(given["ranges"])}
        return {**number, **ranges, **_power(given["key_a"], given["key_b"])}
    if keys.name == "zipfian" and 0 < theta < 1:
        # The sum of k^-theta up to x is about x^(1 - theta) / (1 - theta).
        return _power(workload.num ** (theta - 1.0), 1.0 - theta)
    stated, why = keys.name, ""
    if keys.name == "zipfian":
        stated = f"zipfian with theta {theta:g}"
    elif keys.name == "ranges":
        stated, why = "ranges without key_a and key_b", "it would draw uniform keys"
    raise cannot(ROCKSDB_NAME, f"{phase.name}: keys", found=stated, why=why, allowed=_KEYS)


def _power(a: float, b: float) -> dict[str, str]:
    return {"key_dist_a": repr(float(a)), "key_dist_b": repr(float(b))}


def _key_differences(lead: str, workload: Workload, keys: Distribution) -> Iterator[str]:
    if keys.name == "uniform":
        return
    given: dict[str, Any] = dict(keys.parameters)
    ranges = int(given["ranges"]) if keys.name == "ranges" else 1
    if keys.name == "ranges":
        yield f"{lead} shuffles key ranges; hot keys have the same offsets in each"
        if workload.num % ranges:
            rest = workload.num % ranges
            yield f"{lead} never touches the last {rest} keys, which fill no range"
    if keys.name == "zipfian":
        first = workload.num ** (given["theta"] - 1.0)
        yield f"{lead} scatters hot keys over all others: they are no neighbours"
        yield f"{lead} has a power law for the zipfian: the hottest key has a share of {first:.2g}"
    grains = workload.num // ranges
    if given.get("key_grains" if keys.name == "ranges" else "grains") != grains:
        where = "in a range " if keys.name == "ranges" else ""
        yield f"{lead} has {grains} random numbers for keys {where}and never asks for some"


def _pareto(field: str, prefix: str, sizes: Distribution) -> tuple[dict[str, str], tuple[int, int]]:
    """The flags of a Pareto distribution and its bounds; a constant is one without a scale."""
    given: dict[str, Any] = dict(sizes.parameters)
    if sizes.name == "constant":
        low = high = given["size"]
        given = {"theta": low, "k": 1.0, "sigma": 0.0}
    elif sizes.name == "pareto":
        low, high = given["low"], given["high"]
    else:
        raise cannot(ROCKSDB_NAME, field, found=sizes.name, allowed="pareto, constant")
    flags = {f"{prefix}_{name}": repr(float(given[name])) for name in ("theta", "k", "sigma")}
    return flags, (int(low), int(high))


def _rate_flags(phase: Phase) -> dict[str, str]:
    field, wave = f"{phase.name}: rate", phase.rate
    if not isinstance(wave, SineRate):  # every other one is refused by `check_performable`
        return {}
    if phase.threads > 1:
        found = f"{phase.threads} threads"
        why = "each thread would set up the sine's limits anew under the others"
        raise cannot(ROCKSDB_NAME, field, found=found, why=why, allowed="1 thread")
    if wave.amplitude_ops_s < 1:
        why = "it divides by the amplitude in whole operations per second"
        raise cannot(ROCKSDB_NAME, field, found=wave.amplitude_ops_s, why=why, allowed="1 or more")
    return {
        "sine_mix_rate": "true",
        "sine_mix_rate_interval_milliseconds": str(_interval_ms(wave)),
        "sine_a": repr(float(wave.amplitude_ops_s)),
        "sine_b": repr(math.tau / wave.period_s),
        "sine_c": repr(math.tau * wave.offset_s / wave.period_s),
        "sine_d": repr(float(wave.mean_ops_s)),
    }


def _interval_ms(wave: SineRate) -> int:
    """A hundredth of the wave, and no longer than in the published commands."""
    part = round(wave.period_s * 1000 / _INTERVALS)
    return min(_INTERVAL_MS_MOST, max(_INTERVAL_MS_LEAST, part))
