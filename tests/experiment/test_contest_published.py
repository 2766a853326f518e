"""The contest of Dankook University, 2022: its raw logs give the table and ranks that it published.

Published in DKU-StarLab/leveldb-study at 39487a0, tuning/README.md, sections 3 and 4.
"""

from __future__ import annotations

import pytest
from contest_parts import PROPERTIES, TEAMS, contest_logs

from lsmtune.engines.formats import read_config
from lsmtune.experiment.contest import broken_rules, load_rules
from lsmtune.experiment.contest_scores import log_files, scores_of_logs
from lsmtune.experiment.standings import Standings, standings_of
from lsmtune.model.config import Config

PHASES = ("load-a", "run-a", "run-b", "run-d")
# In the order of TEAMS.
MEANS = {
    "load-a": (71065, 34800, 23336, 57734, 71972, 35522),
    "run-a": (73928, 58610, 40784, 63753, 72253, 47830),
    "run-b": (131709, 130014, 114509, 147205, 136455, 125638),
    "run-d": (191939, 200841, 177168, 207546, 194346, 193820),
}
# Total rank, and the rank in each phase.
RANKS = {
    "SSTable": (1, 3, 3, 1, 1),
    "Bloom Filter": (1, 1, 2, 2, 3),
    "WAL/Manifest": (3, 2, 1, 3, 5),
    "Memtable": (4, 5, 4, 4, 2),
    "Cache": (5, 4, 5, 5, 4),
    "Compaction": (6, 6, 6, 6, 6),
}


@pytest.fixture(scope="module")
def standings() -> Standings:
    return standings_of(scores_of_logs(log_files(contest_logs()))[0])


def test_the_published_means(standings: Standings) -> None:
    assert tuple(phase.phase for phase in standings.phases) == PHASES
    assert standings.rounds == (1, 2, 3, 4, 5)
    for phase in standings.phases:
        means = {row.team: row.mean for row in phase.rows}
        assert tuple(round(means[team]) for team in TEAMS) == MEANS[phase.phase]


def test_the_published_ranks(standings: Standings) -> None:
    found = {row.team: [row.rank_by_mean] for row in standings.totals}
    for phase in standings.phases:
        for row in phase.rows:
            found[row.team].append(row.rank_by_mean)
    assert {team: tuple(ranks) for team, ranks in found.items()} == RANKS


def test_the_run_that_decides_load_a(standings: Standings) -> None:
    """One run of five is a fifth faster: without it, or by median, another team is first."""
    (outlier,) = standings.outliers
    assert (outlier.phase, outlier.team, outlier.round) == ("load-a", "Bloom Filter", 4)
    assert outlier.value == 84905.0
    assert outlier.p_value < 0.01
    assert outlier.decides_first
    assert outlier.first_by_mean == ("Bloom Filter",)
    assert outlier.first_without == outlier.first_by_median == ("WAL/Manifest",)
    # And with it the total: SSTable alone is first then.
    assert outlier.decides_total
    assert outlier.total_without["SSTable"] == 1
    assert outlier.total_without["Bloom Filter"] == 2


def test_what_five_rounds_tell(standings: Standings) -> None:
    """Every separation agrees with the order by median; the first of Load A is open."""
    load, *others = standings.phases
    ranks = {row.team: (row.rank_low, row.rank_high) for row in load.rows}
    assert ranks["Bloom Filter"][0] == ranks["WAL/Manifest"][0] == 1
    assert ranks["Compaction"] == (6, 6)
    first = [
        [row.team for row in phase.rows if (row.rank_low, row.rank_high) == (1, 1)]
        for phase in others
    ]
    assert first == [[], ["SSTable"], ["SSTable"]]
    for phase in standings.phases:
        medians = {row.team: row.median for row in phase.rows}
        for pair in phase.separations:
            assert medians[pair.better] > medians[pair.worse]
            assert pair.p_value <= 0.05
            assert pair.ratio > 1.0
    assert [row.team for row in standings.totals if row.rank_low == 1] == [
        *("SSTable", "Bloom Filter", "WAL/Manifest")
    ]


def test_all_entries_meet_the_rules() -> None:
    if not PROPERTIES.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    files = sorted(PROPERTIES.glob("*.properties"))
    assert len(files) == 7
    for path in files:
        config = Config(read_config(path).options)
        assert broken_rules(load_rules("leveldb"), config, str(path)) == []
