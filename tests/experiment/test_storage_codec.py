from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_parts import measurement

from lsmtune.model.codec import decode, encode
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.measurement import Latency, Measurement, Outcome, PhaseMeasurement
from lsmtune.model.verdict import Verdict, VerdictOutcome

finite = st.floats(allow_nan=False, allow_infinity=False)
st.register_type_strategy(float, finite)
option_values = st.one_of(st.booleans(), st.integers(), finite, st.text())


def there_and_back(record: object) -> object:
    return decode(type(record), json.loads(json.dumps(encode(record))))


@settings(max_examples=40)
@given(st.from_type(PhaseMeasurement))
def test_a_phase_comes_back_whole(phase: PhaseMeasurement) -> None:
    assert there_and_back(phase) == phase


@given(st.dictionaries(st.text(), option_values), st.text())
def test_a_config_keeps_the_types_of_its_values(options: dict[str, object], label: str) -> None:
    config = Config(options, label)  # type: ignore[arg-type]
    back = there_and_back(config)
    assert back == config
    assert isinstance(back, Config)
    assert [type(v) for v in back.options.values()] == [type(v) for v in config.options.values()]


def test_a_measurement_and_a_verdict_come_back_whole() -> None:
    assert there_and_back(measurement()) == measurement()
    verdict = Verdict(VerdictOutcome.BETTER, "m", "maximize", 0.95, 5, 0, 1.4, 1.3, 1.5, (1.0,))
    assert there_and_back(verdict) == verdict


def test_a_whole_number_is_read_as_the_float_that_the_record_wants() -> None:
    stored = encode(measurement().phases[0].latencies["put"])
    latency = decode(Latency, {**stored, "count": 3, "latency_us_mean": 1})
    assert isinstance(latency.count, int)
    assert isinstance(latency.latency_us_mean, float)


def test_a_record_from_before_a_field_was_added_takes_its_default() -> None:
    stored = encode(measurement())
    del stored["warnings"], stored["engine"]["build"]
    back = decode(Measurement, stored)
    assert back.warnings == ()
    assert back.outcome is Outcome.OK


@pytest.mark.parametrize("stored", [None, 3, "x", {"name": 3}, {"name": "x", "build": "odd"}])
def test_refuses_another_form(stored: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode(EngineIdentity, stored)


def test_refuses_to_store_what_json_cannot_hold() -> None:
    with pytest.raises(TypeError, match="set cannot be stored"):
        encode({"x": {1, 2}})
