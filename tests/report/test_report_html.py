from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from page import Page, read
from sample_study import BEST, LEVELDB_STUDY, SampleStudy, fill, finished, speed_of

from lsmtune.errors import InputError
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config
from lsmtune.model.measurement import Outcome
from lsmtune.model.verdict import GuardResult, Verdict, VerdictOutcome
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.render import to_html
from lsmtune.report.source import study_records
from lsmtune.report.study import study_document, write_as

SECTIONS = ("verdict", "deploy", "compared", "found", "trust", "raw")
# Where there is something to say.
MORE = ("price", "failures", "trials")
ORDER = (
    *("verdict", "price", "deploy", "compared", "found", "trust", "failures", "trials", "raw"),
)


@pytest.fixture(scope="module")
def finished_html(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("finished")
    sample = finished(directory)
    sample.close()
    return html_of(sample)


def html_of(sample: SampleStudy) -> str:
    with sample.opened() as folder:
        output, _ = write_as(folder, "html", sample.path / "result" / "report.html")
    return output.read_text(encoding="utf-8")


def checked(html: str) -> Page:
    """The page, which must be whole whatever the study was."""
    page = read(html)
    assert page.unbalanced == []
    assert len(page.ids) == len(set(page.ids))
    sections = [name for name in page.ids if not name.endswith("-title")]
    assert set(SECTIONS) <= set(sections)
    assert sections == [name for name in ORDER if name in sections]
    assert [link for link in page.links if not link.startswith(("#", "data:"))] == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "None" not in page.text
    assert "nan" not in page.text.split()
    return page


def test_a_finished_study(finished_html: str) -> None:
    page = checked(finished_html)
    assert "Proven gain" in page.text
    assert re.search(r"\d\.\d\d\u00d7 the baseline's sustained throughput", page.text)
    assert re.search(r"\), 95 % CI \d\.\d\d to \d\.\d\d, 5 pairs\.", page.text)
    assert "OPTIONS-tuned" in page.text
    assert "rocksdb 10.2.1" in page.text
    assert "3 timeout, 2 out of memory" in page.text


def test_every_plot_is_in_the_page_and_says_what_it_shows(finished_html: str) -> None:
    page = checked(finished_html)
    assert {*ORDER} <= set(page.ids)
    assert {
        "Every metric, tuned over baseline",
        "Throughput over time of both",
        "Latency of put, percentiles",
        "The ratio of each pair",
        "Each trial over the baseline, and the best so far",
        "Importance of each parameter",
        "Objective over write_buffer_size",
        "Objective over compression",
    } <= set(page.plots)
    assert len(finished_html) < 250_000


def test_a_study_of_two_thousand_trials_is_a_page_below_a_megabyte(study: SampleStudy) -> None:
    run = study.measured(BEST)
    failed = study.failed(Outcome.TIMEOUT, "deadline of 60 s passed", BEST)
    rows = [StoredMeasurement(1, Role.BASELINE, None, None, study.baseline, run)]
    for number in range(2000):
        options = study.draw()
        rate = 320_000.0 * speed_of(options) * study.random.gauss(1.0, 0.02)
        phase = replace(run.phases[0], sustained_throughput_ops_s=rate, latencies={}, intervals=())
        made = failed if number % 7 == 3 else replace(run, phases=(phase,))
        rows.append(StoredMeasurement(number + 2, Role.TRIAL, number, None, Config(options), made))
    analysis = StudyAnalysis(study_records(study.spec, study.path, tuple(rows)), None)
    html = to_html(study_document(analysis))
    page = checked(html)
    assert len(html) < 1_000_000
    assert "The best 300 of 2,000 trials; the raw figures have all of them" in page.text
    assert html.count("<tr") < 450


def test_the_price_stands_beside_the_verdict(study: SampleStudy) -> None:
    """A gain that was paid for with memory was found far below it, if at all."""
    best = fill(study, trials=8)
    study.add_proof(best, 1.3)
    guards = (
        GuardResult("rss_bytes_max <= 1.5 * baseline", 5, 0, 1.4, 1.3, 1.5),
        GuardResult("latency_us_p99 <= 2 * baseline", 5, 0, 0.9, 0.8, 1.0),
    )
    verdict = Verdict(
        VerdictOutcome.BETTER, "sustained_throughput_ops_s", "maximize", 0.95, 5, 0, 1.3, 1.2, 1.4
    )
    study.folder.measurements.set_verdict(replace(verdict, guards=guards))
    html = html_of(study)
    page = checked(html)
    assert html.count('<p class="figure') == 2  # of one size
    assert "Intervals of guards are at 95 % each" in page.text
    held = "(the guard allows 1.50\u00d7): the dearest of 2 guards, and all hold"
    assert f"1.40\u00d7 the baseline's peak resident memory {held}" in page.text
    study.folder.measurements.set_verdict(
        replace(verdict, guards=(replace(guards[0], ratio=1.8, broken=5),))
    )
    said = checked(html_of(study)).text
    over = "(the guard allows 1.50\u00d7): 1 of 1 guard is broken"
    assert f"1.80\u00d7 the baseline's peak resident memory {over}" in said
    study.folder.measurements.set_verdict(verdict)
    assert "Not guarded no guard was asked for" in checked(html_of(study)).text


def test_the_page_carries_every_run_as_a_file(finished_html: str) -> None:
    coded = re.search(r'download="runs.csv.gz" href="data:[^,]*,([^"]*)"', finished_html)
    assert coded is not None
    lines = gzip.decompress(base64.b64decode(coded[1])).decode().splitlines()
    assert len(lines) == 1 + 1 + 40 + 10
    assert lines[0].startswith("measurement,role,trial")


def test_the_page_has_no_more_options_to_copy_than_differ(finished_html: str) -> None:
    copied = re.search(r'aria-label="the options">([^<]*)</pre>', finished_html)
    assert copied is not None
    lines = dict(line.split("=") for line in copied[1].splitlines())
    assert "max_background_jobs" not in lines  # fixed for both
    assert set(lines) <= {*BEST}


def test_nothing_is_fetched(finished_html: str) -> None:
    assert "default-src 'none'" in finished_html
    page = read(finished_html)
    assert "iframe" not in page.tags
    assert len(page.scripts) == 1
    assert all("src" not in attributes for attributes, _ in page.scripts)
    style = re.search(r"<style>(.*?)</style>", finished_html, re.S)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    # The policy lets this style and this script run, and nothing that stands in an attribute.
    for text in (style[1], page.scripts[0][1]):
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in finished_html
    assert "unsafe-inline" not in finished_html
    assert not {name for name in page.attributes if name == "style" or name.startswith("on")}


def test_a_study_without_runs(study: SampleStudy) -> None:
    page = checked(html_of(study))
    assert "No verdict yet" in page.text
    assert page.plots == []
    assert not set(MORE) & set(page.ids)


def test_an_unfinished_study_promises_nothing(study: SampleStudy) -> None:
    fill(study, trials=12)
    page = checked(html_of(study))
    assert "Unfinished" in page.text
    assert "a promise, not a proof" in page.text
    assert "Proven gain" not in page.text
    assert "no proof yet" in page.text


def test_a_study_in_which_all_failed(study: SampleStudy) -> None:
    study.add_baseline()
    for number in range(6):
        options = study.draw()
        failed = study.failed(list(Outcome)[1 + number], f"failure {number}", options)
        study.add_trial(number, options, failed)
    study.set_verdict(VerdictOutcome.NOT_PROVEN, None)
    page = checked(html_of(study))
    assert "No proven gain" in page.text
    assert "nothing to deploy" in page.text
    assert "failure 5" in page.text


def test_no_proven_gain_is_said_plainly(study: SampleStudy) -> None:
    best = fill(study, trials=8)
    study.add_proof(best, 1.0)
    study.set_verdict(VerdictOutcome.NOT_PROVEN, 1.01)
    page = checked(html_of(study))
    assert "No proven gain" in page.text
    assert "; the interval includes 1." in page.text
    assert "not proven to be better" in page.text


def test_worse_is_said_plainly(study: SampleStudy) -> None:
    best = fill(study, trials=8)
    study.add_proof(best, 0.8)
    study.set_verdict(VerdictOutcome.WORSE, 0.8)
    page = checked(html_of(study))
    assert "0.80\u00d7 the baseline's sustained throughput: do not deploy" in page.text


def test_equivalent_is_said_plainly(study: SampleStudy) -> None:
    best = fill(study, trials=8)
    study.add_proof(best, 1.0)
    study.set_verdict(VerdictOutcome.EQUIVALENT, 1.003, width=0.004)
    page = checked(html_of(study))
    assert "1.003\u00d7" in page.text
    assert "does not differ enough to matter" in page.text


def test_a_leveldb_study(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path, LEVELDB_STUDY)
    best = fill(sample, trials=10, speed=lambda _: 1.2)
    sample.add_proof(best, 1.3)
    sample.set_verdict(VerdictOutcome.BETTER, 0.77)
    sample.close()
    page = checked(html_of(sample))
    assert "0.77\u00d7 the baseline's p99 latency" in page.text
    assert "lower is better" in page.text
    assert "assertions on" in page.text


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_text_of_others_is_escaped(tmp_path: Path) -> None:
    sample = SampleStudy(tmp_path)
    sample.add_baseline()
    options = {**sample.draw(), "compression": EVIL, EVIL: EVIL}
    sample.add_trial(0, options, sample.measured(options))
    sample.add_trial(1, options, sample.failed(Outcome.CRASHED, EVIL, options))
    sample.folder.measurements.set_fact("machine", {EVIL: EVIL})
    sample.close()
    html = html_of(sample)
    page = checked(html)
    assert "img" not in page.tags
    assert len(page.scripts) == 1
    assert EVIL in page.text
    assert "<script>alert" not in html


def test_a_failed_run_in_a_pair_is_named(study: SampleStudy) -> None:
    best = fill(study, trials=4)
    study.add_proof(best, 1.4)
    lost = study.failed(Outcome.DATA_LOSS, "3 keys lost", best)
    config = study.folder.measurements.of(Role.PROOF_CANDIDATE)[0].config
    study.add(Role.PROOF_BASELINE, study.measured({}), study.baseline, pair=5)
    study.add(Role.PROOF_CANDIDATE, lost, config, pair=5)
    study.set_verdict(VerdictOutcome.WORSE, 1.4)
    page = checked(html_of(study))
    assert "data loss" in page.text
    assert "Do not deploy" in page.text


def test_the_report_replaces_the_old_one_whole(study: SampleStudy) -> None:
    html_of(study)
    study.add_baseline()
    html_of(study)
    assert [path.name for path in (study.path / "result").iterdir()] == ["report.html"]


def test_the_command_that_goes_on_with_the_study_names_its_file(study: SampleStudy) -> None:
    """It named the folder, of which tune said that it is a directory."""
    study.folder.note_origin(study.file)
    assert f"lsmtune tune {study.file} --dir {study.path}" in html_of(study)


def test_a_place_that_cannot_be_written_is_the_users_error(study: SampleStudy) -> None:
    with study.opened() as folder:
        with pytest.raises(InputError, match="is a directory"):
            write_as(folder, "html", study.path)
        with pytest.raises(InputError, match=r"study\.yaml is no folder"):
            write_as(folder, "html", study.file / "report.html")
