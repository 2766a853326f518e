"""Guards: what a gain may cost, in the search and in a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fake_runner import ENGINE

from lsmtune.errors import InputError
from lsmtune.model.measurement import Latency, Measurement, Outcome, ReplayReport
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.model.workload import Companion, Mix, Phase, PhaseKind, Replay, Workload
from lsmtune.proof.guards import (
    Circumstances,
    baseline_observations,
    check_observed,
    default_guards,
    judged_by_guards,
    make_guards,
    violations,
)
from lsmtune.space.constraint import Constraint, make_constraint
from made_up import made_up_phase

FILL = Workload("fill", (Phase("fillrandom", PhaseKind.MEASURE, "fillrandom"),), num=1000)
MIX = Mix((("get", 1.0), ("update", 1.0), ("delete_oldest", 1.0)))
MIXED = Workload("mixed", (Phase("run", PhaseKind.MEASURE, None, mix=MIX),), num=1000)
PUT_DELETE = Workload(
    "put-delete",
    (Phase("put", PhaseKind.MEASURE, "put"), Phase("delete", PhaseKind.MEASURE, "delete")),
    num=1000,
)
WRITES = ("", "delete.")
NOWHERE = Circumstances({}, [{}], "study.yaml", "rocksdb")
VERDICT = Verdict(VerdictOutcome.BETTER, "throughput_ops_s", "maximize", 0.95, 6, ratio=1.5)


def run(
    latencies: Mapping[str, float] | None = None, operations: int = 100, **metrics: float
) -> Measurement:
    """A run of one phase; `latencies` are p99 by operation type, of so many `operations` each."""
    phase = made_up_phase(
        "run",
        latencies={
            kind: Latency(operations, us, us, latency_us_p99=us)
            for kind, us in (latencies or {}).items()
        },
        **metrics,
    )
    return Measurement(Outcome.OK, ENGINE, {}, "run", 1, 0.0, 1.0, phases=(phase,))


def guard(text: str, workload: Workload = FILL) -> Constraint:
    return make_guards([text], "rocksdb", [workload], "--guard")[0]


def test_the_default_guards_are_amplification_and_the_p99_of_every_operation_type() -> None:
    assert default_guards([FILL]) == (
        "write_amplification <= 1.5 * baseline",
        "space_amplification <= 1.25 * baseline",
        "latency_us_p99 <= 1.25 * baseline",
    )
    # Both deletes are filed under one type.
    assert default_guards([MIXED])[2:] == (
        "delete.latency_us_p99 <= 1.25 * baseline",
        "get.latency_us_p99 <= 1.25 * baseline",
        "update.latency_us_p99 <= 1.25 * baseline",
    )
    for workload in (FILL, MIXED):
        for text in default_guards([workload]):
            assert guard(text, workload).text == text


def test_a_phase_without_a_mix_is_guarded_beside_one_with_a_mix() -> None:
    """In a study of fillrandom and YCSB nothing limited how slow the puts of fillrandom became."""
    both = [FILL, MIXED]
    texts = default_guards(both)
    assert texts[-1] == "fillrandom.latency_us_p99 <= 1.25 * baseline"
    guards = make_guards(texts, "rocksdb", both, "guards")
    fill = [
        replace(run(), phases=(made_up_phase("fillrandom", latency_us_p99=p99),))
        for p99 in (10.0, 30.0)
    ]
    mixed = run({"get": 100.0, "update": 100.0, "delete": 100.0})
    baseline = [baseline_observations([each]) for each in (fill[0], mixed)]
    broken = violations(guards, replace(NOWHERE, facts=[{}, {}]), [fill[1], mixed], baseline)
    assert [text for text, amount in broken.items() if amount > 0] == [texts[-1]]
    # No expression can name such a phase: then the p99 is limited in every phase.
    dashed = replace(FILL, phases=(replace(FILL.phases[0], name="fill-all"),))
    assert default_guards([dashed, MIXED])[-1] == "latency_us_p99 <= 1.25 * baseline"


def test_what_works_beside_a_phase_is_guarded_too() -> None:
    """A gain of the reads of readwhilewriting could cost its writer anything."""
    reads = Phase("run", PhaseKind.MEASURE, "readwhilewriting")
    assert default_guards([replace(FILL, phases=(reads,))])[2:] == (
        "put.latency_us_p99 <= 1.25 * baseline",
        "run.latency_us_p99 <= 1.25 * baseline",
    )
    beside = (
        Companion("writer", "overwrite"),
        Companion("scans", mix=Mix((("scan", 1.0),))),
        Companion("two words", "overwrite"),
    )
    both = replace(MIXED, phases=(replace(MIXED.phases[0], companions=beside),))
    texts = default_guards([both])
    assert texts[4:] == (
        "scans.scan.latency_us_p99 <= 1.25 * baseline",
        "update.latency_us_p99 <= 1.25 * baseline",
        "writer.put.latency_us_p99 <= 1.25 * baseline",
    )
    guards = make_guards(texts, "rocksdb", [both], "guards")
    slow = run({"get": 100.0, "writer.put": 300.0}), run({"get": 100.0, "writer.put": 100.0})
    broken = violations(guards, NOWHERE, [slow[0]], [baseline_observations([slow[1]])])
    assert [text for text, amount in broken.items() if amount > 0] == [texts[-1]]


def test_each_operation_type_of_a_trace_is_guarded_as_far_as_it_has_it() -> None:
    """Of a trace the p99 of all its operations was limited: seeks among many gets could be slow."""
    replay = Phase("replay", PhaseKind.MEASURE, replay=Replay("production.trace"))
    workload = replace(FILL, phases=(replay,))
    texts = default_guards([workload])
    kinds = [text.partition(".")[0] for text in texts[2:]]
    assert kinds == ["delete", "get", "merge", "put", "seek"]
    guards = make_guards(texts, "rocksdb", [workload], "guards")
    sides = run({"get": 10.0, "seek": 100.0}), run({"get": 10.0, "seek": 300.0})
    one, other = (
        [replace(side, phases=(replace(side.phases[0], replay=ReplayReport({}, None)),))]
        for side in sides
    )
    verdict = judged_by_guards(VERDICT, guards, NOWHERE, 6 * [(one, other)])
    assert [each.guard for each in verdict.guards if each.pairs] == [texts[3], texts[6]]
    assert [each.guard for each in verdict.guards if each.held is False] == [texts[6]]
    assert verdict.outcome is VerdictOutcome.NOT_PROVEN
    assert not {"merge", "put"} & {each.guard.partition(".")[0] for each in verdict.guards}


def test_a_guard_is_a_constraint_with_the_baseline_in_it() -> None:
    text = "write_amplification <= 10"
    with pytest.raises(InputError, match=r"--guard: found 'write_amplification <= 10'; allowed"):
        guard(text)


def test_a_slow_get_beside_fast_updates_breaks_the_guard_of_gets() -> None:
    gets = guard("get.latency_us_p99 <= 1.25 * baseline", MIXED)
    updates = guard("update.latency_us_p99 <= 1.25 * baseline", MIXED)
    baseline = [baseline_observations([run({"get": 100.0, "update": 100.0})])]
    slow = [run({"get": 150.0, "update": 50.0})]
    broken = violations([gets, updates], NOWHERE, slow, baseline)
    assert broken[gets.text] == pytest.approx(0.2)  # 150 over the limit of 125
    assert broken[updates.text] < 0


def test_the_search_compares_with_the_mean_of_the_baselines_runs() -> None:
    text = guard("write_amplification <= 1.5 * baseline")
    baseline = [baseline_observations([run(write_amplification=w) for w in (2.0, 4.0)])]
    at_limit = violations([text], NOWHERE, [run(write_amplification=4.5)], baseline)
    beyond = violations([text], NOWHERE, [run(write_amplification=4.6)], baseline)
    assert at_limit[text.text] <= 0 < beyond[text.text]


def test_a_short_phase_with_one_compaction_more_does_not_break_the_guard_of_what_is_written() -> (
    None
):
    """Deleting what had been put wrote 4 MB of 256, with two compactions in place of one.

    It broke the guard by itself (1.22 over 0.61), though the run as a whole wrote less.
    """
    whole, short = (
        guard(f"{of}write_amplification <= 1.5 * baseline", PUT_DELETE) for of in WRITES
    )

    def both(put: float, delete: float) -> Measurement:
        phases = (
            made_up_phase("put", write_amplification=put, user_bytes_written=252 << 20),
            made_up_phase("get", write_amplification=0.0, user_bytes_written=0),
            made_up_phase("delete", write_amplification=delete, user_bytes_written=4 << 20),
        )
        return replace(run(), phases=phases)

    baseline = [baseline_observations([both(1.41, 0.61)])]
    broken = violations([whole, short], NOWHERE, [both(1.11, 1.22)], baseline)
    assert broken[whole.text] < 0 < broken[short.text]
    broken = violations([whole], NOWHERE, [both(2.2, 0.61)], baseline)
    assert broken[whole.text] > 0


def test_before_the_baseline_is_known_a_guard_says_nothing() -> None:
    text = guard("write_amplification <= 1.5 * baseline")
    assert violations([text], NOWHERE, [run(write_amplification=99.0)], []) == {}


def test_what_is_no_number_is_not_observed() -> None:
    """A p99 of infinity, which a command may print, ended the report of its study."""
    each = guard("latency_us_p99 <= 1.25 * baseline")
    endless, usual = run(latency_us_p99=float("inf")), run(latency_us_p99=9.0)
    for measured, base in ((endless, usual), (usual, endless)):
        assert violations([each], NOWHERE, [measured], [baseline_observations([base])]) == {}
    assert violations([each], NOWHERE, [usual], [baseline_observations([usual])])


def test_most_pairs_decide_and_a_gain_at_too_high_a_price_is_not_recommended() -> None:
    text = guard("write_amplification <= 1.5 * baseline")

    def verdict(candidates: list[float]) -> Verdict:
        pairs = [([run(write_amplification=2.0)], [run(write_amplification=c)]) for c in candidates]
        return judged_by_guards(VERDICT, [text], NOWHERE, pairs)

    held = verdict([2.9, 3.1, 3.0, 2.8, 2.7, 2.9])
    assert held.outcome is VerdictOutcome.BETTER
    assert [(g.held, g.broken, g.pairs) for g in held.guards] == [(True, 1, 6)]
    dear = verdict([15.6] * 6)
    assert dear.outcome is VerdictOutcome.NOT_PROVEN
    assert dear.ratio == 1.5  # what lifting the guard would buy stays in the verdict
    assert dear.why == (
        "the candidate breaks write_amplification <= 1.5 * baseline in 6 of 6 pairs (7.80x)"
    )
    assert dear.guards[0].ratio == pytest.approx(7.8)


def test_a_guard_that_each_phase_breaks_by_chance_holds() -> None:
    """put-get-delete was not recommended: 5 of 7 pairs broke a guard, each in another phase."""
    text = guard("latency_us_p99 <= 1.25 * baseline", PUT_DELETE)

    def pair(put: float, delete: float) -> tuple[list[Measurement], list[Measurement]]:
        sides = ((20.0, 10.0), (put, delete))
        made = [
            replace(
                run(),
                phases=(
                    made_up_phase("put", latency_us_p99=p),
                    made_up_phase("delete", latency_us_p99=d),
                ),
            )
            for p, d in sides
        ]
        return [made[0]], [made[1]]

    lucky = [(26.0, 9.0), (18.0, 13.0), (27.0, 9.0), (16.0, 14.0), (17.0, 9.0), (18.0, 13.0)]
    judged = judged_by_guards(VERDICT, [text], NOWHERE, [pair(*each) for each in lucky])
    assert judged.outcome is VerdictOutcome.BETTER
    assert [(g.where, g.broken, g.pairs) for g in judged.guards] == [("delete", 3, 6)]
    slow = [(18.0, 14.0)] * 6
    judged = judged_by_guards(VERDICT, [text], NOWHERE, [pair(*each) for each in slow])
    assert judged.why == (
        "the candidate breaks latency_us_p99 <= 1.25 * baseline in 6 of 6 pairs of delete (1.40x)"
    )


def put_delete(put: float, delete: float | None) -> list[Measurement]:
    """A run of both phases, by their p99; one without deletes observed none."""
    phases = (
        made_up_phase("put", latency_us_p99=put),
        made_up_phase("delete", latency_us_p99=delete),
    )
    return [replace(run(), phases=phases)]


def test_a_phase_that_few_pairs_observed_breaks_a_guard_by_its_share_of_them() -> None:
    """Both pairs that told of the deletes broke it, and three of six puts, which hold, hid them."""
    text = guard("latency_us_p99 <= 1.25 * baseline", PUT_DELETE)
    slow = [30.0, 30.0, 30.0, 19.0]
    pairs = [(put_delete(20.0, 10.0), put_delete(put, None)) for put in slow]
    pairs += [(put_delete(20.0, 10.0), put_delete(19.0, 14.0))] * 2
    judged = judged_by_guards(VERDICT, [text], NOWHERE, pairs)
    assert [(g.where, g.broken, g.pairs) for g in judged.guards] == [("delete", 2, 2)]
    assert judged.outcome is VerdictOutcome.NOT_PROVEN
    # All six observed it in put.
    assert judged.notes == (f"{text.text}: 2 of 6 pairs observed it in delete",)


def test_of_two_phases_that_break_a_guard_the_one_that_more_pairs_broke_is_told() -> None:
    """A single pair that told of the deletes hid the puts of five of six, and their ratio."""
    text = guard("latency_us_p99 <= 1.25 * baseline", PUT_DELETE)
    pairs = [(put_delete(20.0, 10.0), put_delete(30.0, None))] * 5
    pairs += [(put_delete(20.0, 10.0), put_delete(19.0, 14.0))]
    judged = judged_by_guards(VERDICT, [text], NOWHERE, pairs)
    assert [(g.where, g.broken, g.pairs) for g in judged.guards] == [("put", 5, 6)]
    assert judged.guards[0].ratio is not None
    assert judged.notes == ()


def test_a_worse_candidate_stays_worse_whatever_it_costs() -> None:
    text = guard("write_amplification <= 1.5 * baseline")
    pairs = [([run(write_amplification=2.0)], [run(write_amplification=9.0)])] * 6
    worse = replace(VERDICT, outcome=VerdictOutcome.WORSE, ratio=0.9)
    assert judged_by_guards(worse, [text], NOWHERE, pairs).outcome is VerdictOutcome.WORSE


def test_what_no_pair_observed_is_said_to_be_unknown() -> None:
    text = guard("write_amplification <= 1.5 * baseline")
    judged = judged_by_guards(VERDICT, [text], NOWHERE, [([run()], [run()])] * 6)
    assert judged.outcome is VerdictOutcome.BETTER
    assert judged.guards[0].held is None


def test_a_pair_that_drew_no_operation_of_a_rare_type_says_nothing_of_its_latency() -> None:
    """It was an error, of the search and of the proof, which came again whenever one went on."""
    name = "scan.latency_us_p99"
    limit = make_constraint(f"{name} <= 5000", (), [name], (), "study.yaml", "constraints")
    without, slow = run({"get": 9.0}), run({"get": 9.0, "scan": 9000.0})
    assert violations([limit], NOWHERE, [without], []) == {}
    pairs = [([slow], [without]), *[([slow], [slow])] * 5]
    judged = judged_by_guards(VERDICT, [limit], NOWHERE, pairs)
    assert judged.why == f"the candidate breaks {limit.text} in 5 of 5 pairs"
    assert judged.notes == (f"{limit.text}: 5 of 6 pairs observed it",)
    assert judged_by_guards(VERDICT, [limit], NOWHERE, pairs[1:]).notes == ()
    with pytest.raises(InputError, match=f"rocksdb did not observe {name} under this workload"):
        check_observed([limit], NOWHERE, [without])
    check_observed([limit], NOWHERE, [slow])


def test_a_type_with_too_few_operations_for_a_percentile_breaks_no_guard() -> None:
    """A trace had 40 deletes: their p99 is the slowest of them, and a gain was refused for it."""
    limit = guard("delete.latency_us_p99 <= 1.25 * baseline", MIXED)
    fast, slow = ({"get": 9.0, "delete": us} for us in (9.0, 90.0))
    few = [([run(fast, 40)], [run(slow, 40)])] * 6
    judged = judged_by_guards(VERDICT, [limit], NOWHERE, few)
    assert judged.outcome is VerdictOutcome.BETTER
    assert judged.guards[0].held is None
    needed = "100 operations are needed to judge it"
    assert judged.notes == (f"delete.latency_us_p99: {needed}, and a run of the baseline had 40",)
    assert (
        violations([limit], NOWHERE, [run(slow, 40)], [baseline_observations([run(fast, 40)])])
        == {}
    )

    enough = judged_by_guards(VERDICT, [limit], NOWHERE, [([run(fast)], [run(slow)])] * 6)
    assert enough.why == f"the candidate breaks {limit.text} in 6 of 6 pairs (10.00x)"
    assert enough.notes == ()


def test_a_constraint_that_a_program_breaks_under_one_of_several_workloads() -> None:
    """A program of the user's reports no phases: the name of one ended the study with its proof."""
    limit = make_constraint("latency_us_p99 <= 10", (), ["latency_us_p99"], (), "study.yaml", "")

    def pair(cost: float) -> tuple[list[Measurement], list[Measurement]]:
        whole = replace(run(), phases=(), reported={"latency_us_p99": 5.0})
        small, large = (replace(whole, workload=name) for name in ("small", "large"))
        return [small, large], [small, replace(large, reported={"latency_us_p99": cost})]

    two = replace(NOWHERE, facts=[{}, {}])
    judged = judged_by_guards(VERDICT, [limit], two, [pair(16.0)] * 6)
    assert judged.guards[0].where == "large"
    assert judged.why == "the candidate breaks latency_us_p99 <= 10 in 6 of 6 pairs of large"
